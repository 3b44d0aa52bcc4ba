//! The object store: stages files, and stores objects under generated keys, in a directory or a bucket. Independent of
//! what the objects contain and who may read them.

mod bucket;
mod directory;
mod error;
mod file;
mod owner;
mod process_folder;
mod refusal;
mod staging;

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
use self::staging::StagingFolder;
pub use self::staging::{HEAD_BYTES, Held, PIECE_BYTES, Staged, Staging};
use crate::config::StoreAddress;
use crate::database::media::ObjectKey;
use crate::files::remove_file;
use crate::recent::Recent;

pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of an object. After an error, the rest of the bytes is missing.
pub type ObjectBytes = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

pub type ObjectListing = Pin<Box<dyn Stream<Item = Result<Listed, StoreError>> + Send>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub key: Option<ObjectKey>,
    /// The path within the store, which may be shown to operators but not to clients.
    pub path: String,
    pub size: u64,
    pub modified: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Counts,
    Deletes,
}

#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<StoreParts>,
}

#[derive(Debug)]
struct StoreParts {
    backend: Backend,
    staging: StagingFolder,
}

#[derive(Debug)]
enum Backend {
    Directory(Directory),
    Bucket(Bucket),
}

impl Store {
    /// Opens a store. A directory store stages files inside the directory: publishing is a rename or a hard link.
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
        let inner = StoreParts { backend, staging };
        Ok(Self { inner: Arc::new(inner) })
    }

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

    pub fn stage(&self) -> Staging {
        Staging::new(self.inner.staging.new_file())
    }

    /// Creates a file for a resumable upload. Dropping the result does not delete the file: [`discard`](Self::discard)
    /// and [`sweep_kept`](Self::sweep_kept) do.
    pub async fn stage_named(&self, id: Uuid) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::create_kept(path)).await??;
        Ok(Staging::new(file))
    }

    /// Reopens and truncates the file at `offset`. The caller must hold the file's [lock](Self::hold).
    pub async fn resume(&self, id: Uuid, offset: u64) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::resume(path, offset))
            .await?
            .map_err(StoreError::of_object)?
            .ok_or_else(|| StoreError::other("a staged file is shorter than was recorded"))?;
        Ok(Staging::new(file))
    }

    /// Locks the file. Returns `None` if another request, of this or another process, has locked the file.
    pub async fn hold(&self, id: Uuid) -> Result<Option<Held>, StoreError> {
        let path = self.kept(id);
        spawn_blocking(move || Held::try_lock(&path)).await?.map_err(StoreError::of_object)
    }

    pub async fn discard(&self, id: Uuid) -> Result<(), StoreError> {
        let path = self.kept(id);
        Ok(spawn_blocking(move || remove_file(&path)).await??)
    }

    /// Stores a staged file in one atomic step, and continues if the caller is cancelled. The object may be stored
    /// despite an error, if the service's response was lost.
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

    /// Stores bytes in one atomic step. In a bucket, cancelling the caller cancels the request.
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

    /// Returns the object's bytes once the first chunk was read, or the service's response has begun.
    pub async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => directory.read(key, range).await,
            Backend::Bucket(bucket) => bucket.read(key, range).await,
        }
    }

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

    /// Lists all files, including those that are not named like an object.
    pub fn list(&self) -> ObjectListing {
        match &self.inner.backend {
            Backend::Directory(directory) => directory.list(),
            Backend::Bucket(bucket) => bucket.list(),
        }
    }

    /// Deletes or counts the staged files of ended processes. Files of resumable uploads stay.
    pub async fn sweep_staging(&self, effect: Effect) -> Result<usize, StoreError> {
        let inner = Arc::clone(&self.inner);
        Ok(spawn_blocking(move || inner.staging.sweep(effect)).await??)
    }

    /// Deletes files of resumable uploads, locked ones too, whose last write was longer ago than `older_than`.
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

/// The health check of the media store.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    last: Recent<bool>,
}

impl Watch {
    pub fn new(store: Store) -> Self {
        Self { store, last: Recent::default() }
    }

    /// Checks whether the store answers. Concurrent callers share one check, whose result is valid for a second.
    pub async fn answers(&self) -> bool {
        let check = async {
            let checked = self.store.check().await;
            if let Err(error) = &checked {
                tracing::warn!(cause = error.in_full(), "the media store does not answer");
            }
            checked.is_ok()
        };
        self.last.get(check).await
    }
}

#[cfg(test)]
mod tests;
