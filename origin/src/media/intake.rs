//! From files that have arrived to files that may be published: what each is by its bytes, whether a
//! picture decodes, its thumbnail.
//!
//! Publishes nothing; what is refused here is dropped, and its staged file with it.

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

/// A file that is what it claims to be.
#[derive(Debug)]
pub struct Examined {
    /// Its bytes.
    pub staged: Staged,
    /// What it is to be called.
    pub name: MediaName,
    /// What it was uploaded as.
    pub kind: MediaKind,
    /// Its media type, by its bytes.
    pub mime: String,
    /// Who may read it.
    pub visibility: Visibility,
    /// Its measures and its thumbnail, if it was uploaded as an image.
    pub picture: Option<Picture>,
}

/// What is said of a file that has arrived.
#[derive(Debug)]
pub struct Claim {
    /// What it is to be called.
    pub name: MediaName,
    /// What it is said to be.
    pub label: Option<Label>,
    /// What it is uploaded as.
    pub kind: MediaKind,
    /// Who may read it.
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

/// The examination that every file goes through, whichever way it came.
#[derive(Clone, Debug)]
pub struct Intake {
    pool: Arc<MediaPool>,
    types: MediaTypes,
}

impl Intake {
    /// The examination of an installation; starts its threads.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(config: &Config) -> std::io::Result<Self> {
        let pool = MediaPool::start(PoolSize::default(), Limits::default())?;
        Ok(Self::new(Arc::new(pool), config.media_types.clone()))
    }

    /// An examination on the threads of this pool; only files of these types pass.
    #[must_use]
    pub fn new(pool: Arc<MediaPool>, types: MediaTypes) -> Self {
        Self { pool, types }
    }

    /// Examines the files of one upload to a project. All pass, or none.
    ///
    /// # Errors
    /// `invalid_media` or `body_too_large`, naming the first file at fault; `rate_limited`, `overloaded`.
    pub async fn examine_all(
        &self,
        project: &ProjectName,
        files: impl IntoIterator<Item = (Claim, Staged)>,
    ) -> Result<Vec<Examined>, Problem> {
        // Judged first, all of them: nothing is decoded for an upload that is refused by its first bytes.
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

    /// What a file is by its first bytes.
    fn judge(&self, claim: &Claim, head: &[u8]) -> Result<Verdict, Problem> {
        let name = claim.name.as_str();
        let label = claim.label.as_ref().map(Label::as_str);
        let verdict = sniff::judge(label, claim.kind, name, head)?;
        // A medium that only the label claims comes in where unknown bytes may, too: else any bytes would pass for it.
        let is_claimed = verdict.sniffed.is_none()
            && ["image/", "video/", "audio/"].iter().any(|family| verdict.mime.starts_with(family));
        if self.types.allow(&verdict.mime) && (!is_claimed || self.types.allow(UNKNOWN)) {
            return Ok(verdict);
        }
        Err(Problem::new(
            ErrorCode::InvalidMedia,
            format!("The file {} is of the type {}, which may not be uploaded here.", shown(name), verdict.mime),
        )
        .with_hint(format!("Types that may: {}.", self.types)))
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
