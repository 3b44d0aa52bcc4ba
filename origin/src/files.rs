//! Files and directories that only this user may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// With mode 0700; leaves an existing directory unchanged.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Syncs the file. Fails if the file exists.
pub(crate) fn create_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Leaves a file that is not empty unchanged. If several processes do this at the same time, one text is written.
pub(crate) fn fill_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // Another process has the lock only while it writes and syncs a short text.
    file.lock()?;
    if file.metadata()?.len() > 0 {
        return Ok(());
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A reader sees the old text or the new text, never a mixture.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    let mut staged = path.as_os_str().to_owned();
    staged.push(format!(".{:016x}", getrandom::u64().map_err(io::Error::other)?));
    let staged = Path::new(&staged);
    let outcome = create_private(staged, text).and_then(|()| std::fs::rename(staged, path));
    if outcome.is_err() {
        let _ = std::fs::remove_file(staged);
    }
    outcome
}

/// Succeeds if the file doesn't exist.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    absent_is_fine(std::fs::remove_file(path))
}

/// Succeeds if the directory doesn't exist.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    absent_is_fine(std::fs::remove_dir_all(path))
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
