//! Validates uploaded files before they are stored: detects their types, decodes images and makes thumbnails. Staged
//! files are deleted when they are dropped, except those of resumable uploads.

use super::image::pool::{MediaPool, PoolSize};
use super::image::{ImageFault, Limits, Picture};
use super::rights::UploadRights;
use super::sniff::{self, FileType, UNKNOWN};
use super::store::Staged;
use crate::config::{Config, MediaTypes};
use futures_util::future::try_join_all;
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, shown};
use shared::media::{MediaKind, MediaName};
use shared::upload::{Label, UploadItem, Visibility};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub struct Examined {
    pub staged: Staged,
    pub name: MediaName,
    pub kind: MediaKind,
    pub mime: String,
    pub visibility: Visibility,
    /// The picture's size and thumbnail; `None` unless the file was uploaded with the type `image`.
    pub picture: Option<Picture>,
}

#[derive(Debug)]
pub struct ClaimedFile {
    pub name: MediaName,
    pub label: Option<Label>,
    pub kind: MediaKind,
    pub visibility: Visibility,
}

impl From<UploadItem> for ClaimedFile {
    fn from(item: UploadItem) -> Self {
        Self {
            name: item.name().clone(),
            label: item.label().cloned(),
            kind: item.kind(),
            visibility: item.visibility(),
        }
    }
}

#[derive(Clone)]
pub struct Intake {
    pool: Arc<MediaPool>,
    types: MediaTypes,
}

impl Intake {
    pub fn new(config: &Config) -> Self {
        let pool = Arc::new(MediaPool::new(PoolSize::default(), Limits::default()));
        Self { pool, types: config.media_types.clone() }
    }

    /// Returns the load as [`MediaPool::load`] does.
    pub fn load(&self) -> (usize, usize) {
        self.pool.load()
    }

    /// Examines all files of an upload. One invalid file fails the upload.
    pub async fn examine_all(
        &self,
        (project, caller): (&ProjectName, Uuid),
        rights: &UploadRights,
        files: impl IntoIterator<Item = (ClaimedFile, Staged)>,
    ) -> Result<Vec<Examined>, Problem> {
        // No image is decoded if any file has a refused type.
        let judged: Vec<_> = files
            .into_iter()
            .map(|(claim, staged)| {
                let verdict = self.judge(&claim, staged.head())?;
                rights.check_type(&claim.name, &verdict)?;
                Ok((claim, staged, verdict))
            })
            .collect::<Result<_, Problem>>()?;
        let examined = judged
            .into_iter()
            .map(|(claim, staged, verdict)| self.look_into((project, caller), claim, staged, verdict));
        try_join_all(examined).await
    }

    fn judge(&self, claim: &ClaimedFile, head: &[u8]) -> Result<FileType, Problem> {
        let name = claim.name.as_str();
        let label = claim.label.as_ref().map(Label::as_str);
        let verdict = sniff::judge(label, claim.kind, name, head)?;
        // If only the label says that the file is an image, audio or video, it may contain any bytes.
        let is_claimed = verdict.sniffed.is_none()
            && ["image/", "video/", "audio/"].iter().any(|family| verdict.mime.starts_with(family));
        if self.types.allow(&verdict.mime) && (!is_claimed || self.types.allow(UNKNOWN)) {
            return Ok(verdict);
        }
        Err(Problem::new(
            ErrorCode::InvalidMedia,
            format!("The file {} is of the type {}, which may not be uploaded here.", shown(name), verdict.mime),
        )
        .with_hint(format!("Allowed types: {}.", self.types)))
    }

    async fn look_into(
        &self,
        (project, caller): (&ProjectName, Uuid),
        claim: ClaimedFile,
        staged: Staged,
        verdict: FileType,
    ) -> Result<Examined, Problem> {
        let path = staged.path().to_owned();
        let picture = match (claim.kind, verdict.image()) {
            (MediaKind::Image, Some(format)) => {
                let examined = self.pool.examine(project, caller, path, format).await;
                let examined = examined.map_err(|fault: ImageFault| fault.problem(claim.name.as_str()));
                Some(examined?)
            }
            _ => None,
        };
        Ok(Examined {
            staged,
            name: claim.name,
            kind: claim.kind,
            mime: verdict.mime,
            visibility: claim.visibility,
            picture,
        })
    }
}
