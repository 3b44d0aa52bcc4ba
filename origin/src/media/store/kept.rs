//! A file that can be resumed, held by one request: others who want it, here or in another process that sees the
//! same disk, are told that it is taken. The kernel lets go of it with its holder, however that ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// The hold; dropping it lets go.
#[derive(Debug)]
pub struct Held {
    _file: File,
    length: u64,
}

impl Held {
    /// Tries to take the file, without waiting; `None` if another has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // The holder before may have removed it: then this is a file without a name.
        let (ours, named) = (file.metadata()?, std::fs::metadata(path)?);
        if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // What a process wrote before it was killed is in the file, but perhaps not on the disk.
        file.sync_all()?;
        Ok(Some(Self { length: ours.len(), _file: file }))
    }

    /// Bytes that the file had when it was taken, all of them on the disk.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }
}
