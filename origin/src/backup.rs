//! Saves an installation's databases and media to a directory or a bucket, and restores them. A backup has the form of
//! a media store, whose objects are copies of the media, a dump of each project's databases, and a list of the copies.
//! A manifest names the dumps and the list. The manifest is written last, so that an interrupted backup has no manifest
//! of its own and can't be restored by mistake.

mod copy;
mod dumps;
mod manifest;
mod restore;
mod save;

use std::path::Path;

use shared::fingerprint::hex;

pub use self::manifest::{BackupFile, LATEST, Manifest};
pub use self::restore::{MediaOwner, Restored, Scope, load, refusals};
pub use self::save::{Saved, save};
use crate::config::{Config, StoreAddress, StoreName};
use crate::database::admin::AdminError;
use crate::database::media::{MediaTable, TableError};
use crate::media::store::{Store, StoreError};
use crate::secret::InstallationSecret;
use crate::system::projects::ProjectError;
use crate::system::{System, SystemSchemaError};

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("a backup must be in a directory or at s3://bucket/prefix")]
    Place,
    #[error("the place of the backup is the media store itself")]
    SamePlace,
    #[error("the backup has no {0}: no backup was completed there")]
    NoManifest(String),
    #[error("{name} is not the manifest of a backup that this program can read: {reason}")]
    BadManifest { name: String, reason: String },
    #[error("{0} of the backup is damaged: its size or SHA-256 differs from the manifest")]
    Damaged(&'static str),
    #[error("{object} of the schema `selkie` can't be {verb}: {reason}")]
    SystemDump { verb: &'static str, object: String, reason: String },
    #[error("the dump couldn't be compressed: {0}")]
    Compress(#[source] std::io::Error),
    #[error("{}", .0.in_full())]
    Store(#[from] StoreError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    System(#[from] SystemSchemaError),
}

impl BackupError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::System(error) => error.hint(),
            Self::Project(error) => error.hint(),
            _ => None,
        }
    }
}

pub trait Watcher: Sync {
    /// Called when a step begins, with the number of its bytes; `None` if the number is unknown.
    fn begin(&self, step: String, bytes: Option<u64>);
    fn advance(&self, bytes: usize);
}

pub struct BackupParts<'a> {
    pub config: &'a Config,
    pub system: &'a System,
    pub media: &'a Store,
    pub table: &'a MediaTable,
}

/// Opens a backup's store. `place` is a directory, created if it is missing, or a URL as in the setting `media_store`.
pub fn open(place: &str, config: &Config) -> Result<Store, BackupError> {
    let address = if place.contains("://") {
        match StoreName::parse(place).map_err(|_| BackupError::Place)? {
            StoreName::Directory(path) => StoreAddress::Directory(path),
            StoreName::Bucket { bucket, prefix } => StoreAddress::Bucket(Box::new(config.s3.at(bucket, prefix))),
        }
    } else {
        StoreAddress::Directory(std::path::absolute(place).map_err(|_| BackupError::Place)?)
    };
    if is_same(&address, &config.media_store) {
        return Err(BackupError::SamePlace);
    }
    Ok(Store::open(&address, &config.media_dir())?)
}

fn is_same(one: &StoreAddress, other: &StoreAddress) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match (one, other) {
        (StoreAddress::Directory(one), StoreAddress::Directory(other)) => real(one) == real(other),
        (StoreAddress::Bucket(one), StoreAddress::Bucket(other)) => {
            (&one.bucket, &one.prefix) == (&other.bucket, &other.prefix)
        }
        _ => false,
    }
}

/// Returns an id by which a restore can tell whether the installation has the secret of the backup. Hides the secret.
pub fn secret_id(secret: &InstallationSecret) -> String {
    hex(&secret.derive("backup:secret-id")[..16])
}
