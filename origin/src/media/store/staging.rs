//! Staged files: written and hashed in pieces on blocking threads, and deleted when they are dropped unpublished,
//! except the files of resumable uploads.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Effect;
use super::error::StoreError;
use super::file::StagedFile;
use super::process_folder::{self, ProcessFolder};
use crate::files::private_directory;

/// The size of a piece. Moving it to a blocking thread takes 10 µs, writing it 250 µs. An upload holds two pieces.
pub const PIECE_BYTES: usize = 256 * 1024;

/// The bytes kept in memory for type detection, which needs at most 4 KiB.
pub const HEAD_BYTES: usize = 4 * 1024;

#[derive(Debug)]
pub struct Staging {
    job: Job,
    buffer: Vec<u8>,
    spare: Vec<u8>,
    size: u64,
    head: Vec<u8>,
}

#[derive(Debug)]
enum Job {
    Idle(Box<StagedFile>),
    Running(JoinHandle<FinishedWrite>),
    Failed,
}

#[derive(Debug)]
struct FinishedWrite {
    file: Box<StagedFile>,
    buffer: Vec<u8>,
    outcome: std::io::Result<()>,
}

impl Staging {
    pub(super) fn new(file: StagedFile) -> Self {
        Self {
            size: file.written(),
            head: file.head().to_vec(),
            job: Job::Idle(Box::new(file)),
            buffer: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Writes through a buffer, so a later call may return an error of the disk. After an error, all later calls fail.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            let room = PIECE_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let head_room = HEAD_BYTES.saturating_sub(self.head.len());
            self.head.extend_from_slice(&now[..head_room.min(now.len())]);
            self.buffer.extend_from_slice(now);
            self.size += now.len() as u64;
            bytes = later;
            if self.buffer.len() == PIECE_BYTES {
                self.hand_over(StagedFile::write).await?;
            }
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Staged, StoreError> {
        self.hand_over(move |file, piece| file.finish(piece)).await?;
        self.wait_for_write().await?;
        let Job::Idle(mut file) = mem::replace(&mut self.job, Job::Failed) else {
            return Err(failed());
        };
        let sha256 = file.take_sha256().ok_or_else(failed)?;
        Ok(Staged { file: Some(file), size: self.size, sha256, head: mem::take(&mut self.head) })
    }

    /// Syncs the file, and returns its size in bytes. The file of a resumable upload stays, even after an error.
    pub async fn suspend(mut self) -> Result<u64, StoreError> {
        self.hand_over(move |file, piece| file.suspend(piece)).await?;
        self.wait_for_write().await?;
        Ok(self.size)
    }

    /// Waits until the previous piece is written, and returns the error of that write. Then starts `work` on the buffered
    /// piece without waiting for it; the next `wait_for_write` returns the error of `work`.
    async fn hand_over(
        &mut self,
        work: impl FnOnce(&mut StagedFile, &[u8]) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), StoreError> {
        self.wait_for_write().await?;
        let Job::Idle(mut file) = mem::replace(&mut self.job, Job::Failed) else {
            return Err(failed());
        };
        let buffer = mem::replace(&mut self.buffer, mem::take(&mut self.spare));
        self.job = Job::Running(spawn_blocking(move || {
            let outcome = work(&mut file, &buffer);
            FinishedWrite { file, buffer, outcome }
        }));
        Ok(())
    }

    async fn wait_for_write(&mut self) -> Result<(), StoreError> {
        let Job::Running(handle) = &mut self.job else {
            return Ok(());
        };
        let done = handle.await;
        self.job = Job::Failed;
        let mut done = done?;
        if let Err(error) = done.outcome {
            drop_elsewhere(done.file);
            return Err(error.into());
        }
        self.job = Job::Idle(done.file);
        done.buffer.clear();
        self.spare = done.buffer;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        match mem::replace(&mut self.job, Job::Failed) {
            Job::Idle(file) => drop_elsewhere(file),
            Job::Running(handle) => {
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move {
                        if let Ok(done) = handle.await {
                            drop_elsewhere(done.file);
                        }
                    });
                }
            }
            Job::Failed => {}
        }
    }
}

fn failed() -> StoreError {
    StoreError::other("an earlier piece of the file was not written")
}

/// Drops the file on a blocking thread, since deleting a large file from the disk takes a while.
fn drop_elsewhere(file: Box<StagedFile>) {
    match Handle::try_current() {
        Ok(runtime) => {
            runtime.spawn_blocking(move || drop(file));
        }
        Err(_) => drop(file),
    }
}

#[derive(Debug)]
pub struct Staged {
    /// The file; `None` only while this value is dropped or consumed.
    file: Option<Box<StagedFile>>,
    size: u64,
    sha256: [u8; 32],
    head: Vec<u8>,
}

impl Staged {
    pub fn path(&self) -> &Path {
        self.file.as_deref().map_or(Path::new(""), StagedFile::path)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    pub(super) fn into_file(mut self) -> Option<Box<StagedFile>> {
        self.file.take()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            drop_elsewhere(file);
        }
    }
}

const KEPT: &str = "tus";

#[derive(Debug)]
pub(super) struct StagingFolder {
    path: PathBuf,
    own: Arc<ProcessFolder>,
}

impl StagingFolder {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        private_directory(&path.join(KEPT))?;
        let own = Arc::new(ProcessFolder::make(&path)?);
        Ok(Self { path, own })
    }

    pub(super) fn sweep(&self, effect: Effect) -> io::Result<usize> {
        process_folder::sweep(&self.path, KEPT, effect)
    }

    pub(super) fn kept(&self) -> PathBuf {
        self.path.join(KEPT)
    }

    pub(super) fn new_file(&self) -> StagedFile {
        StagedFile::new_in(Arc::clone(&self.own))
    }
}

/// The exclusive lock on the file of a resumable upload, valid for all processes that share the disk, until the locking
/// process ends.
#[derive(Debug)]
pub struct Held {
    _file: File,
    length: u64,
}

impl Held {
    /// Returns `None` if another request or process has the lock.
    pub(super) fn try_lock(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // The previous lock holder may have deleted the file.
        let (ours, named) = (file.metadata()?, std::fs::metadata(path)?);
        if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // The file may contain bytes that a killed process wrote but did not sync to the disk.
        file.sync_all()?;
        Ok(Some(Self { length: ours.len(), _file: file }))
    }

    /// Returns the file's length. All these bytes are synced to the disk.
    pub fn length(&self) -> u64 {
        self.length
    }
}
