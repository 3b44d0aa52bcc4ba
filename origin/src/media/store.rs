//! The store of objects: files as they arrive, then under keys of our own, in a directory or in a bucket.
//!
//! Knows neither what the objects are nor who may see them, and no row of any table.

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

use self::bucket::{Bucket, Patience};
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

/// How long the store may take to show that it is there.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of an object, in pieces. An error in the middle means that what came is not all.
pub type ObjectBytes = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// What lies in the store, in no order.
pub type Listing = Pin<Box<dyn Stream<Item = Result<Listed, StoreError>> + Send>>;

/// One thing that lies in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key; `None` for a stranger.
    pub key: Option<ObjectKey>,
    /// Where it lies within the store. For operators only.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// When it was published.
    pub modified: SystemTime,
}

/// Whether a sweep deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only counts what it would delete.
    Counts,
    /// It deletes.
    Deletes,
}

/// The store. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    staging: StagingFolder,
}

#[derive(Debug)]
enum Place {
    Directory(Directory),
    Bucket(Bucket),
}

impl Store {
    /// Opens the store, and makes its directories if they aren't there. A bucket is not asked: see [`check`](Self::check).
    ///
    /// Files arrive under `media_dir`, or within the store where that is a directory, so that publishing one is a rename.
    ///
    /// # Errors
    /// A directory can't be made, or the address can't be used.
    pub fn open(address: &StoreAddress, media_dir: &Path) -> Result<Self, StoreError> {
        let (place, staging) = match address {
            StoreAddress::Directory(root) => {
                let directory = Directory::open(root.clone())?;
                (Place::Directory(directory), root.join("staging"))
            }
            StoreAddress::Bucket(address) => {
                let bucket = Bucket::open(address, Patience::USUAL)?;
                (Place::Bucket(bucket), media_dir.join("staging"))
            }
        };
        Self::over(place, staging)
    }

