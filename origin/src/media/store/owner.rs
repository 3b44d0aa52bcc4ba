//! Small files with given names in a store, beside its objects: the owner mark, and the manifests of backups.

use std::io;
use std::path::PathBuf;

use tokio::task::spawn_blocking;

use super::{Backend, Store, StoreError};
use crate::files::{fill_private, replace_private};

pub(super) const OWNER: &str = "owner";

/// The maximum size of a named file. The files that this program writes are far shorter.
pub(super) const NAMED_MAX_BYTES: u64 = 8 * 1024 * 1024;

impl Store {
    /// Reads the owner mark. `None` also for an empty mark, which remains if the machine fails while writing it.
    pub async fn owner(&self) -> Result<Option<String>, StoreError> {
        Ok(self.named(OWNER).await?.filter(|mark| !mark.trim().is_empty()))
    }

    /// Writes the owner mark. The caller must then read the mark, since another installation may have written it.
    pub async fn claim(&self, owner: String) -> Result<(), StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let path = directory.named(OWNER);
                Ok(spawn_blocking(move || fill_private(&path, &owner)).await??)
            }
            Backend::Bucket(bucket) => bucket.claim(owner).await,
        }
    }

    pub async fn take_over(&self, owner: String) -> Result<(), StoreError> {
        self.put_named(OWNER, owner).await
    }

    /// Reads a named file of at most 8 MiB. The caller must have checked that `name` is a plain file name.
    pub async fn named(&self, name: &str) -> Result<Option<String>, StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let path = directory.named(name);
                Ok(spawn_blocking(move || read(&path)).await??)
            }
            Backend::Bucket(bucket) => bucket.named(name).await,
        }
    }

    /// Writes a file in one atomic step. The caller must have checked that `name` is a plain file name.
    pub async fn put_named(&self, name: &str, text: String) -> Result<(), StoreError> {
        match &self.inner.backend {
            Backend::Directory(directory) => {
                let path = directory.named(name);
                Ok(spawn_blocking(move || replace_private(&path, &text)).await??)
            }
            Backend::Bucket(bucket) => bucket.put_named(name, text).await,
        }
    }
}

fn read(path: &PathBuf) -> io::Result<Option<String>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(NAMED_MAX_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
