//! One request's turn at an upload: it alone may write, and what it wrote stays, however it ends.

use shared::error::{ErrorCode, Problem};
use shared::limits::TUS_FINISHED_SECONDS;
use shared::operation::media::MediaId;
use shared::operation::tus::{TusFile, TusId};
use tokio_util::sync::CancellationToken;

use super::ResumableUploads;
use super::running::Place;
use crate::clock::now;
use crate::database::media::{FinishedUpload, TableError, UploadRow};
use crate::media::store::{Held, Staged, Staging, StoreError};

/// Bytes after which what came is written through to the disk: what a loss of power may cost. At 200 MB/s it waits
/// for the disk three times a second.
const FLUSH_BYTES: u64 = 64 * 1024 * 1024;

/// A turn. Dropping it lets the next one have the upload.
#[derive(Debug)]
pub struct Turn {
    uploads: ResumableUploads,
    row: UploadRow,
    /// Bytes that came; those that are not flushed are none yet to anybody else.
    offset: u64,
    flushed: u64,
    staging: Option<Staging>,
    /// Dropped before the hold: whoever gets that next enters a place of its own.
    place: Option<Place>,
    _held: Option<Held>,
}

impl Turn {
    pub(super) fn of(uploads: ResumableUploads, row: UploadRow, held: Held) -> Self {
        Self {
            offset: held.length(),
            flushed: held.length(),
            place: Some(uploads.running.enter(row.id)),
            _held: Some(held),
            staging: None,
            uploads,
            row,
        }
    }

    pub(super) fn over(uploads: ResumableUploads, row: UploadRow) -> Self {
        Self { offset: row.length, flushed: row.length, place: None, _held: None, staging: None, uploads, row }
    }

    /// The upload.
    #[must_use]
    pub fn id(&self) -> TusId {
        self.row.id.into()
    }

    /// What is recorded of it.
    #[must_use]
    pub fn row(&self) -> &UploadRow {
        &self.row
    }

    /// Bytes that it has.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file that it has become.
    #[must_use]
    pub fn file(&self) -> Option<MediaId> {
        self.row.media_id
    }

    /// Whether its last byte is there and it is still to become a file.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.row.media_id.is_none() && self.offset == self.row.length
    }

    /// Is cancelled when another request of the same caller wants the upload.
    #[must_use]
    pub fn interruption(&self) -> CancellationToken {
        self.place.as_ref().map_or_else(CancellationToken::new, |place| place.token().clone())
    }

    /// Checks that bytes belong where the upload has come to.
    ///
    /// # Errors
    /// `upload_offset_mismatch`; `body_too_large` if more is announced than it will have.
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

    /// Lets the upload live on from now.
    ///
    /// # Errors
    /// `media_not_found` if it was swept; MariaDB fails.
    pub async fn prolong(&mut self) -> Result<(), Problem> {
        let expires_at = self.uploads.expiry(now());
        let table = &self.uploads.table;
        let lives = table.advance_upload(self.row.id, self.flushed, expires_at).await;
        if !lives.map_err(TableError::into_problem)? {
            return Err(self.id().unknown());
        }
        self.row.expires_at = expires_at;
        self.row.received = self.flushed;
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `body_too_large` if they are more than the upload will have; the store fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if bytes.len() as u64 > self.row.length - self.offset {
            return Err(self.excess());
        }
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => self.resumed().await?,
        };
        let staging = self.staging.insert(staging);
        staging.write(bytes).await.map_err(StoreError::into_problem)?;
        self.offset += bytes.len() as u64;
        if self.offset - self.flushed >= FLUSH_BYTES {
            self.flush().await?;
            self.prolong().await?;
        }
        Ok(())
    }

    /// Writes what came through to the disk: from here on it is the upload's.
    ///
    /// # Errors
    /// The store fails.
    pub async fn flush(&mut self) -> Result<(), Problem> {
        let Some(staging) = self.staging.take() else {
            return Ok(());
        };
        self.flushed = staging.suspend().await.map_err(StoreError::into_problem)?;
        Ok(())
    }

    /// Takes back what came since `offset`.
    ///
    /// # Errors
    /// The store fails.
    pub async fn take_back(&mut self, offset: u64) -> Result<(), Problem> {
        self.flush().await?;
        self.offset = offset;
        self.staging = Some(self.resumed().await?);
        self.flush().await?;
        self.prolong().await
    }

    /// The whole file, and what it is to be. It stays where it is until the upload is [over](Self::end).
    ///
    /// # Errors
    /// The store fails; the metadata are none that were taken.
    pub async fn staged(&mut self) -> Result<(Staged, TusFile), Problem> {
        let file = TusFile::from_metadata(&self.row.metadata)?;
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => self.resumed().await?,
        };
        let staged = staging.finish().await.map_err(StoreError::into_problem)?;
        self.flushed = self.offset;
        Ok((staged, file))
    }

    /// What the transaction that records its file is to know.
    #[must_use]
    pub fn finished(&self) -> FinishedUpload {
        FinishedUpload { id: self.row.id, expires_at: now() + TUS_FINISHED_SECONDS }
    }

    /// Asks again which file the upload has become: where MariaDB fell silent, it may have happened all the same.
    ///
    /// # Errors
    /// MariaDB fails.
    pub async fn refresh(&mut self) -> Result<Option<MediaId>, Problem> {
        self.row = self.uploads.row(&self.row.project, self.id()).await?;
        Ok(self.row.media_id)
    }

    /// The upload has become this file.
    pub async fn end(mut self, file: MediaId) -> UploadRow {
        self.uploads.discard(self.row.id).await;
        self.row.media_id = Some(file);
        self.row.expires_at = now() + TUS_FINISHED_SECONDS;
        self.row
    }

    /// Gives the upload up: row first, so that nobody goes on with what is being removed.
    ///
    /// # Errors
    /// MariaDB fails.
    pub async fn give_up(self) -> Result<(), Problem> {
        let gone = self.uploads.table.delete_upload(self.row.id).await;
        gone.map_err(TableError::into_problem)?;
        self.uploads.discard(self.row.id).await;
        Ok(())
    }

    async fn resumed(&self) -> Result<Staging, Problem> {
        let resumed = self.uploads.store.resume(self.row.id, self.offset).await;
        resumed.map_err(StoreError::into_problem)
    }

    fn excess(&self) -> Problem {
        Problem::new(
            ErrorCode::BodyTooLarge,
            format!("The body goes beyond the {} bytes that the upload was begun with.", self.row.length),
        )
        .with_hint("None of it was kept.")
    }
}
