//! Makes a backup: copies the media, dumps the databases, copies the media that were added in the
//! meantime, and writes the manifest.

use super::copy::{copy, named, write_list};
use super::manifest::{Facts, Part};
use super::tools::{Binlog, OptionFile, dump};
use super::{BackupError, Manifest, Parts, Watcher, secret_id};
use crate::database::media::ObjectKey;
use crate::media::store::{Effect, Store};
use crate::secret::InstallationSecret;
use crate::system::projects::Presence;

/// The result of a backup.
pub struct Saved {
    pub manifest: Manifest,
    /// Number of media objects that were copied, without those that the backup's store had already.
    pub copied: u64,
    /// Objects that are not in the backup, because the media store doesn't have them.
    pub missing: Vec<ObjectKey>,
    /// Objects that are not in the backup, because their size or hash is not that of the upload.
    pub damaged: Vec<ObjectKey>,
}

/// Makes a backup. `own` is the installation's secret, whose id the manifest records. `secret` is its text if the
/// backup should contain it.
///
/// The media are copied before and after the dump, so that the backup has every object that the dump refers to, unless
/// the object is missing or damaged in the media store, or its file was both added and deleted between the two copies.
/// A restore removes the rows of files whose object is missing.
///
/// # Errors
/// MariaDB, its tools or a store failed. Earlier backups in the same store can still be restored.
pub async fn save(
    parts: &Parts<'_>,
    to: &Store,
    own: &InstallationSecret,
    secret: Option<String>,
    watcher: &dyn Watcher,
) -> Result<Saved, BackupError> {
    to.sweep_staging(Effect::Deletes).await?;
    let mut objects = named(parts.table).await?;
    let before = copy(parts.media, to, &objects, watcher).await?;
    let owned = parts.system.projects.databases(None).await?;
    let present = owned.into_iter().filter(|database| database.presence == Presence::Present);
    let databases: Vec<String> = present.map(|database| database.name.to_string()).collect();
    let facts = Facts {
        created_at: humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string(),
        mariadb: parts.system.admin.server_facts().await?.version,
        installation: parts.table.installation().await?,
        secret_id: secret_id(own),
        secret,
        databases: databases.clone(),
    };
    let binlog = if parts.system.admin.writes_binlog().await? { Binlog::On } else { Binlog::Off };
    let address = parts.system.hosts.serving_address().await;
    let options = OptionFile::write(&address, &parts.config.data_dir)?;
    watcher.begin(format!("dumping the schema selkie and {} of the projects' databases", databases.len()), None);
    // The schema `selkie` comes last, so that a restore that stops earlier leaves no installation.
    let names: Vec<String> = databases.into_iter().chain(["selkie".to_owned()]).collect();
    let dumped = dump(&options, &names, binlog, to, watcher).await?;
    drop(options);
    let since = named(parts.table).await?;
    let after = copy(parts.media, to, &since, watcher).await?;
    // A file was deleted during the backup if its object is missing and no row refers to the object
    // any more. Such an object is no error.
    objects.retain(|key, _| !before.missing.contains(key));
    let is_named = |key: &ObjectKey| since.contains_key(key);
    let missing: Vec<ObjectKey> = after.missing.into_iter().collect();
    let mut damaged: Vec<ObjectKey> = before.damaged.into_iter().filter(is_named).chain(after.damaged).collect();
    damaged.sort_unstable();
    damaged.dedup();
    objects.extend(since);
    objects.retain(|key, _| !missing.contains(key) && !damaged.contains(key));
    let list = write_list(to, &objects).await?;
    let sums = (objects.len() as u64, objects.values().map(|(size, _)| size).sum());
    let dump = Part::store(to, dumped.staged).await?;
    let manifest = Manifest::new(facts, dumped.binlog, dump, list, sums);
    manifest.write(to).await?;
    Ok(Saved { manifest, copied: before.new + after.new, missing, damaged })
}
