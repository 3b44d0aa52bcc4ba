//! The object store: stages files while they are uploaded, and stores objects under generated keys, in a directory or a
//! bucket. Independent of what the objects contain and who may read them.

mod bucket;
mod directory;
mod error;
mod file;
mod kept;
mod owner;
mod process_folder;
mod refusal;
mod staging;
mod watch;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::Stream;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use self::bucket::{Bucket, Timeouts};
use self::directory::Directory;
pub use self::error::{Cause, StoreError};
use self::file::StagedFile;
pub use self::kept::Held;
use self::staging::StagingFolder;
pub use self::staging::{HEAD_BYTES, PIECE_BYTES, Staged, Staging};
pub use self::watch::Watch;
use crate::config::StoreAddress;
use crate::database::media::ObjectKey;
use crate::files::remove_file;

pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of an object, or of a range of it, as a stream of chunks. After an error, the rest of the bytes is
/// missing.
pub type ObjectBytes = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// A stream of the files in the store's folder `objects`, in no particular order.
pub type Listing = Pin<Box<dyn Stream<Item = Result<Listed, StoreError>> + Send>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The object's key; `None` if the file's path is not that of an object.
    pub key: Option<ObjectKey>,
    /// The path within the store, which may be shown to operators but not to clients.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    pub modified: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The sweep only counts the files that it would delete.
    Counts,
    Deletes,
}

#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    backend: Backend,
    staging: StagingFolder,
}

#[derive(Debug)]
enum Backend {
    Directory(Directory),
    Bucket(Bucket),
}

impl Store {
    /// Opens the store and creates missing directories. Sends no request to a bucket; see [`check`](Self::check).
    ///
    /// In a directory store, files are staged inside the directory, so that publishing is a rename or a hard link. For
    /// a bucket, files are staged under `media_dir`.
    ///
    /// # Errors
    /// A directory can't be created or locked, or the settings of the bucket are invalid or incomplete.
    pub fn open(address: &StoreAddress, media_dir: &Path) -> Result<Self, StoreError> {
        let (backend, staging) = match address {
            StoreAddress::Directory(root) => {
                let directory = Directory::open(root.clone())?;
                (Backend::Directory(directory), root.join("staging"))
            }
            StoreAddress::Bucket(address) => {
                let bucket = Bucket::open(address, Timeouts::DEFAULT)?;
                (Backend::Bucket(bucket), media_dir.join("staging"))
            }
        };
        Self::over(backend, staging)
    }

