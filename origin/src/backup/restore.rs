//! Restores a backup: copies the media back, loads the dump, and sets accounts and the installation's id right.

use std::collections::HashSet;

use super::copy::{copy, named, read_list};
use super::tools::{OptionFile, run_dump};
use super::{BackupError, Manifest, Parts, Watcher};
use crate::database::media::ObjectKey;
use crate::media::store::Store;

/// Whether a restore may replace what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Empty,
    Replace,
}

/// Whose the media store is after the restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaOwner {
    /// The store has no owner: the restored installation gets a new id, since the original may still run.
    New,
    /// The store's owner has this id, and the restored installation gets the same: either it had this id before, or
    /// it replaces the installation that was backed up (`--original-is-gone`).
    Id(String),
}

pub struct Restored {
    /// Number of media objects that were copied; the others were in the media store already.
    pub copied: u64,
    /// Number of files that were removed since the backup has no bytes of them.
    pub removed: u64,
    /// Objects whose bytes in the backup are damaged.
    pub damaged: Vec<ObjectKey>,
}

/// Returns what keeps a backup from being restored into an empty installation: what is there and would be replaced.
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

/// Restores a backup. The media are copied first and the schema `selkie` is loaded last, so that an interrupted
/// restore leaves no installation that lacks something.
///
/// # Errors
/// The backup is damaged; MariaDB, its tools or a store failed. The restore can be repeated with [`Scope::Replace`].
pub async fn load(
    parts: &Parts<'_>,
    from: &Store,
    manifest: &Manifest,
    scope: Scope,
    owner: MediaOwner,
    watcher: &dyn Watcher,
) -> Result<Restored, BackupError> {
    let objects = read_list(from, &manifest.objects).await?;
    let copied = copy(from, parts.media, &objects, watcher).await?;
    let address = parts.system.hosts.serving_address().await;
    let options = OptionFile::write(&address, &parts.config.data_dir)?;
    if scope == Scope::Replace {
        parts.system.admin.drop_for_restore(&manifest.databases).await?;
    } else {
        // Only the schema of a new installation, which has no content.
        parts.system.admin.drop_for_restore(&[]).await?;
    }
    run_dump(&options, from, &manifest.dump, watcher).await?;
    drop(options);
    watcher.begin("setting accounts and grants".to_owned(), None);
    // The backup's schema may be that of an older program.
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
