//! The lock of a data directory: one process at a time runs its private MariaDB. The kernel releases the lock when the
//! process ends, even by a crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockRole {
    /// Runs MariaDB for as long as the process lives; commands may attach to it.
    Service,
    /// Attaches to the MariaDB of a service, or runs MariaDB until the command ends.
    Command,
}

/// Content of the lock file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) role: LockRole,
    pub(super) socket: PathBuf,
}

#[derive(Debug)]
pub(super) struct OwnerLock {
    _file: File,
}

#[derive(Debug)]
pub(super) enum LockAttempt {
    Mine(OwnerLock),
    /// Another process has the lock. The holder is read from the lock file: `None` if the file has no valid content,
    /// and the previous holder until that process has written the file.
    Held(Option<Holder>),
}

/// Tries to take the lock, without waiting.
pub(super) fn claim(path: &Path, role: LockRole, socket: &Path) -> io::Result<LockAttempt> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(LockAttempt::Held(holder(path))),
        Err(error) => return Err(error.into()),
    }
    let text = serde_json::to_string(&Holder { pid: std::process::id(), role, socket: socket.to_owned() })?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    Ok(LockAttempt::Mine(OwnerLock { _file: file }))
}

fn holder(path: &Path) -> Option<Holder> {
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str(&text).ok()
}
