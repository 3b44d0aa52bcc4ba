//! Makes a backup: copies the media, dumps the databases, copies the media that were added meanwhile, and writes the
//! manifest.

use super::copy::{copy, named, write_list};
use super::manifest::{Facts, Part};
use super::tools::{Binlog, OptionFile, dump};
use super::{BackupError, Manifest, Parts, Watcher, secret_id};
use crate::database::media::ObjectKey;
use crate::media::store::{Effect, Store};
use crate::secret::InstallationSecret;
use crate::system::projects::Presence;

/// A backup that was made.
pub struct Saved {
    pub manifest: Manifest,
    /// Number of media objects that were copied; the others were in the backup already.
    pub copied: u64,
    /// Objects that the database names but the media store doesn't have.
    pub missing: Vec<ObjectKey>,
    /// Objects whose bytes are not those that were recorded at their upload.
    pub damaged: Vec<ObjectKey>,
}

/// Makes a backup. `secret` is the text of the installation's secret, if the backup should contain it.
///
/// An object that the dump names was stored before the dump, so it is copied before or after it, unless its file was
/// added and removed within that time. A restore removes rows without an object.
///
/// # Errors
/// MariaDB, its tools or a store failed. The manifests of earlier backups are unchanged then.
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
    // The schema is last, so that an interrupted restore has none.
    let names: Vec<String> = databases.into_iter().chain(["selkie".to_owned()]).collect();
    let dumped = dump(&options, &names, binlog, to, watcher).await?;
    drop(options);
    let since = named(parts.table).await?;
    let after = copy(parts.media, to, &since, watcher).await?;
    // An object that is gone and that no row names any more was deleted meanwhile.
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
