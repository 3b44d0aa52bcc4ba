//! Checks of this machine: data directory, secret file, clock.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Finding;

/// Returns the machine's time in seconds since 1970, with fractions; 0 if the clock is before 1970.
pub(super) fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |age| age.as_secs_f64())
}

/// Checks that the data directory exists and is writable.
pub(super) fn data_dir(path: &Path) -> Finding {
    let check = "data";
    match write_probe(path) {
        Ok(()) => Finding::ok(check, format!("the data directory {} can be written", path.display())),
        Err(error) => Finding::wrong(
            check,
            format!("the data directory {} can't be written: {error}", path.display()),
            "make it, give it to the user that selkie runs as, or set another by SELKIE_DATA_DIR",
        ),
    }
}

fn write_probe(path: &Path) -> io::Result<()> {
    let probe = path.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe).map(drop);
    // An error is ignored: the file is empty and does no harm.
    let _ = std::fs::remove_file(&probe);
    written
}

/// Checks that the secret file exists, and that neither its group nor others have any permission on it.
pub(super) fn secret_file(path: &Path) -> Finding {
    let check = "secret";
    match std::fs::metadata(path) {
        Ok(data) if data.permissions().mode() & 0o077 == 0 => {
            Finding::ok(check, format!("the installation secret {} is its owner's alone", path.display()))
        }
        Ok(_) => Finding::wrong(
            check,
            format!("others can read the installation secret {}", path.display()),
            format!("chmod 600 {}", path.display()),
        ),
        Err(error) => Finding::wrong(
            check,
            format!("the installation secret {} can't be read: {error}", path.display()),
            "restore it from a backup: without it no key and no account is valid",
        ),
    }
}
