//! Files that are still arriving: written in large pieces off the async threads, hashed as they pass, and gone again
//! unless they are published.
//!
//! Knows the local disk alone; where a finished file goes is the store's matter.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Effect;
use super::error::StoreError;
use super::file::StagedFile;
use super::process_folder::{self, ProcessFolder};
use crate::files::private_directory;

/// Bytes that are written and hashed at once. One piece costs a change of threads, some 10 µs; at 1 GB/s it keeps a
/// thread for 250 µs, so the change is noise, and two pieces (one filling, one being written) are all that an upload
/// holds.
pub const PIECE_BYTES: usize = 256 * 1024;

/// First bytes of a file that are kept at hand to tell what it is: libraries that do so look at 4 KiB or less.
pub const HEAD_BYTES: usize = 4 * 1024;

/// A file that is being written. Dropping it removes the file, unless it is one that can be resumed.
#[derive(Debug)]
pub struct Staging {
    job: Job,
    /// The piece that is being filled.
    buffer: Vec<u8>,
    /// The piece before it, empty again, so that two are all there ever are.
    spare: Vec<u8>,
    size: u64,
    head: Vec<u8>,
}

#[derive(Debug)]
enum Job {
    Idle(Box<StagedFile>),
    /// The piece before the one that is being filled is on its way to the disk.
    Running(JoinHandle<Done>),
    /// A piece was not written: nothing that follows can make the file whole.
    Failed,
}

#[derive(Debug)]
struct Done {
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

    /// Bytes written so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The first bytes written, [`HEAD_BYTES`] at most: what a file is can be told before the rest arrives.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Appends bytes. Returns when they are taken, not when they are on the disk: a fault of the disk shows at a later
    /// write, or at the end.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Other`], and from then on at every call.
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

    /// Writes what is left, through to the disk, and closes the file.
    ///
    /// # Errors
    /// As [`write`](Self::write); the file is then gone, unless it is one that can be resumed.
    pub async fn finish(mut self) -> Result<Staged, StoreError> {
        self.hand_over(move |file, piece| file.finish(piece)).await?;
        self.settle().await?;
        let Job::Idle(mut file) = mem::replace(&mut self.job, Job::Failed) else {
            return Err(failed());
        };
        let sha256 = file.take_sha256().ok_or_else(failed)?;
        Ok(Staged { file: Some(file), size: self.size, sha256, head: mem::take(&mut self.head) })
    }

    /// Writes what is left, through to the disk, and keeps the file to be resumed. Returns its size. A file that was not
    /// staged under a name is gone, as if dropped.
    ///
    /// # Errors
    /// As [`write`](Self::write); the file is kept with what was written of it.
    pub async fn suspend(mut self) -> Result<u64, StoreError> {
        self.hand_over(move |file, piece| file.suspend(piece)).await?;
        self.settle().await?;
        Ok(self.size)
    }

    /// Sends the piece that is filled to a thread that may block, once the one before it is done.
    async fn hand_over(
        &mut self,
        deed: impl FnOnce(&mut StagedFile, &[u8]) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), StoreError> {
        self.settle().await?;
        let Job::Idle(mut file) = mem::replace(&mut self.job, Job::Failed) else {
            return Err(failed());
        };
        let buffer = mem::replace(&mut self.buffer, mem::take(&mut self.spare));
        self.job = Job::Running(spawn_blocking(move || {
            let outcome = deed(&mut file, &buffer);
            Done { file, buffer, outcome }
        }));
        Ok(())
    }

    /// Waits until no piece is on its way.
    async fn settle(&mut self) -> Result<(), StoreError> {
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
            // A file that is being written removes itself afterwards.
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

/// Freeing the blocks of a large file takes a while: not on a thread that serves requests.
fn drop_elsewhere(file: Box<StagedFile>) {
    match Handle::try_current() {
        Ok(runtime) => {
            runtime.spawn_blocking(move || drop(file));
        }
        Err(_) => drop(file),
    }
}

/// A file that has arrived whole and lies under a temporary name. Dropping it removes the file, unless it is one that
/// can be resumed.
#[derive(Debug)]
pub struct Staged {
    /// Always there, but for the moment of dropping.
    file: Option<Box<StagedFile>>,
    size: u64,
    sha256: [u8; 32],
    head: Vec<u8>,
}

impl Staged {
    /// Where it lies on the local disk, to be looked at before it is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.as_deref().map_or(Path::new(""), StagedFile::path)
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its hash.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Its first bytes, [`HEAD_BYTES`] at most.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file itself, for whoever publishes it.
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

/// Where uploads that can be resumed lie, within the folder of staged files.
const KEPT: &str = "tus";

/// The folder of files that are still arriving.
#[derive(Debug)]
pub(super) struct StagingFolder {
    path: PathBuf,
    own: Arc<ProcessFolder>,
}

impl StagingFolder {
    /// Makes the folder if it isn't there, and one for this process in it.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        private_directory(&path.join(KEPT))?;
        let own = Arc::new(ProcessFolder::make(&path)?);
        Ok(Self { path, own })
    }

    /// Removes files that processes left which have ended. Returns how many.
    pub(super) fn sweep(&self, effect: Effect) -> io::Result<usize> {
        process_folder::sweep(&self.path, KEPT, effect)
    }

    /// Where files lie that are kept to be resumed.
    pub(super) fn kept(&self) -> PathBuf {
        self.path.join(KEPT)
    }

    /// A file that is made when its first piece is written.
    pub(super) fn new_file(&self) -> StagedFile {
        StagedFile::new_in(Arc::clone(&self.own))
    }
}