    fn over(backend: Backend, staging: PathBuf) -> Result<Self, StoreError> {
        let staging = StagingFolder::open(staging)?;
        let inner = Inner { backend, staging };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Checks that a file can be staged and that a bucket can be listed. Fails with [`StoreError::Unavailable`] after
    /// [`CHECK_TIMEOUT`].
    pub async fn check(&self) -> Result<(), StoreError> {
        let check = async {
            let mut probe = self.inner.staging.new_file();
            let file = spawn_blocking(move || probe.write(b"?"));
            match &self.inner.backend {
                Backend::Directory(_) => {}
                Backend::Bucket(bucket) => bucket.check().await?,
            }
            Ok(file.await??)
        };
        tokio::time::timeout(CHECK_TIMEOUT, check)
            .await
            .unwrap_or_else(|late| Err(StoreError::Unavailable(Box::new(late))))
    }

    #[must_use]
    pub fn stage(&self) -> Staging {
        Staging::new(self.inner.staging.new_file())
    }

    /// Creates the staged file of the resumable upload `id`. Dropping the returned value does not delete the file:
    /// [`discard`](Self::discard) and [`sweep_kept`](Self::sweep_kept) do.
    ///
    /// # Errors
    /// The file can't be created or synced, or exists already.
    pub async fn stage_named(&self, id: Uuid) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::create_kept(path)).await??;
        Ok(Staging::new(file))
    }

    /// Opens the file of the resumable upload `id` for writing at `offset`, and truncates it there. The caller must
    /// hold the file's [lock](Self::hold).
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such file; other errors if the file is shorter than `offset` or can't be
    /// opened or truncated.
    pub async fn resume(&self, id: Uuid, offset: u64) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::resume(path, offset))
            .await?
            .map_err(StoreError::of_object)?
            .ok_or_else(|| StoreError::other("a staged file is shorter than was recorded"))?;
        Ok(Staging::new(file))
    }

    /// Locks the file of the resumable upload `id` without waiting; `None` if another request, of this or another
    /// process, has locked the file. A request keeps the lock while it [resumes](Self::resume) or
    /// [discards](Self::discard) the file.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the file does not exist; other errors if it can't be opened, locked or synced.
    pub async fn hold(&self, id: Uuid) -> Result<Option<Held>, StoreError> {
        let path = self.kept(id);
        spawn_blocking(move || Held::take(&path)).await?.map_err(StoreError::of_object)
    }

    /// Deletes the file of the resumable upload `id`, if it exists.
    pub async fn discard(&self, id: Uuid) -> Result<(), StoreError> {
        let path = self.kept(id);
        Ok(spawn_blocking(move || remove_file(&path)).await??)
    }

    /// Stores a staged file as the object `key` atomically: readers see nothing or the whole object. The work continues
    /// if the caller is cancelled. The file of a resumable upload stays until it is [discarded](Self::discard), except
    /// in a directory without hard links, where the file is renamed.
    ///
    /// # Errors
    /// Errors of the store, such as [`StoreError::Full`]. The object may be stored nevertheless, if the directory could
    /// not be synced or the service's response was lost.
    pub async fn publish(&self, staged: Staged, key: ObjectKey) -> Result<(), StoreError> {
        let Some(mut file) = staged.into_file() else {
            return Err(StoreError::other("a staged file was published twice"));
        };
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let directory = directory.clone();
                Ok(spawn_blocking(move || directory.publish(&mut file, key)).await??)
            }
            Backend::Bucket(bucket) => bucket.publish(file, key).await,
        }
    }

    /// Stores `bytes` as the object `key` atomically. In a bucket, cancelling the caller cancels the request. Errors
    /// are those of [`publish`](Self::publish).
    pub async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let directory = directory.clone();
                let mut file = self.inner.staging.new_file();
                Ok(spawn_blocking(move || {
                    file.suspend(&bytes)?;
                    directory.publish(&mut file, key)
                })
                .await??)
            }
            Backend::Bucket(bucket) => bucket.put(key, bytes).await,
        }
    }

    /// Returns the bytes of the object `key`, or only those in `range`; the stream is empty if `range` is empty or
    /// begins at or after the object's end. Waits until the first chunk was read, or the service's response has begun.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such object (not checked in a bucket if `range` is empty); other errors
    /// of the store. The stream may fail later too.
    pub async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => directory.read(key, range).await,
            Backend::Bucket(bucket) => bucket.read(key, range).await,
        }
    }

    /// Deletes the objects with these keys, if they exist.
    ///
    /// # Errors
    /// An object could not be deleted; other objects may have been deleted.
    pub async fn delete(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let (directory, keys) = (directory.clone(), keys.to_vec());
                Ok(spawn_blocking(move || directory.delete(&keys)).await??)
            }
            Backend::Bucket(bucket) => bucket.delete(keys).await,
        }
    }

    pub async fn existing(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let (directory, keys) = (directory.clone(), keys.to_vec());
                Ok(spawn_blocking(move || directory.existing(&keys)).await??)
            }
            Backend::Bucket(bucket) => bucket.existing(keys).await,
        }
    }

    /// Lists the files in the store's folder `objects`, including those that are not named like an object. In a
    /// directory store, files more than one folder deep are not listed.
    #[must_use]
    pub fn list(&self) -> Listing {
        match &self.inner.backend {
            Backend::Directory(directory) => directory.list(),
            Backend::Bucket(bucket) => bucket.list(),
        }
    }

    /// Deletes the staged files of processes that have ended, and returns their number; with [`Effect::Counts`], only
    /// counts them. Files of resumable uploads stay, and so do files of running processes, even of other origins that
    /// share the directory.
    ///
    /// # Errors
    /// The staging folder can't be read, or a file can't be deleted.
    pub async fn sweep_staging(&self, effect: Effect) -> Result<usize, StoreError> {
        let inner = Arc::clone(&self.inner);
        Ok(spawn_blocking(move || inner.staging.sweep(effect)).await??)
    }

    /// Deletes the files of resumable uploads that were last written at least `older_than` ago, and returns their
    /// number. Deletes locked files too. Errors are those of [`sweep_staging`](Self::sweep_staging).
    pub async fn sweep_kept(&self, older_than: Duration) -> Result<usize, StoreError> {
        let folder = self.inner.staging.kept();
        Ok(spawn_blocking(move || sweep(&folder, older_than)).await??)
    }

    fn kept(&self, id: Uuid) -> PathBuf {
        self.inner.staging.kept().join(id.to_string())
    }
}

fn sweep(folder: &Path, older_than: Duration) -> io::Result<usize> {
    let now = SystemTime::now();
    let mut swept = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = match entry.metadata() {
            // The entry was published or deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        // A file with a modification time in the future has age 0.
        let age = now.duration_since(about.modified()?).unwrap_or(Duration::ZERO);
        if about.is_file() && age >= older_than {
            remove_file(&entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests;
