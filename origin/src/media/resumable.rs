//! Resumable uploads. An upload has a row with the declared properties of the file and, until it is finished, a file on
//! the disk of the origin that created the upload. The length of that file, once synced, is the upload's offset, so an
//! upload can be resumed after a crash at any moment.

mod locked_upload;

use std::sync::Arc;
use std::time::Duration;

use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, shown};
use shared::limits::{IMAGE_FILE_MAX_BYTES, TUS_EMPTY_SECONDS, TUS_OPEN_MAX_COUNT, TUS_OPEN_MAX_LARGEST};
use shared::media::MediaKind;
use shared::operation::tus::{TusFile, TusId, TusNew};
use shared::upload::{Existing, Label};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::locked_upload::LockedUpload;
use self::locked_upload::RunningRequests;
use super::image::ImageFault;
use super::store::{Held, Store, StoreError};
use crate::clock::now;
use crate::config::MediaTypes;
use crate::database::media::{ChangeableFiles, MediaTable, TableError, UploadRow, Uploader};

/// How long a request that interrupts the upload's current request waits for the upload's lock.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(5);

const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(20);

const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

const SWEPT_MAX_COUNT: usize = 500;

/// A time beyond the lifetime of uploads. Sweeps delete a file whose last write is older than both together, whether or
/// not the upload still has a row.
const ORPHAN_GRACE: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Debug)]
pub struct UploadTerms {
    pub max_bytes: u64,
    /// The time after which an unfinished upload expires, counted from its creation or last [`LockedUpload::prolong`].
    pub lifetime: Duration,
    pub types: MediaTypes,
}

#[derive(Clone, Debug)]
pub struct ResumableUploads {
    store: Store,
    table: MediaTable,
    terms: Arc<UploadTerms>,
    running: RunningRequests,
}

/// What a request does if another request has locked the upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLocked {
    Fail,
    /// The request cancels the request that has the lock, if that runs in this process, and waits up to 5 seconds for
    /// the lock: the client has reconnected, so its old connection is dead.
    TakeOver,
}

impl ResumableUploads {
    pub fn new(store: Store, table: MediaTable, terms: UploadTerms) -> Self {
        Self { store, table, terms: Arc::new(terms), running: RunningRequests::default() }
    }

    pub fn running(&self) -> usize {
        self.running.count()
    }

    pub fn max_bytes(&self) -> u64 {
        self.terms.max_bytes
    }

