//! The folder in which one process stages files, and the deletion of folders of ended processes. A lock file beside
//! each folder, which the kernel unlocks when the process ends, tells whether the process runs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::Effect;
use crate::files::{private_directory, remove_directory, remove_file};

const LOCK: &str = "lock";

/// The maximum number of attempts. One fails if another process deletes the new lock file as abandoned.
const TRIES_MAX_COUNT: usize = 10;

#[derive(Debug)]
pub(super) struct ProcessFolder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl ProcessFolder {
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
        Err(io::Error::other("a folder for staged files can't be locked"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        // A later sweep deletes files that remain.
        let _ = remove_directory(&self.path).and_then(|()| remove_file(&self.lock_path));
    }
}

/// Deletes or counts the files of ended processes: of all entries without a locked lock file, except `spared`.
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
            // A folder is created after its lock file and deleted before it, so this folder is abandoned.
            swept += remove_counted(&path, effect)?;
        }
    }
    Ok(swept)
}

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

fn remove_counted(path: &Path, effect: Effect) -> io::Result<usize> {
    let (count, remove): (usize, fn(&Path) -> io::Result<()>) = match std::fs::read_dir(path) {
        Ok(files) => (files.count(), remove_directory),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => (1, remove_file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    if effect == Effect::Deletes {
        remove(path)?;
    }
    Ok(count)
}

fn is_taken(lock: &File) -> io::Result<bool> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the locked file still has its name: another process may have deleted the file before.
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
        // What a killed process leaves: a folder, and a lock file that no process has locked.
        let dead = parent.join(Uuid::now_v7().to_string());
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("one"), "x").unwrap();
        std::fs::write(dead.join("two"), "x").unwrap();
        std::fs::write(dead.with_extension(LOCK), "").unwrap();
        // A lock file without a folder, which a process leaves that was killed before creating its folder or after
        // deleting it, and a folder without a lock file.
        std::fs::write(parent.join("early.lock"), "").unwrap();
        std::fs::create_dir(parent.join("late")).unwrap();
        // A file of an old version of this program, which staged all files in one folder.
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
