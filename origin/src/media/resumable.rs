//! Uploads that can be resumed: begun, gone on with by one request at a time, given up, forgotten.
//!
//! An upload is a row and a file in the staging of this origin. The row says what the file will be; how far it is,
//! its length alone says, read after all of it was written through to the disk. So nothing has to be kept in step,
//! and a crash at any moment leaves an upload that can be gone on with. Knows nothing of HTTP.

mod running;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, shown};
use shared::limits::{IMAGE_FILE_MAX_BYTES, TUS_OPEN_MAX_COUNT, TUS_OPEN_MAX_LARGEST};
use shared::media::MediaKind;
use shared::operation::tus::{TusFile, TusId, TusNew};
use shared::upload::{Existing, Label};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::running::Running;
pub use self::turn::Turn;
use super::image::ImageFault;
use super::store::{Held, Store, StoreError};
use crate::clock::now;
use crate::config::MediaTypes;
use crate::database::media::{MediaTable, TableError, UploadRow};

/// How long a request that may interrupt another one waits for it to let go.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it looks.
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(20);

/// How often expired uploads are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Uploads that are swept at once.
const SWEPT_MAX_COUNT: usize = 500;

/// Files without a row are older than any upload by this, before they are swept.
const STRANGER_GRACE: Duration = Duration::from_secs(60 * 60);

/// What uploads are held to.
#[derive(Clone, Debug)]
pub struct UploadTerms {
    /// Bytes of one.
    pub max_bytes: u64,
    /// How long one waits for its next byte.
    pub lifetime: Duration,
    /// Types that may come in.
    pub types: MediaTypes,
}

/// The uploads. Clones are cheap and share everything.
#[derive(Clone, Debug)]
pub struct ResumableUploads {
    store: Store,
    table: MediaTable,
    terms: Arc<UploadTerms>,
    running: Running,
}

/// What a request does about another one that has the upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It lets that one be.
    Yields,
    /// It asks that one to stop: its caller has come back, so that one's connection is dead.
    TakesOver,
}

impl ResumableUploads {
    /// Uploads over this store and these rows.
    #[must_use]
    pub fn new(store: Store, table: MediaTable, terms: UploadTerms) -> Self {
        Self { store, table, terms: Arc::new(terms), running: Running::default() }
    }

