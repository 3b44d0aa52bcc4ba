//! The manifest of a backup: a JSON file that names the parts of the backup.

use serde::{Deserialize, Serialize};
use shared::ident::{DatabaseName, ProjectName};

use super::{BackupError, hex};
use crate::database::admin::{DatabaseRow, ObjectFault};
use crate::database::media::ObjectKey;
use crate::media::store::{Staged, Store};

/// The only version of the format that this program reads.
const FORMAT: u32 = 2;

/// The first version of the format: SQL dumps, in which a project could run statements as the admin account.
const FORMAT_IN_SQL: u32 = 1;

/// The name of the manifest of the newest backup. Each manifest is also stored under its own
/// [`Manifest::name`].
pub const LATEST: &str = "manifest.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    format: u32,
    pub program: String,
    /// The time just before the dump began, in RFC 3339 with milliseconds.
    pub created_at: String,
    pub mariadb: String,
    /// The installation's id, which is also in the owner mark of its media store.
    pub installation: String,
    pub secret_id: String,
    /// The installation's secret in hex; `None` unless the backup was made with `--with-secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub projects: Vec<ProjectDump>,
    /// Position of MariaDB's binary log at the moment of the dump, `file:position`; `None` without a binary log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog: Option<String>,
    pub system: BackupFile,
    /// The list of the media objects, compressed with zstd. Each line has an object's key, size and
    /// SHA-256.
    pub objects: BackupFile,
    pub object_count: u64,
    pub object_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectDump {
    pub project: String,
    pub databases: Vec<SavedDatabase>,
    /// The databases' objects and rows, as records compressed with zstd.
    pub dump: BackupFile,
    /// Objects that are not in the dump, or not whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<ObjectFault>,
    /// Objects that are in the dump, but that MariaDB could not use, such as a view of a table that was dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<ObjectFault>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedDatabase {
    pub name: String,
    /// What the project's full keys may drop in the database.
    pub drops: String,
}

impl ProjectDump {
    pub(super) fn rows(&self) -> Option<(ProjectName, Vec<DatabaseRow>)> {
        let project = ProjectName::parse(&self.project).ok()?;
        let row = |database: &SavedDatabase| {
            let name = DatabaseName::parse(&database.name).ok().filter(|name| !name.is_system())?;
            Some(DatabaseRow { name, project: project.clone(), drops: database.drops.parse().ok()? })
        };
        let rows: Option<_> = self.databases.iter().map(row).collect();
        Some((project, rows?))
    }
}

/// A file of the backup other than a copied media object: a dump, or the list of objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupFile {
    key: String,
    pub size: u64,
    sha256: String,
}

impl BackupFile {
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

pub(super) struct Facts {
    pub(super) created_at: String,
    pub(super) mariadb: String,
    pub(super) installation: String,
    pub(super) secret_id: String,
    pub(super) secret: Option<String>,
    pub(super) projects: Vec<ProjectDump>,
}

impl Manifest {
    pub(super) fn new(
        facts: Facts,
        binlog: Option<String>,
        system: BackupFile,
        objects: BackupFile,
        sums: (u64, u64),
    ) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: facts.created_at,
            mariadb: facts.mariadb,
            installation: facts.installation,
            secret_id: facts.secret_id,
            secret: facts.secret,
            projects: facts.projects,
            binlog,
            system,
            objects,
            object_count: sums.0,
            object_bytes: sums.1,
        }
    }

    pub fn databases(&self) -> Vec<String> {
        self.projects.iter().flat_map(|project| &project.databases).map(|database| database.name.clone()).collect()
    }

    pub fn dump_bytes(&self) -> u64 {
        self.projects.iter().map(|project| project.dump.size).sum::<u64>() + self.system.size
    }

    /// Returns the manifest's own name, such as `manifest-20261122T101500.000Z.json`.
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

    pub async fn read(store: &Store, name: &str) -> Result<Self, BackupError> {
        let bad = |reason: String| BackupError::BadManifest { name: name.to_owned(), reason };
        let text = store.named(name).await?.ok_or_else(|| BackupError::NoManifest(name.to_owned()))?;
        let found: serde_json::Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        let format = &found["format"];
        if *format == FORMAT_IN_SQL {
            let reason = "it has the format 1, a dump in SQL, which could run a project's statements as the admin \
                 account: restore it with the version that made it, then back up again";
            return Err(bad(reason.to_owned()));
        }
        if *format != FORMAT {
            return Err(bad(format!("it has the format {format}, and this program reads only {FORMAT}")));
        }
        let manifest: Self = serde_json::from_value(found).map_err(|error| bad(error.to_string()))?;
        match manifest.projects.iter().find(|project| project.rows().is_none()) {
            Some(project) => Err(bad(format!("the databases of project {} can't be read", project.project))),
            None => Ok(manifest),
        }
    }
}
