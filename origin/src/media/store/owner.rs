//! The mark in a store that says whose it is: a small text beside the objects.
//!
//! Knows nothing of what the text means.

use std::io;
use std::path::PathBuf;

use tokio::task::spawn_blocking;

use super::{Place, Store, StoreError};
use crate::files::{create_private, replace_private};

/// Where the mark lies within the store.
pub(super) const OWNER: &str = "owner";

/// Bytes of a mark that are read: more than any of ours has.
pub(super) const OWNER_MAX_BYTES: u64 = 256;

impl Store {
    /// Returns the mark; `None` if there is none.
    ///
    /// # Errors
    /// The store failed.
    pub async fn owner(&self) -> Result<Option<String>, StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let path = directory.owner();
                Ok(spawn_blocking(move || read(&path)).await??)
            }
            Place::Bucket(bucket) => bucket.owner().await,
        }
    }

    /// Sets the mark, unless there is one. Read it afterwards to know whose it is.
    ///
    /// # Errors
    /// The store failed.
    pub async fn claim(&self, owner: String) -> Result<(), StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let path = directory.owner();
                let made = spawn_blocking(move || create_private(&path, &owner)).await?;
                match made {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    made => Ok(made?),
                }
            }
            Place::Bucket(bucket) => bucket.claim(owner).await,
        }
    }

    /// Sets the mark, whatever was there.
    ///
    /// # Errors
    /// The store failed.
    pub async fn take_over(&self, owner: String) -> Result<(), StoreError> {
        match &self.inner.place {
            Place::Directory(directory) => {
                let path = directory.owner();
                Ok(spawn_blocking(move || replace_private(&path, &owner)).await??)
            }
            Place::Bucket(bucket) => bucket.take_over(owner).await,
        }
    }
}

fn read(path: &PathBuf) -> io::Result<Option<String>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(OWNER_MAX_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
