//! Checks of what is outside of MariaDB: data directory, secret file, media store, clock.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Finding;
use crate::config::{Config, StoreAddress};
use crate::media::store::{Store, StoreError};

/// Returns the seconds since 1970; 0 if the clock is before 1970.
pub(super) fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |age| age.as_secs_f64())
}

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

/// Checks the media store without storing anything.
pub(super) async fn store(config: &Config) -> Finding {
    let check = "store";
    let place = match &config.media_store {
        StoreAddress::Directory(path) => format!("the media store {}", path.display()),
        StoreAddress::Bucket(address) => format!("the media store, bucket {},", address.bucket),
    };
    let opened = Store::open(&config.media_store, &config.media_dir());
    let checked = match opened {
        Ok(store) => store.check().await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => Finding::ok(check, format!("{place} answers and takes files")),
        Err(error) => {
            let hint = store_hint(&error, &config.media_store);
            Finding::wrong(check, format!("{place} fails: {}", error.in_full()), hint)
        }
    }
}

fn store_hint(error: &StoreError, address: &StoreAddress) -> &'static str {
    match (error, address) {
        (StoreError::Full(_), _) => "make room, or raise the quota",
        (_, StoreAddress::Directory(_)) => {
            "make it, give it to the user that selkie runs as, or set another by SELKIE_MEDIA_STORE"
        }
        (_, StoreAddress::Bucket(_)) => {
            "look at media_store, media_s3_endpoint, media_s3_region and the access key, and whether the data directory \
             can be written"
        }
    }
}