    fn over(place: Place, staging: PathBuf) -> Result<Self, StoreError> {
        let staging = StagingFolder::open(staging)?;
        let inner = Inner { place, staging };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Whether files can arrive, and the store answers, within [`CHECK_TIMEOUT`].
    ///
    /// # Errors
    /// What keeps it from that.
    pub async fn check(&self) -> Result<(), StoreError> {
        let deed = async {
            let mut probe = self.inner.staging.new_file();
            let file = spawn_blocking(move || probe.write(b"?"));
            match &self.inner.place {
                Place::Directory(_) => {}
                Place::Bucket(bucket) => bucket.check().await?,
            }
            Ok(file.await??)
        };
        tokio::time::timeout(CHECK_TIMEOUT, deed)
            .await
            .unwrap_or_else(|late| Err(StoreError::Unavailable(Box::new(late))))
    }

    /// A new file to write to. It is made with its first piece.
    #[must_use]
    pub fn stage(&self) -> Staging {
        Staging::new(self.inner.staging.new_file())
    }

    /// A new file that can be [suspended](Staging::suspend) and [resumed](Self::resume), under `id`. It stays until it is
    /// [discarded](Self::discard) or [swept](Self::sweep_kept).
    ///
    /// # Errors
    /// The file can't be made, or there is one of that name.
    pub async fn stage_named(&self, id: Uuid) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::create_kept(path)).await??;
        Ok(Staging::new(file))
    }

    /// Goes on with a file at `offset`, up to which it is known to be right: what lies behind is cut off. The caller sees
    /// to it that nobody else goes on with it at the same time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the file is shorter than `offset`.
    pub async fn resume(&self, id: Uuid, offset: u64) -> Result<Staging, StoreError> {
        let path = self.kept(id);
        let file = spawn_blocking(move || StagedFile::resume(path, offset))
            .await?
            .map_err(StoreError::of_object)?
            .ok_or_else(|| StoreError::other("a staged file is shorter than was recorded"))?;
        Ok(Staging::new(file))
    }

    /// Takes a file that can be resumed for oneself; `None` if another has it. Whoever [resumes](Self::resume) or
    /// [discards](Self::discard) it holds it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the file can't be opened.
    pub async fn hold(&self, id: Uuid) -> Result<Option<Held>, StoreError> {
        let path = self.kept(id);
        spawn_blocking(move || Held::take(&path)).await?.map_err(StoreError::of_object)
    }

    /// Removes a file that could be resumed; one that is not there is fine.
    ///
    /// # Errors
    /// The file can't be removed.
    pub async fn discard(&self, id: Uuid) -> Result<(), StoreError> {
        let path = self.kept(id);
        Ok(spawn_blocking(move || remove_file(&path)).await??)
    }

    /// Puts a staged file in the store, in one step: a reader sees nothing, or all of it. Goes on to its end when the
    /// caller leaves, so that nothing half done stays. One that can be resumed stays beside its object, until it is
    /// [discarded](Self::discard).
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Unavailable`] or [`StoreError::Other`]; the object is then not there, but
    /// for a fault after the last step, such as an answer that was lost.
    pub async fn publish(&self, staged: Staged, key: ObjectKey) -> Result<(), StoreError> {
        let Some(mut file) = staged.into_file() else {
            return Err(StoreError::other("a staged file was published twice"));
        };
        match &self.inner.place {
            Place::Directory(directory) => {
                let directory = directory.clone();
                Ok(spawn_blocking(move || directory.publish(&mut file, key)).await??)
            }
            Place::Bucket(bucket) => bucket.publish(file, key).await,
        }
    }

    /// Puts a small object in the store, in one step.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let directory = directory.clone();
                let mut file = self.inner.staging.new_file();
                Ok(spawn_blocking(move || {
                    file.suspend(&bytes)?;
                    directory.publish(&mut file, key)
                })
                .await??)
            }
            Place::Bucket(bucket) => bucket.put(key, bytes).await,
        }
    }

    /// The bytes of an object, or those of `range` that it has. The first are read before this returns.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] and all others; in the stream, all but that.
    pub async fn read(&self, key: ObjectKey, range: Option<Range<u64>>) -> Result<ObjectBytes, StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => directory.read(key, range).await,
            Place::Bucket(bucket) => bucket.read(key, range).await,
        }
    }

    /// Removes objects; those that are not there are fine.
    ///
    /// # Errors
    /// One could not be removed; others may have been.
    pub async fn delete(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let (directory, keys) = (directory.clone(), keys.to_vec());
                Ok(spawn_blocking(move || directory.delete(&keys)).await??)
            }
            Place::Bucket(bucket) => bucket.delete(keys).await,
        }
    }

    /// Those of these objects that are in the store.
    ///
    /// # Errors
    /// The store failed.
    pub async fn existing(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let (directory, keys) = (directory.clone(), keys.to_vec());
                Ok(spawn_blocking(move || directory.existing(&keys)).await??)
            }
            Place::Bucket(bucket) => bucket.existing(keys).await,
        }
    }

    /// All that lies among the objects, also strangers.
    #[must_use]
    pub fn list(&self) -> Listing {
        match &self.inner.place {
            Place::Directory(directory) => directory.list(),
            Place::Bucket(bucket) => bucket.list(),
        }
    }

    /// Removes staged files that processes left which have ended, in a crash say. Returns how many. Files of processes that
    /// run stay, also where several share the disk.
    ///
    /// # Errors
    /// The folder can't be read, or a file not be removed.
    pub async fn sweep_staging(&self, effect: Effect) -> Result<usize, StoreError> {
        let inner = Arc::clone(&self.inner);
        Ok(spawn_blocking(move || inner.staging.sweep(effect)).await??)
    }

    /// Removes files that can be resumed and that nobody has written to for so long. Returns how many.
    ///
    /// # Errors
    /// As [`sweep_staging`](Self::sweep_staging).
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
            // Published or removed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        // A file from the future is not old.
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
