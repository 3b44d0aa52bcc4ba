//! Restores a backup: copies the media back, loads each project's databases under the project's own account, then the
//! schema `selkie`, and sets the installation's id, the accounts and their grants.

use std::collections::HashSet;

use shared::key::Access;

use super::copy::{copy, read_list, recorded_objects};
use super::dumps::{check_dump, load_dump};
use super::{BackupError, BackupParts, Manifest, Watcher};
use crate::database::admin::{Loaded, ObjectFault};
use crate::database::media::ObjectKey;
use crate::media::store::Store;

/// Why the webhooks of a restored installation are paused.
const PAUSE_REASON: &str =
    "The installation was restored from a backup: resume the webhook if the original no longer delivers.";

/// Whether a restore first drops the schema `selkie` and the databases of the backup (`Replace`), or only the schema
/// `selkie` (`Empty`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Empty,
    Replace,
}

/// The installation that owns the media store after the restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaOwner {
    /// The media store had no owner. The restored installation gets a new id, because the original installation may
    /// still run.
    New,
    /// The media store's owner has this id, and the restored installation gets the same id: either the installation
    /// that is restored into had the id before, or it replaces the original installation (`--original-is-gone`).
    Id(String),
}

pub struct Restored {
    /// The number of copied objects, without those that the media store already had.
    pub copied: u64,
    /// The number of files whose rows were removed, because their bytes are missing or damaged in the backup.
    pub removed: u64,
    /// Objects that were not copied, because their bytes in the backup are damaged.
    pub damaged: Vec<ObjectKey>,
    /// The objects of the projects that are missing or have another definer.
    pub loaded: Loaded,
}

/// Returns why the installation is not empty: if there is a reason, the restore needs [`Scope::Replace`].
pub async fn refusals(parts: &BackupParts<'_>, manifest: &Manifest) -> Result<Vec<String>, BackupError> {
    let mut there = Vec::new();
    for name in &manifest.databases() {
        if parts.system.admin.exists(name).await? {
            there.push(format!("database {name}"));
        }
    }
    if parts.system.admin.schema_version().await?.is_some() {
        let content = parts.system.admin.content().await?;
        let counts = [
            (content.keys, "keys"),
            (content.databases, "databases of projects"),
            (content.files, "files"),
            (content.others, "projects, roles and issuers"),
        ];
        there.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    }
    Ok(there)
}

/// Restores a backup. Checks the dumps and copies the media before dropping any database, and loads the schema `selkie`
/// last: a restore that stops early leaves no installation.
pub async fn load(
    parts: &BackupParts<'_>,
    from: &Store,
    manifest: &Manifest,
    scope: Scope,
    owner: MediaOwner,
    watcher: &dyn Watcher,
) -> Result<Restored, BackupError> {
    let objects = read_list(from, &manifest.objects).await?;
    for part in manifest.projects.iter().map(|project| &project.dump).chain([&manifest.system]) {
        check_dump(from, part, watcher).await?;
    }
    let copied = copy(from, parts.media, &objects, watcher).await?;
    let admin = &parts.system.admin;
    // Without `Replace`, drops only the schema `selkie`, which has no content in a new installation.
    admin.drop_for_restore(if scope == Scope::Replace { manifest.databases() } else { Vec::new() }).await?;
    let mut loaded = Loaded::default();
    for dump in &manifest.projects {
        let Some((project, databases)) = dump.rows() else { continue };
        for database in &databases {
            admin.create_database(&database.name).await?;
        }
        parts.system.projects.settle_for_restore(&project, &databases).await?;
        let account = parts.system.projects.account(&project, Access::Full);
        watcher.begin(format!("loading the databases of project {project}"), Some(dump.dump.size));
        loaded.missing.extend(dump.missing.iter().cloned());
        let loading = async {
            let loader = admin.open_loader(Some(&account)).await?;
            load_dump(loader, from, &dump.dump, watcher).await
        };
        match loading.await {
            Ok(of_project) => {
                loaded.missing.extend(of_project.missing);
                loaded.redefined.extend(of_project.redefined);
            }
            // The project's code can end its own connection; the other projects are loaded all the same.
            Err(BackupError::Admin(error)) => {
                let names: Vec<&str> = databases.iter().map(|database| database.name.as_str()).collect();
                let object = format!("part of {}", names.join(", "));
                loaded.missing.push(ObjectFault { object, reason: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    watcher.begin("loading the schema selkie".to_owned(), Some(manifest.system.size));
    admin.create_schema().await?;
    let system = load_dump(admin.open_loader(None).await?, from, &manifest.system, watcher).await?;
    if let Some(ObjectFault { object, reason }) = system.missing.into_iter().next() {
        admin.drop_for_restore(Vec::new()).await?;
        return Err(BackupError::SystemDump { verb: "restored", object, reason });
    }
    watcher.begin("setting accounts and grants".to_owned(), None);
    // An older version of the program may have made the backup, with an older schema.
    parts.system.migrate().await?;
    parts.system.admin.forget_uploads().await?;
    // The original installation may still deliver.
    parts.system.admin.pause_webhooks(PAUSE_REASON).await?;
    let id = match &owner {
        MediaOwner::New => None,
        MediaOwner::Id(id) => Some(id),
    };
    parts.system.admin.set_installation(id).await?;
    parts.system.prepare().await?;
    let unusable: HashSet<ObjectKey> = copied.missing.iter().chain(&copied.damaged).copied().collect();
    let lost = |key: &ObjectKey| !objects.contains_key(key) || unusable.contains(key);
    let lost: Vec<ObjectKey> = recorded_objects(parts.table).await?.into_keys().filter(lost).collect();
    let removed = parts.table.remove_rows_of(&lost).await?;
    parts.media.take_over(format!("{}\n", parts.table.installation().await?)).await?;
    Ok(Restored { copied: copied.new, removed, damaged: copied.damaged, loaded })
}
