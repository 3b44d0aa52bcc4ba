//! The folder in which one process stages files, and the removal of folders that ended processes left.
//!
//! Beside each folder lies a file that its process holds locked. The kernel releases the lock with the process, however
//! that ends, also where several processes share the disk: a folder whose lock can be taken belongs to nobody.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::Effect;
use crate::files::{private_directory, remove_directory, remove_file};

/// The extension of the locked files.
const LOCK: &str = "lock";

/// How often making a folder is tried: another process may take its lock between two steps and remove it.
const TRIES_MAX_COUNT: usize = 10;

/// A folder of this process. Dropping it removes the folder with all that is in it.
#[derive(Debug)]
pub(super) struct ProcessFolder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl ProcessFolder {
    /// Makes a folder in `parent`, which must exist.
    ///
    /// # Errors
    /// The folder can't be made, or the file system has no locks.
    pub(super) fn make(parent: &Path) -> io::Result<Self> {
        for _ in 0..TRIES_MAX_COUNT {
            let path = parent.join(Uuid::now_v7().to_string());
            let lock_path = path.with_extension(LOCK);
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock_path)?;
            if is_taken(&lock)? && is_still_named(&lock, &lock_path)? {
                private_directory(&path)?;
                return Ok(Self { path, lock_path, _lock: lock });
            }
        }
        Err(io::Error::other("the lock of a folder for staged files can't be kept"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        // What stays is removed by the next process that sweeps.
        let _ = remove_directory(&self.path).and_then(|()| remove_file(&self.lock_path));
    }
}

/// Removes from `parent` what ended processes left there, but for the entry `spared`. Returns the number of files; with
/// [`Effect::Counts`] they stay.
///
/// # Errors
/// The folder can't be read, or something in it can't be removed.
pub(super) fn sweep(parent: &Path, spared: &str, effect: Effect) -> io::Result<usize> {
    let mut swept = 0;
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        if path.ends_with(spared) {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == LOCK) {
            swept += sweep_locked(&path, effect)?;
        } else if !path.with_extension(LOCK).exists() {
            // A folder is made after its lock and removed before it, so that one without a lock is no process'.
            swept += remove_counted(&path, effect)?;
        }
    }
    Ok(swept)
}

/// Removes a folder by its lock, unless a process holds that.
fn sweep_locked(lock_path: &Path, effect: Effect) -> io::Result<usize> {
    let lock = match OpenOptions::new().write(true).open(lock_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        lock => lock?,
    };
    if !is_taken(&lock)? {
        return Ok(0);
    }
    let swept = remove_counted(&lock_path.with_extension(""), effect)?;
    if effect == Effect::Deletes {
        remove_file(lock_path)?;
    }
    Ok(swept)
}

/// Removes a file, or a folder with its files; returns how many files.
fn remove_counted(path: &Path, effect: Effect) -> io::Result<usize> {
    let (count, remove): (usize, fn(&Path) -> io::Result<()>) = match std::fs::read_dir(path) {
        Ok(files) => (files.count(), remove_directory),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => (1, remove_file),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    if effect == Effect::Deletes {
        remove(path)?;
    }
    Ok(count)
}

/// Tries to take a lock, without waiting.
fn is_taken(lock: &File) -> io::Result<bool> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the path still names this file, which another process may have removed before it was locked.
fn is_still_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_processes_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let own = ProcessFolder::make(parent).unwrap();
        let other = ProcessFolder::make(parent).unwrap();
        for folder in [own.path(), other.path()] {
            std::fs::write(folder.join("arriving"), "x").unwrap();
        }
        // What a killed process leaves: a folder, and a lock that nobody holds.
        let dead = parent.join(Uuid::now_v7().to_string());
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("one"), "x").unwrap();
        std::fs::write(dead.join("two"), "x").unwrap();
        std::fs::write(dead.with_extension(LOCK), "").unwrap();
        // Killed before its folder was made, and while it was removed.
        std::fs::write(parent.join("early.lock"), "").unwrap();
        std::fs::create_dir(parent.join("late")).unwrap();
        // Of a version that staged all files in one folder.
        std::fs::write(parent.join("0190a1b2-c3d4-7abc-8def-0123456789ab"), "x").unwrap();
        std::fs::create_dir(parent.join("tus")).unwrap();
        std::fs::write(parent.join("tus/upload"), "x").unwrap();

        for (effect, count) in [(Effect::Counts, 3), (Effect::Deletes, 3), (Effect::Deletes, 0)] {
            assert_eq!(sweep(parent, "tus", effect).unwrap(), count);
        }
        for kept in [own.path(), other.path()] {
            assert!(kept.join("arriving").exists());
        }
        assert!(parent.join("tus/upload").exists());
        drop(own);
        drop(other);
        let left: Vec<_> = std::fs::read_dir(parent).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
