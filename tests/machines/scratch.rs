//! Chooses the directory of a run's files: in memory if there is enough of it, because creating
//! tables on a disk is slow.

use std::{fs, io, path::Path};

use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "selkie-tests-";

/// Maximum bytes of all services and databases that run at the same time.
const NEEDED_BYTES: u64 = 4 << 30;

pub fn directory() -> io::Result<TempDir> {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let has_room = rustix::fs::statvfs(MEMORY).is_ok_and(|memory| memory.f_bavail * memory.f_frsize >= NEEDED_BYTES);
    let parent = if has_room { MEMORY.into() } else { std::env::temp_dir() };
    let directory = tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir_in(parent)?;
    // Fails only if it was called before.
    let _ = tempfile::env::override_temp_dir(directory.path());
    Ok(directory)
}
