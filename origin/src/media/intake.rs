//! Examines uploaded files before they are published: their type by content, whether a picture decodes, its thumbnail.
//! Publishes nothing; a refused file is dropped, and with it its staged bytes.

use super::image::pool::{MediaPool, PoolSize};
use super::image::{ImageFault, Limits, Picture};
use super::sniff::{self, UNKNOWN, Verdict};
use super::store::Staged;
use crate::config::{Config, MediaTypes};
use futures_util::future::try_join_all;
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, shown};
use shared::media::{MediaKind, MediaName};
use shared::upload::{Label, UploadItem, Visibility};
use std::sync::Arc;

/// A file that has passed the examination.
#[derive(Debug)]
pub struct Examined {
    pub staged: Staged,
    pub name: MediaName,
    pub kind: MediaKind,
    /// The media type that the content shows, or else the label.
    pub mime: String,
    pub visibility: Visibility,
    /// Dimensions and thumbnail; `None` unless the file was uploaded as an image.
    pub picture: Option<Picture>,
}

/// What the uploader declares of a file.
#[derive(Debug)]
pub struct Claim {
    pub name: MediaName,
    pub label: Option<Label>,
    pub kind: MediaKind,
    pub visibility: Visibility,
}

impl From<UploadItem> for Claim {
    fn from(item: UploadItem) -> Self {
        Self {
            name: item.name().clone(),
            label: item.label().cloned(),
            kind: item.kind(),
            visibility: item.visibility(),
        }
    }
}

/// The examination that every uploaded file goes through.
#[derive(Clone, Debug)]
pub struct Intake {
    pool: Arc<MediaPool>,
    types: MediaTypes,
}

impl Intake {
    /// Starts the threads that decode pictures.
    ///
    /// # Errors
    /// The system refuses to start a thread.
    pub fn start(config: &Config) -> std::io::Result<Self> {
        let pool = MediaPool::start(PoolSize::default(), Limits::default())?;
        Ok(Self::new(Arc::new(pool), config.media_types.clone()))
    }

    /// Uses the threads of `pool`, and lets only files of these types pass.
    #[must_use]
    pub fn new(pool: Arc<MediaPool>, types: MediaTypes) -> Self {
        Self { pool, types }
    }

    /// Examines the files of one upload. All pass, or none.
    ///
    /// # Errors
    /// `invalid_media` or `body_too_large`, naming the first file at fault; `rate_limited` or `overloaded` if too many
    /// pictures wait.
    pub async fn examine_all(
        &self,
        project: &ProjectName,
        files: impl IntoIterator<Item = (Claim, Staged)>,
    ) -> Result<Vec<Examined>, Problem> {
        // All types first, so that nothing is decoded for an upload of which one file has a refused type.
        let judged: Vec<_> = files
            .into_iter()
            .map(|(claim, staged)| {
                let verdict = self.judge(&claim, staged.head())?;
                Ok((claim, staged, verdict))
            })
            .collect::<Result<_, Problem>>()?;
        try_join_all(judged.into_iter().map(|(claim, staged, verdict)| self.look_into(project, claim, staged, verdict)))
            .await
    }

    /// Determines the type from the first bytes, and refuses types that the configuration doesn't allow.
    fn judge(&self, claim: &Claim, head: &[u8]) -> Result<Verdict, Problem> {
        let name = claim.name.as_str();
        let label = claim.label.as_ref().map(Label::as_str);
        let verdict = sniff::judge(label, claim.kind, name, head)?;
        // A media type that only the label claims needs unknown bytes to be allowed, too: else any bytes could pass for
        // it.
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
        project: &ProjectName,
        claim: Claim,
        staged: Staged,
        verdict: Verdict,
    ) -> Result<Examined, Problem> {
        let path = staged.path().to_owned();
        let picture = match (claim.kind, verdict.image()) {
            (MediaKind::Image, Some(format)) => {
                let examined = self.pool.examine(project, path, format).await;
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
