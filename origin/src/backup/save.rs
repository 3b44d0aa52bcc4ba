//! Makes a backup: copies the media, dumps the databases, copies the media that were added in the
//! meantime, and writes the manifest.

use std::collections::BTreeMap;

use super::copy::{copy, recorded_objects, write_list};
use super::dumps::save_dump;
use super::manifest::{Facts, ProjectDump, SavedDatabase};
use shared::ident::ProjectName;
use shared::key::Access;

use super::{BackupError, BackupParts, Manifest, Watcher, secret_id};
use crate::database::admin::{Dump, Incomplete, ObjectFault};
use crate::database::media::ObjectKey;
use crate::media::store::{Effect, Store};
use crate::secret::InstallationSecret;
use crate::system::projects::Presence;

pub struct Saved {
    pub manifest: Manifest,
    /// The number of copied objects, without those that the backup's store already had.
    pub copied: u64,
    /// Objects that are not in the backup, because the media store doesn't have them.
    pub missing: Vec<ObjectKey>,
    /// Objects that are not in the backup, because their size or hash is not that of the upload.
    pub damaged: Vec<ObjectKey>,
}

impl Saved {
    /// Returns the databases' objects that the backup lacks, or that can't be used.
    pub fn incomplete(&self) -> Vec<ObjectFault> {
        let of = |project: &ProjectDump| [project.missing.clone(), project.broken.clone()].concat();
        self.manifest.projects.iter().flat_map(of).collect()
    }
}

/// Makes a backup. Objects that MariaDB can't read are left out, and named in the manifest. `own` is the installation's
/// secret, whose id the manifest records; `secret` is its text if the backup is to contain it.
///
/// The media are copied before and after the dump, so that the backup has every object that the dump refers to, unless
/// the object is missing or damaged in the media store, or its file was both added and deleted between the two copies.
/// A restore removes the rows of files whose object is missing.
pub async fn save(
    parts: &BackupParts<'_>,
    to: &Store,
    own: &InstallationSecret,
    secret: Option<String>,
    watcher: &dyn Watcher,
) -> Result<Saved, BackupError> {
    to.sweep_staging(Effect::Deletes).await?;
    let mut objects = recorded_objects(parts.table).await?;
    let before = copy(parts.media, to, &objects, watcher).await?;
    let mut owned: BTreeMap<ProjectName, Vec<SavedDatabase>> = BTreeMap::new();
    for database in parts.system.projects.databases(None).await? {
        if database.presence == Presence::Present {
            let saved = SavedDatabase { name: database.name.to_string(), drops: database.drops.as_str().to_owned() };
            owned.entry(database.project.clone()).or_default().push(saved);
        }
    }
    let created_at = humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string();
    let mut dump = parts.system.admin.open_dump(None).await?;
    let mut projects = Vec::with_capacity(owned.len());
    for (project, databases) in owned {
        watcher.begin(format!("dumping {} databases of project {project}", databases.len()), None);
        let names: Vec<String> = databases.iter().map(|database| database.name.clone()).collect();
        let (part, Incomplete { missing, broken, .. }) = match open(parts, &project).await {
            Ok(mut own) => save_dump(&mut own, Some(&mut dump), &names, to, watcher).await?,
            Err(error) => {
                let (part, mut incomplete) = save_dump(&mut dump, None, &[], to, watcher).await?;
                let object = format!("all of {}", names.join(", "));
                incomplete.missing.push(ObjectFault { object, reason: error.to_string() });
                (part, incomplete)
            }
        };
        projects.push(ProjectDump { project: project.to_string(), databases, dump: part, missing, broken });
    }
    watcher.begin("dumping the schema selkie".to_owned(), None);
    let (system, incomplete) = save_dump(&mut dump, None, &["selkie".to_owned()], to, watcher).await?;
    if let Some(ObjectFault { object, reason }) = incomplete.missing.into_iter().next() {
        return Err(BackupError::SystemDump { verb: "saved", object, reason });
    }
    let binlog = dump.binlog.clone();
    drop(dump);
    let facts = Facts {
        created_at,
        mariadb: parts.system.admin.server_facts().await?.version,
        installation: parts.table.installation().await?,
        secret_id: secret_id(own),
        secret,
        projects,
    };
    let since = recorded_objects(parts.table).await?;
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
    let manifest = Manifest::new(facts, binlog, system, list, sums);
    manifest.write(to).await?;
    Ok(Saved { manifest, copied: before.new + after.new, missing, damaged })
}

/// Opens a project's own connection, in several attempts: a full key can change the password of its account at any
/// time, and `selkie serve` may not have created the account yet.
async fn open(parts: &BackupParts<'_>, project: &ProjectName) -> Result<Dump, BackupError> {
    const ATTEMPTS_MAX: usize = 3;
    let account = parts.system.projects.account(project, Access::Full);
    let mut attempt = 1;
    loop {
        parts.system.projects.mend(project).await?;
        match parts.system.admin.open_dump(Some(&account)).await {
            Err(_) if attempt < ATTEMPTS_MAX => attempt += 1,
            opened => return Ok(opened?),
        }
    }
}
