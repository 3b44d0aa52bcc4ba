//! Files and directories that only this user may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Creates a directory with mode 0700; leaves an existing directory unchanged.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(crate) fn create_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Writes a file, unless it exists and is not empty. Of several processes at the same time, one writes its text.
pub(crate) fn fill_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.lock()?;
    if file.metadata()?.len() > 0 {
        return Ok(());
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Replaces a file in one atomic step: a reader sees the old text or the new text.
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

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    absent_is_fine(std::fs::remove_file(path))
}

pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    absent_is_fine(std::fs::remove_dir_all(path))
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
