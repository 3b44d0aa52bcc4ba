//! Chooses where the run stores its files: in memory if there is space, because creating tables waits for the disk.

use crate::service::{Edge, Service};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "selkie-tests-";

/// Maximum bytes of all services that run at the same time.
const NEEDED_BYTES: u64 = 4 << 30;

/// Creates the run's directory, which contains all other temporary directories. Removes the directories of killed runs.
pub(crate) fn directory() -> io::Result<TempDir> {
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

/// Creates a directory for one service.
pub(crate) fn service_directory() -> Result<TempDir, String> {
    let directory = tempfile::Builder::new().prefix("selkie-e2e-").tempdir();
    directory.map_err(|error| error.to_string())
}

/// Returns the directory of a service that was started once and stopped. It already has a MariaDB and the demo, so that
/// a service on a copy of it starts much faster.
pub(crate) fn template() -> Result<&'static Path, String> {
    static TEMPLATE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let service = Service::start_in(service_directory()?, Edge::Without, &[])?;
        let directory = service.stop_and_keep()?.keep();
        fs::remove_file(directory.join("data/dev.env")).map_err(|error| error.to_string())?;
        Ok(directory)
    });
    made.as_deref().map_err(Clone::clone)
}