    /// Bytes that an upload may have.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.terms.max_bytes
    }

    /// Begins an upload. What can't become a file is refused here, before a byte of it is sent.
    ///
    /// # Errors
    /// `body_too_large`, `invalid_media`, `media_exists`, `rate_limited`; the store or MariaDB fail.
    pub async fn begin(&self, project: &ProjectName, new: &TusNew) -> Result<UploadRow, Problem> {
        self.check_length(new)?;
        self.check_type(&new.file)?;
        self.check_name(project, &new.file).await?;
        let begun_at = now();
        let row = UploadRow {
            id: Uuid::now_v7(),
            project: project.clone(),
            length: new.length,
            received: 0,
            metadata: new.metadata.to_string(),
            media_id: None,
            created_at: begun_at,
            expires_at: self.expiry(begun_at),
        };
        // The file first: without its row it is nothing, and swept.
        let staging = self.store.stage_named(row.id).await;
        let made = staging.map_err(StoreError::into_problem)?.suspend().await;
        made.map_err(StoreError::into_problem)?;
        let (most, most_bytes) = (TUS_OPEN_MAX_COUNT, self.open_max_bytes());
        let recorded = self.table.insert_upload(&row, most, most_bytes).await;
        match recorded {
            Ok(true) => Ok(row),
            Ok(false) => {
                self.discard(row.id).await;
                Err(self.too_many())
            }
            Err(error) => {
                self.discard(row.id).await;
                Err(error.into_problem())
            }
        }
    }

    /// Takes an upload for one request. One that is over has no file, but tells what it has become.
    ///
    /// # Errors
    /// `media_not_found`, `upload_locked`; the store or MariaDB fail.
    pub async fn take(&self, project: &ProjectName, id: TusId, manner: Manner) -> Result<Turn, Problem> {
        self.row(project, id).await?;
        let held = self.hold(id, manner).await?;
        // Asked again: the request that had it may have ended it.
        let row = self.row(project, id).await?;
        match held {
            held if row.media_id.is_some() => {
                // Its origin was killed before it had removed it.
                if held.is_some() {
                    self.discard(row.id).await;
                }
                Ok(Turn::over(self.clone(), row))
            }
            Some(held) if held.length() >= row.received && held.length() <= row.length => {
                Ok(Turn::of(self.clone(), row, held))
            }
            _ => {
                // Its disk is another origin's, or was lost. Another origin's row is not ours to remove.
                tracing::warn!(%id, "an upload's file is not here");
                Err(id.unknown())
            }
        }
    }

    /// Removes what has expired, again and again until `stop`.
    pub async fn sweep_always(self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                swept = self.sweep() => if let Err(error) = swept {
                    tracing::warn!(%error, "expired uploads could not be swept");
                }
            }
        }
    }

    /// Removes what has expired. Several origins may do so at once.
    pub async fn sweep(&self) -> Result<(), TableError> {
        loop {
            let expired = self.table.expired_uploads(now(), SWEPT_MAX_COUNT).await?;
            for id in &expired {
                self.table.delete_upload(*id).await?;
                self.discard(*id).await;
            }
            if expired.len() < SWEPT_MAX_COUNT {
                break;
            }
        }
        let strangers = self.terms.lifetime + STRANGER_GRACE;
        if let Err(error) = self.store.sweep_kept(strangers).await {
            tracing::warn!(%error, "files of uploads could not be swept");
        }
        Ok(())
    }

    async fn row(&self, project: &ProjectName, id: TusId) -> Result<UploadRow, Problem> {
        let found = self.table.upload(project, id.get()).await;
        found.map_err(TableError::into_problem)?.filter(|row| row.expires_at > now()).ok_or_else(|| id.unknown())
    }

    /// `None` if there is no file.
    async fn hold(&self, id: TusId, manner: Manner) -> Result<Option<Held>, Problem> {
        let deadline = tokio::time::Instant::now() + TAKE_OVER_TIMEOUT;
        loop {
            match self.store.hold(id.get()).await {
                Ok(Some(held)) => return Ok(Some(held)),
                Ok(None) if manner == Manner::Yields => return Err(locked()),
                Ok(None) if tokio::time::Instant::now() >= deadline => return Err(locked()),
                Ok(None) => {}
                Err(StoreError::NotFound) => return Ok(None),
                Err(error) => return Err(error.into_problem()),
            }
            self.running.interrupt(id.get());
            tokio::time::sleep(TAKE_OVER_PAUSE).await;
        }
    }

    /// Removes an upload's file. One that stays is swept later.
    async fn discard(&self, id: Uuid) {
        if let Err(error) = self.store.discard(id).await {
            tracing::warn!(%error, %id, "the file of an upload could not be removed");
        }
    }

    /// Bytes that all uploads under way of one project may have together, once they are whole.
    fn open_max_bytes(&self) -> u64 {
        self.terms.max_bytes.saturating_mul(TUS_OPEN_MAX_LARGEST)
    }

    fn expiry(&self, from: u64) -> u64 {
        from.saturating_add(self.terms.lifetime.as_secs())
    }

    fn check_length(&self, new: &TusNew) -> Result<(), Problem> {
        let (length, most) = (new.length, self.terms.max_bytes);
        if length > most {
            return Err(Problem::new(
                ErrorCode::BodyTooLarge,
                format!("An upload of {length} bytes is larger than {most}, the largest that is taken."),
            ));
        }
        match new.file.kind {
            MediaKind::Image if length > IMAGE_FILE_MAX_BYTES => {
                Err(ImageFault::FileTooLarge(length).problem(new.file.name.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// Types that lie about themselves are found by their bytes; this is for those that tell the truth, and of
    /// whose kind nothing may come in.
    fn check_type(&self, file: &TusFile) -> Result<(), Problem> {
        let Some(Label::Mime(mime)) = &file.label else {
            return Ok(());
        };
        let kind = mime.split('/').next().unwrap_or_default();
        // Sounds and films, and containers of them, pass for each other.
        let is_plain = matches!(kind, "image" | "text" | "font" | "model");
        if !is_plain || self.terms.types.allow_some_of(kind) {
            return Ok(());
        }
        Err(Problem::new(
            ErrorCode::InvalidMedia,
            format!("Files of the type {} may not be uploaded here.", shown(mime)),
        )
        .with_hint(format!("Types that may: {}.", self.terms.types)))
    }

    fn too_many(&self) -> Problem {
        Problem::new(
            ErrorCode::RateLimited,
            format!(
                "The upload goes beyond {TUS_OPEN_MAX_COUNT} uploads and {} bytes, the most that one project may have \
                 under way.",
                self.open_max_bytes()
            ),
        )
        .with_hint("Finish some, or give them up with DELETE; those that nobody goes on with expire.")
    }

    async fn check_name(&self, project: &ProjectName, file: &TusFile) -> Result<(), Problem> {
        if file.existing == Existing::IsReplaced {
            return Ok(());
        }
        let names = std::slice::from_ref(&file.name);
        let taken = self.table.taken(project, &file.folder, names).await;
        match taken.map_err(TableError::into_problem)? {
            None => Ok(()),
            Some(name) => Err(crate::database::media::exists(&file.folder, &name)),
        }
    }
}

fn locked() -> Problem {
    Problem::new(ErrorCode::UploadLocked, "Another request is busy with this upload.")
        .with_hint("Ask with HEAD how far it is, then go on there.")
}
