//! Who runs the private MariaDB of a data directory: one process at a time, told by a lock that the
//! kernel lets go of when its holder ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// What a process wants the private MariaDB for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To serve: it runs MariaDB itself, for as long as it lives; others may attach.
    Service,
    /// To do one thing: it attaches to a service's, or runs one until it is done.
    Command,
}

/// What the lock's file says of its holder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) role: Role,
    pub(super) socket: PathBuf,
}

/// The lock; dropping it lets go.
#[derive(Debug)]
pub(super) struct OwnerLock {
    _file: File,
}

/// The outcome of a try.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is ours.
    Mine(OwnerLock),
    /// Another process has it. `None` while that one has yet to write who it is.
    Held(Option<Holder>),
}

/// Tries to take the lock, without waiting.
pub(super) fn claim(path: &Path, role: Role, socket: &Path) -> io::Result<Claim> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Claim::Held(holder(path))),
        Err(error) => return Err(error.into()),
    }
    let text = serde_json::to_string(&Holder { pid: std::process::id(), role, socket: socket.to_owned() })?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    Ok(Claim::Mine(OwnerLock { _file: file }))
}

fn holder(path: &Path) -> Option<Holder> {
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str(&text).ok()
}
