//! The manifest of a backup: a JSON file that names the parts of the backup.

use serde::{Deserialize, Serialize};

use super::{BackupError, hex};
use crate::database::media::ObjectKey;
use crate::media::store::{Staged, Store};

/// The version of the format that this program writes, and the only one that it reads.
const FORMAT: u32 = 1;

/// The name of the manifest of the newest backup. Each manifest is also stored under its own
/// [`Manifest::name`].
pub const LATEST: &str = "manifest.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: u32,
    /// Version of Selkie that made the backup.
    pub program: String,
    /// UTC time just before the dump began, in RFC 3339 with milliseconds.
    pub created_at: String,
    pub mariadb: String,
    /// The installation's id, which is also in the owner mark of its media store.
    pub installation: String,
    pub secret_id: String,
    /// The installation's secret in hex; `None` unless the backup was made with `--with-secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The names of the projects' databases in the dump. The dump also contains the schema `selkie`.
    pub databases: Vec<String>,
    /// Position of MariaDB's binary log at the moment of the dump, `file:position`; `None` without a binary log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog: Option<String>,
    /// The dump in SQL, compressed with zstd.
    pub dump: Part,
    /// The list of the media objects, compressed with zstd. Each line has an object's key, size and
    /// SHA-256.
    pub objects: Part,
    pub object_count: u64,
    pub object_bytes: u64,
}

/// A file of the backup other than a copied media object: the dump, or the list of objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    key: String,
    /// Size in bytes.
    pub size: u64,
    sha256: String,
}

impl Part {
    /// Publishes a staged file in the backup's store under a new key.
    pub(super) async fn store(store: &Store, staged: Staged) -> Result<Self, BackupError> {
        let key = ObjectKey::new();
        let part = Self { key: key.to_string(), size: staged.size(), sha256: hex(&staged.sha256()) };
        store.publish(staged, key).await?;
        Ok(part)
    }

    pub(super) fn key(&self) -> Result<ObjectKey, BackupError> {
        ObjectKey::parse(&self.key).ok_or(BackupError::Damaged("the manifest"))
    }

    pub(super) fn is(&self, size: u64, sha256: &[u8]) -> bool {
        self.size == size && self.sha256 == hex(sha256)
    }
}

/// The fields of a manifest that describe the installation, as opposed to the parts of the backup.
pub(super) struct Facts {
    pub(super) created_at: String,
    pub(super) mariadb: String,
    pub(super) installation: String,
    pub(super) secret_id: String,
    pub(super) secret: Option<String>,
    pub(super) databases: Vec<String>,
}

impl Manifest {
    pub(super) fn new(facts: Facts, binlog: Option<String>, dump: Part, objects: Part, sums: (u64, u64)) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: facts.created_at,
            mariadb: facts.mariadb,
            installation: facts.installation,
            secret_id: facts.secret_id,
            secret: facts.secret,
            databases: facts.databases,
            binlog,
            dump,
            objects,
            object_count: sums.0,
            object_bytes: sums.1,
        }
    }

    /// Returns the manifest's own name, such as `manifest-20261122T101500.000Z.json`.
    #[must_use]
    pub fn name(&self) -> String {
        let time: String = self.created_at.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        format!("manifest-{time}.json")
    }

    /// Writes the manifest, first under its own name, then as [`LATEST`].
    pub(super) async fn write(&self, store: &Store) -> Result<(), BackupError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| BackupError::BadManifest { name: self.name(), reason: error.to_string() })?;
        store.put_named(&self.name(), text.clone()).await?;
        Ok(store.put_named(LATEST, text).await?)
    }

    /// Reads the manifest `name` of a backup.
    ///
    /// # Errors
    /// There is no such manifest; the manifest is malformed or has another format version; the store failed.
    pub async fn read(store: &Store, name: &str) -> Result<Self, BackupError> {
        let bad = |reason: String| BackupError::BadManifest { name: name.to_owned(), reason };
        let text = store.named(name).await?.ok_or_else(|| BackupError::NoManifest(name.to_owned()))?;
        let found: serde_json::Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        let format = &found["format"];
        if *format != FORMAT {
            return Err(bad(format!("it has the format {format}, and this program reads only {FORMAT}")));
        }
        serde_json::from_value(found).map_err(|error| bad(error.to_string()))
    }
}
