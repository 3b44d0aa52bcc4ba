//! One request's exclusive access to a resumable upload. Received bytes stay if the client disconnects or another
//! request takes over, since they are flushed then; if the process is killed, bytes since the last flush may be lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use shared::error::{ErrorCode, Problem};
use shared::limits::TUS_FINISHED_SECONDS;
use shared::operation::media::MediaId;
use shared::operation::tus::{TusFile, TusId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ResumableUploads;
use crate::clock::now;
use crate::database::media::{FinishedUpload, UploadRow};
use crate::media::store::{Held, Staged, Staging};

/// The number of received bytes between two syncs to the disk. A power failure loses about this many bytes at most. At
/// 200 MB/s, there are three syncs a second.
const FLUSH_BYTES: u64 = 64 * 1024 * 1024;

/// A lock on an upload, released on drop. Dropping may lose written bytes that were not [flushed](Self::flush). A
/// finished upload has no lock.
#[derive(Debug)]
pub struct LockedUpload {
    uploads: ResumableUploads,
    row: UploadRow,
    /// The number of bytes received; the first `flushed` of them are synced to the disk.
    offset: u64,
    flushed: u64,
    staging: Option<Staging>,
    /// The entry in `RunningRequests`. Declared before `_held`, so that the entry is removed before the lock is
    /// released.
    running: Option<RunningRequest>,
    _held: Option<Held>,
}

impl LockedUpload {
    pub(super) fn of_unfinished(uploads: ResumableUploads, row: UploadRow, held: Held) -> Self {
        Self {
            offset: held.length(),
            flushed: held.length(),
            running: Some(uploads.running.register(row.id)),
            _held: Some(held),
            staging: None,
            uploads,
            row,
        }
    }

    pub(super) fn of_finished(uploads: ResumableUploads, row: UploadRow) -> Self {
        Self { offset: row.length, flushed: row.length, running: None, _held: None, staging: None, uploads, row }
    }

    pub fn id(&self) -> TusId {
        self.row.id.into()
    }

    pub fn row(&self) -> &UploadRow {
        &self.row
    }

    /// Returns the number of received bytes, including those that are not synced to the disk yet.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn file(&self) -> Option<MediaId> {
        self.row.media_id
    }

    pub fn is_complete(&self) -> bool {
        self.row.media_id.is_none() && self.offset == self.row.length
    }

    /// Returns a token that is cancelled when another request of this process takes over; never for a finished upload.
    pub fn interruption(&self) -> CancellationToken {
        self.running.as_ref().map_or_else(CancellationToken::new, |running| running.token().clone())
    }

    /// Checks the offset of a request. `announced` is the body's length in bytes, if known.
    pub fn expect(&self, offset: u64, announced: Option<u64>) -> Result<(), Problem> {
        if offset != self.offset {
            return Err(Problem::new(
                ErrorCode::UploadOffsetMismatch,
                format!("The upload has come to {}, the bytes are for {offset}.", self.offset),
            )
            .with_hint("Ask with HEAD how far it is, then go on there."));
        }
        match announced {
            Some(bytes) if bytes > self.row.length - self.offset => Err(self.excess()),
            _ => Ok(()),
        }
    }

    /// Writes the number of synced bytes to the upload's row, and restarts the upload's lifetime.
    pub async fn prolong(&mut self) -> Result<(), Problem> {
        let expires_at = self.uploads.expiry(now(), self.flushed);
        let table = &self.uploads.table;
        if !table.advance_upload(&self.row, self.flushed, expires_at).await? {
            return Err(self.id().unknown());
        }
        self.row.expires_at = expires_at;
        self.row.received = self.flushed;
        Ok(())
    }

    /// Appends bytes to the upload's file through a buffer. Syncs the file and [prolongs](Self::prolong) the upload
    /// after every 64 MiB, and after the first bytes, since an empty upload may be removed to make room.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if bytes.len() as u64 > self.row.length - self.offset {
            return Err(self.excess());
        }
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => self.resumed().await?,
        };
        let staging = self.staging.insert(staging);
        staging.write(bytes).await?;
        self.offset += bytes.len() as u64;
        if self.flushed == 0 || self.offset - self.flushed >= FLUSH_BYTES {
            self.flush().await?;
            self.prolong().await?;
        }
        Ok(())
    }

    /// Syncs the received bytes to the disk. Does not change the upload's row; see [`prolong`](Self::prolong).
    pub async fn flush(&mut self) -> Result<(), Problem> {
        let Some(staging) = self.staging.take() else {
            return Ok(());
        };
        self.flushed = staging.suspend().await?;
        Ok(())
    }

    /// Truncates the upload's file to `offset` bytes, to undo writes, and then [prolongs](Self::prolong) the upload,
    /// which records the new length in the upload's row.
    pub async fn take_back(&mut self, offset: u64) -> Result<(), Problem> {
        self.flush().await?;
        self.offset = offset;
        self.staging = Some(self.resumed().await?);
        self.flush().await?;
        self.prolong().await
    }

    /// Syncs and closes the upload's file, and returns the file with its declared properties. Does not check that the
    /// upload is complete: see [`is_complete`](Self::is_complete). Dropping the returned file does not delete it:
    /// [`end`](Self::end) and [`give_up`](Self::give_up) do.
    pub async fn staged(&mut self) -> Result<(Staged, TusFile), Problem> {
        let file = TusFile::from_metadata(&self.row.metadata)?;
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => self.resumed().await?,
        };
        let staged = staging.finish().await?;
        self.flushed = self.offset;
        Ok((staged, file))
    }

    /// Returns the upload's id and new expiry time, which mark the upload as finished in the transaction that writes the
    /// media file's row.
    pub fn finished(&self) -> FinishedUpload {
        FinishedUpload { id: self.row.id, expires_at: now() + TUS_FINISHED_SECONDS }
    }

    /// Reads the row again, and returns the media file's id; `None` while the upload is unfinished. An earlier attempt
    /// may have finished the upload although MariaDB's answer was lost.
    pub async fn refresh(&mut self) -> Result<Option<MediaId>, Problem> {
        self.row = self.uploads.row(&self.row.project, self.id()).await?;
        Ok(self.row.media_id)
    }

    /// Deletes the staged file after the upload has become the media file `file`, and returns the row of the finished
    /// upload. The transaction that wrote `file` must have updated the row in MariaDB.
    pub async fn end(mut self, file: MediaId) -> UploadRow {
        self.uploads.discard(self.row.id).await;
        self.row.media_id = Some(file);
        self.row.expires_at = now() + TUS_FINISHED_SECONDS;
        self.row
    }

    /// Deletes the upload: first its row, then its file, so that no request resumes an upload without a file. The media
    /// file of a finished upload stays.
    pub async fn give_up(self) -> Result<(), Problem> {
        self.uploads.table.delete_upload(Some(&self.row.project), self.row.id).await?;
        self.uploads.discard(self.row.id).await;
        Ok(())
    }

    async fn resumed(&self) -> Result<Staging, Problem> {
        Ok(self.uploads.store.resume(self.row.id, self.offset).await?)
    }

    fn excess(&self) -> Problem {
        Problem::new(
            ErrorCode::BodyTooLarge,
            format!("The body exceeds the {} bytes that the upload declared.", self.row.length),
        )
        .with_hint("The bytes of this request were discarded.")
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct RunningRequests {
    tokens: Arc<Mutex<HashMap<Uuid, CancellationToken>>>,
}

impl RunningRequests {
    pub(super) fn register(&self, id: Uuid) -> RunningRequest {
        let token = CancellationToken::new();
        self.locked(|tokens| tokens.insert(id, token.clone()));
        RunningRequest { running: self.clone(), id, token }
    }

    pub(super) fn interrupt(&self, id: Uuid) {
        self.locked(|tokens| {
            if let Some(token) = tokens.get(&id) {
                token.cancel();
            }
        });
    }

    pub(super) fn count(&self) -> usize {
        self.locked(|tokens| tokens.len())
    }

    fn locked<T>(&self, change: impl FnOnce(&mut HashMap<Uuid, CancellationToken>) -> T) -> T {
        change(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
pub(super) struct RunningRequest {
    running: RunningRequests,
    id: Uuid,
    token: CancellationToken,
}

impl RunningRequest {
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        // Only one request at a time locks an upload, so the entry belongs to this request.
        self.running.locked(|tokens| tokens.remove(&self.id));
    }
}
