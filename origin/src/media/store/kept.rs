//! The exclusive lock on the file of a resumable upload, valid for all processes that share the disk, until the locking
//! process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

#[derive(Debug)]
pub struct Held {
    _file: File,
    length: u64,
}

impl Held {
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
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

    /// All these bytes are synced to the disk.
    pub fn length(&self) -> u64 {
        self.length
    }
}
