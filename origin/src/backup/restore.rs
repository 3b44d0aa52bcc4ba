//! Restores a backup: copies the media back, loads the dump, and then sets the installation's id,
//! the accounts and their grants.

use std::collections::HashSet;

use super::copy::{copy, named, read_list};
use super::tools::{OptionFile, check_dump, run_dump};
use super::{BackupError, Manifest, Parts, Watcher};
use crate::database::media::ObjectKey;
use crate::media::store::Store;

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
    /// Number of media objects that were copied, without those that the media store had already.
    pub copied: u64,
    /// Number of files whose rows were removed because their bytes are missing or damaged in the backup.
    pub removed: u64,
    /// Objects that were not copied, because their bytes in the backup are damaged.
    pub damaged: Vec<ObjectKey>,
}

/// Describes what a restore would replace: databases of the backup that exist already, and the content of the
/// installation. If the list is not empty, the restore needs [`Scope::Replace`].
///
/// # Errors
/// MariaDB can't be read.
pub async fn refusals(parts: &Parts<'_>, manifest: &Manifest) -> Result<Vec<String>, BackupError> {
    let mut there = Vec::new();
    for name in &manifest.databases {
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

/// Restores a backup. Checks the dump and copies the media before it drops any database, and loads the schema `selkie`
/// last, so that there is no installation if the restore stops before the dump is loaded.
///
/// # Errors
/// The backup is damaged, and nothing was dropped; MariaDB, its tools or a store failed. The databases may be dropped
/// then, and the restore can be repeated with [`Scope::Replace`].
pub async fn load(
    parts: &Parts<'_>,
    from: &Store,
    manifest: &Manifest,
    scope: Scope,
    owner: MediaOwner,
    watcher: &dyn Watcher,
) -> Result<Restored, BackupError> {
    let objects = read_list(from, &manifest.objects).await?;
    check_dump(from, &manifest.dump, watcher).await?;
    let copied = copy(from, parts.media, &objects, watcher).await?;
    let address = parts.system.hosts.serving_address().await;
    let options = OptionFile::write(&address, &parts.config.data_dir)?;
    if scope == Scope::Replace {
        parts.system.admin.drop_for_restore(&manifest.databases).await?;
    } else {
        // Drops only the schema `selkie`, which has no content in a new installation.
        parts.system.admin.drop_for_restore(&[]).await?;
    }
    run_dump(&options, from, &manifest.dump, watcher).await?;
    drop(options);
    watcher.begin("setting accounts and grants".to_owned(), None);
    // An older version of the program may have made the backup, with an older schema.
    parts.system.migrate().await?;
    parts.system.admin.forget_uploads().await?;
    let id = match &owner {
        MediaOwner::New => None,
        MediaOwner::Id(id) => Some(id),
    };
    parts.system.admin.set_installation(id).await?;
    parts.system.prepare().await?;
    let unusable: HashSet<ObjectKey> = copied.missing.iter().chain(&copied.damaged).copied().collect();
    let lost = |key: &ObjectKey| !objects.contains_key(key) || unusable.contains(key);
    let lost: Vec<ObjectKey> = named(parts.table).await?.into_keys().filter(lost).collect();
    let removed = parts.table.remove_rows_of(&lost).await?;
    parts.media.take_over(format!("{}\n", parts.table.installation().await?)).await?;
    Ok(Restored { copied: copied.new, removed, damaged: copied.damaged })
}