    /// Checks the declared size, type and name before any bytes are sent.
    pub async fn begin(
        &self,
        project: &ProjectName,
        new: &TusNew,
        uploader: Option<Uploader>,
    ) -> Result<UploadRow, Problem> {
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
            expires_at: self.expiry(begun_at, 0),
            uploader,
        };
        // The file is created before the row: a sweep deletes a file without a row, while a row without a file would be
        // a broken upload.
        self.store.stage_named(row.id).await?.suspend().await?;
        match self.record(&row).await {
            Ok(true) => Ok(row),
            Ok(false) => {
                self.discard(row.id).await;
                Err(self.too_many())
            }
            Err(error) => {
                self.discard(row.id).await;
                Err(error.into())
            }
        }
    }

    /// Records an upload; returns false if there are too many. If callers with roles have too many, deletes some of
    /// theirs that have received nothing.
    async fn record(&self, row: &UploadRow) -> Result<bool, TableError> {
        let (most, most_bytes) = (TUS_OPEN_MAX_COUNT, self.open_max_bytes());
        loop {
            let is_recorded = self.table.insert_upload(row, most, most_bytes).await?;
            if is_recorded || row.uploader.is_none() {
                return Ok(is_recorded);
            }
            let Some(empty) = self.table.take_empty_upload(&row.project, row.created_at).await? else {
                return Ok(false);
            };
            self.discard(empty).await;
        }
    }

    /// Locks an upload for one request. A finished upload has no file any more, and is returned without a lock.
    pub async fn lock(
        &self,
        project: &ProjectName,
        scope: ChangeableFiles,
        id: TusId,
        on_locked: OnLocked,
    ) -> Result<LockedUpload, Problem> {
        let row = self.row(project, id).await?;
        if !scope.has(row.uploader) {
            return Err(id.unknown());
        }
        let held = self.lock_file(id, on_locked).await?;
        // The row is read again, since the request that had the lock before may have finished the upload.
        let row = self.row(project, id).await?;
        match held {
            held if row.media_id.is_some() => {
                // An origin that was killed after finishing the upload has left the file.
                if held.is_some() {
                    self.discard(row.id).await;
                }
                Ok(LockedUpload::of_finished(self.clone(), row))
            }
            Some(held) if held.length() >= row.received && held.length() <= row.length => {
                Ok(LockedUpload::of_unfinished(self.clone(), row, held))
            }
            _ => {
                // The file is lost, has a wrong length, or is on another origin's disk. The row is not deleted, because
                // the other origin may still use it.
                tracing::warn!(%id, "the file of a resumable upload is not on this origin");
                Err(id.unknown())
            }
        }
    }

    /// Sweeps at once, then every 10 minutes, until `stop` is cancelled.
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

    /// Removes the rows of expired uploads, finished or not, their files on this origin's disk, and files that were
    /// last written longer ago than `ORPHAN_GRACE` allows. Several origins may call this concurrently.
    pub async fn sweep(&self) -> Result<(), TableError> {
        loop {
            let expired = self.table.expired_uploads(now(), SWEPT_MAX_COUNT).await?;
            for id in &expired {
                self.table.delete_upload(None, *id).await?;
                self.discard(*id).await;
            }
            if expired.len() < SWEPT_MAX_COUNT {
                break;
            }
        }
        let older_than = self.terms.lifetime + ORPHAN_GRACE;
        if let Err(error) = self.store.sweep_kept(older_than).await {
            tracing::warn!(%error, "files of uploads could not be swept");
        }
        Ok(())
    }

    async fn row(&self, project: &ProjectName, id: TusId) -> Result<UploadRow, Problem> {
        let found = self.table.upload(project, id.get()).await?;
        found.filter(|row| row.expires_at > now()).ok_or_else(|| id.unknown())
    }

    async fn lock_file(&self, id: TusId, on_locked: OnLocked) -> Result<Option<Held>, Problem> {
        let deadline = tokio::time::Instant::now() + TAKE_OVER_TIMEOUT;
        loop {
            match self.store.hold(id.get()).await {
                Ok(Some(held)) => return Ok(Some(held)),
                Ok(None) if on_locked == OnLocked::Fail => return Err(locked()),
                Ok(None) if tokio::time::Instant::now() >= deadline => return Err(locked()),
                Ok(None) => {}
                Err(StoreError::NotFound) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            self.running.interrupt(id.get());
            tokio::time::sleep(LOCK_RETRY_PAUSE).await;
        }
    }

    /// Removes the file of the upload `id`. An error is only logged, since a later sweep removes the file.
    async fn discard(&self, id: Uuid) {
        if let Err(error) = self.store.discard(id).await {
            tracing::warn!(%error, %id, "the file of an upload could not be removed");
        }
    }

    fn open_max_bytes(&self) -> u64 {
        self.terms.max_bytes.saturating_mul(TUS_OPEN_MAX_LARGEST)
    }

    fn expiry(&self, from: u64, received: u64) -> u64 {
        let lifetime = self.terms.lifetime.as_secs();
        from.saturating_add(if received == 0 { lifetime.min(TUS_EMPTY_SECONDS) } else { lifetime })
    }

    fn check_length(&self, new: &TusNew) -> Result<(), Problem> {
        let (length, most) = (new.length, self.terms.max_bytes);
        if length > most {
            return Err(Problem::new(
                ErrorCode::BodyTooLarge,
                format!("An upload of {length} bytes exceeds the maximum of {most} bytes."),
            ));
        }
        match new.file.kind {
            MediaKind::Image if length > IMAGE_FILE_MAX_BYTES => {
                Err(ImageFault::FileTooLarge(length).problem(new.file.name.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// Checks the declared type if it is an image, text, font or model type, but no file extension. The content of any
    /// file is checked once the upload is complete.
    fn check_type(&self, file: &TusFile) -> Result<(), Problem> {
        let Some(Label::Mime(mime)) = &file.label else {
            return Ok(());
        };
        let kind = mime.split('/').next().unwrap_or_default();
        // Audio, video and application types share containers, so only the content tells which of them a file has.
        let is_plain = matches!(kind, "image" | "text" | "font" | "model");
        if !is_plain || self.terms.types.allow_some_of(kind) {
            return Ok(());
        }
        Err(Problem::new(
            ErrorCode::InvalidMedia,
            format!("Files of the type {} may not be uploaded here.", shown(mime)),
        )
        .with_hint(format!("Allowed types: {}.", self.terms.types)))
    }

    fn too_many(&self) -> Problem {
        Problem::new(
            ErrorCode::RateLimited,
            format!(
                "The upload goes beyond {TUS_OPEN_MAX_COUNT} uploads and {} bytes, the most that full keys, and callers with \
                 roles, may each have under way in a project.",
                self.open_max_bytes()
            ),
        )
        .with_hint("Finish uploads, or cancel them with DELETE; abandoned uploads expire.")
    }

    async fn check_name(&self, project: &ProjectName, file: &TusFile) -> Result<(), Problem> {
        if file.existing == Existing::IsReplaced {
            return Ok(());
        }
        let names = std::slice::from_ref(&file.name);
        match self.table.taken(project, &file.folder, names).await? {
            None => Ok(()),
            Some(name) => Err(crate::database::media::exists(&file.folder, &name)),
        }
    }
}

fn locked() -> Problem {
    Problem::new(ErrorCode::UploadLocked, "Another request is busy with this upload.")
        .with_hint("Ask with HEAD how far it is, then go on there.")
}
