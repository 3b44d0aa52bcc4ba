//! `selkie backup` and `selkie restore`: save an installation to a directory or a bucket, and restore it from there.

use std::path::Path;
use std::sync::Mutex;

use clap::Args;
use secrecy::ExposeSecret;
use serde::Serialize;
use shared::ident::printable;

use super::progress::Progress;
use super::system::{Consent, Opened, confirm, note};
use super::{CliError, Context};
use crate::backup::{self, BackupError, BackupParts, LATEST, Manifest, MediaOwner, Scope, Watcher};
use crate::config::Config;
use crate::database::admin::ObjectFault;
use crate::database::media::{MediaTable, ObjectKey};
use crate::media::store::Store;
use crate::secret::InstallationSecret;
use crate::signal;
use crate::system::installation::{Installation, InstallationError, Purpose};

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A directory, or s3://bucket/prefix with the settings media_s3_…; media that an earlier backup copied there are
    /// not copied again
    #[arg(value_name = "PLACE")]
    place: String,
    /// Put the installation's secret into the backup, so that keys stay valid after a restore on a new machine; whoever
    /// reads the backup can then forge keys
    #[arg(long)]
    with_secret: bool,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The directory, or s3://bucket/prefix, of the backup
    #[arg(value_name = "PLACE")]
    place: String,
    /// An older backup there, such as manifest-20261122T101500.000Z.json [default: the newest]
    #[arg(long, value_name = "NAME")]
    manifest: Option<String>,
    /// Drop the databases of the backup and the schema selkie before they are restored
    #[arg(long)]
    replace: bool,
    /// Take over the media store of the original installation, which must never run again
    #[arg(long)]
    original_is_gone: bool,
    /// Don't ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Default)]
struct Shown(Mutex<Option<Progress>>);

impl Watcher for Shown {
    fn begin(&self, step: String, bytes: Option<u64>) {
        if let Ok(mut bar) = self.0.lock() {
            *bar = None;
            note(&step);
            *bar = Some(Progress::new(&step, bytes));
        }
    }

    fn advance(&self, bytes: usize) {
        if let Ok(bar) = self.0.lock()
            && let Some(bar) = bar.as_ref()
        {
            bar.advance(bytes);
        }
    }
}

impl From<BackupError> for CliError {
    fn from(error: BackupError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            BackupError::Place | BackupError::SamePlace => Self::Usage { message, hint },
            _ => Self::Failed { message, hint },
        }
    }
}

async fn with_parts<T>(
    context: &Context,
    opened: &Opened,
    work: impl AsyncFnOnce(&BackupParts<'_>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let stop = signal::stop_token().map_err(CliError::Signals)?;
    let config = &context.config;
    let media = Store::open(&config.media_store, &config.media_dir())?;
    let table = MediaTable::new(&opened.system.hosts, config.connect_timeout);
    let parts = BackupParts { config, system: &opened.system, media: &media, table: &table };
    let outcome = tokio::select! {
        outcome = work(&parts) => outcome,
        () = stop.cancelled() => Err(CliError::failed("stopped by a signal", "the work is incomplete: run the command again")),
    };
    table.close().await;
    outcome
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SavedAnswer {
    manifest: String,
    databases: Vec<String>,
    dump_bytes: u64,
    media_objects: u64,
    media_bytes: u64,
    copied_objects: u64,
    has_secret: bool,
    missing_objects: Vec<String>,
    damaged_objects: Vec<String>,
    incomplete: Vec<ObjectFault>,
}

impl BackupArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let to = backup::open(&self.place, &context.config)?;
        let installation = context.open().await?;
        let own = installation.secret.clone();
        let opened = Opened::of(installation, context);
        let secret = self.with_secret.then(|| own.to_hex().expose_secret().to_owned());
        let outcome = Box::pin(with_parts(context, &opened, async |parts| {
            opened.system.migrate().await?;
            Ok(backup::save(parts, &to, &own, secret, &Shown::default()).await?)
        }));
        let outcome = outcome.await;
        let saved = opened.close(outcome).await?;
        if self.with_secret {
            note("THE BACKUP HAS THE INSTALLATION'S SECRET: whoever can read it can forge keys");
        } else {
            note(
                "THE BACKUP HAS NO SECRET: keep the installation's secret in another safe place (or use --with-secret); \
                 without it every key is invalid after a restore on a new machine",
            );
        }
        let texts = |keys: &[ObjectKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        let answer = SavedAnswer {
            manifest: saved.manifest.name(),
            databases: saved.manifest.databases(),
            dump_bytes: saved.manifest.dump_bytes(),
            media_objects: saved.manifest.object_count,
            media_bytes: saved.manifest.object_bytes,
            copied_objects: saved.copied,
            has_secret: self.with_secret,
            missing_objects: texts(&saved.missing),
            damaged_objects: texts(&saved.damaged),
            incomplete: saved.incomplete(),
        };
        report(&answer.incomplete);
        context.output.answer(&answer, |answer| {
            format!(
                "{}: databases: {}; dump: {} bytes; media: {} objects, {} bytes, {} of them new",
                answer.manifest,
                if answer.databases.is_empty() { "none".to_owned() } else { printable(&answer.databases.join(", ")) },
                answer.dump_bytes,
                answer.media_objects,
                answer.media_bytes,
                answer.copied_objects
            )
        })?;
        if !answer.incomplete.is_empty() {
            return Err(CliError::failed(
                format!("the backup was made, but objects of databases are incomplete: {}", names(&answer.incomplete)),
                "repair or drop them, then back up again; everything else is saved",
            ));
        }
        if saved.missing.is_empty() && saved.damaged.is_empty() {
            return Ok(());
        }
        Err(CliError::failed(
            format!(
                "the backup lacks media objects: {} missing from the media store, {} damaged",
                saved.missing.len(),
                saved.damaged.len()
            ),
            [texts(&saved.missing), texts(&saved.damaged)].concat().join(", "),
        ))
    }
}

fn report(faults: &[ObjectFault]) {
    for ObjectFault { object, reason } in faults {
        note(&printable(&format!("{object}: {reason}")));
    }
}

fn names(faults: &[ObjectFault]) -> String {
    printable(&faults.iter().map(|fault| fault.object.as_str()).collect::<Vec<_>>().join(", "))
}

fn adopt(secret: Option<&str>, config: &Config) -> Result<(), CliError> {
    if let Some(secret) = secret {
        InstallationSecret::adopt(secret, &config.data_dir).map_err(InstallationError::from)?;
        note(&format!("the backup's secret is {} now", InstallationSecret::path(&config.data_dir).display()));
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoredAnswer {
    manifest: String,
    created_at: String,
    databases: Vec<String>,
    copied_objects: u64,
    removed_files: u64,
    keys_stay_valid: bool,
    missing: Vec<ObjectFault>,
    /// The objects that now have the project's account as definer instead of another account.
    redefined: Vec<String>,
}

impl RestoreArgs {
    /// Restores a backup. An installation without a secret takes over the backup's secret, with a private MariaDB
    /// before MariaDB starts, since the password of MariaDB's administrator is derived from the secret.
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let config = &context.config;
        if !self.place.contains("://") && !Path::new(&self.place).is_dir() {
            return Err(CliError::Failed { message: format!("there is no directory {}", self.place), hint: None });
        }
        let from = backup::open(&self.place, config)?;
        let name = self.manifest.as_deref().unwrap_or(LATEST);
        if name.contains(['/', '\\']) {
            let message = format!("{name} is not the name of a manifest, such as {LATEST}");
            return Err(CliError::Usage { message, hint: None });
        }
        let manifest = Manifest::read(&from, name).await?;
        let present = InstallationSecret::load(config.secret.as_ref(), &config.data_dir);
        let is_missing = present.map_err(InstallationError::from)?.is_none();
        let mut unwritten = manifest.secret.as_deref().filter(|_| is_missing);
        if config.database_url.is_none() {
            adopt(unwritten.take(), config)?;
        }
        let mut opened_with = config.clone();
        if let Some(secret) = unwritten {
            opened_with.secret = Some(secret.into());
        }
        let installation = Installation::open(&opened_with, Purpose::Init).await?;
        let (in_use, own) = (installation.is_in_use(), installation.secret.clone());
        let opened = Opened::of(installation, context);
        let outcome = Box::pin(with_parts(context, &opened, async |parts| {
            if in_use {
                let message = "an origin runs on this data directory";
                return Err(CliError::failed(message, "stop it before a restore"));
            }
            self.restore(parts, &from, &manifest, unwritten).await
        }));
        let outcome = outcome.await;
        let restored = opened.close(outcome).await?;
        let keys_stay_valid = backup::secret_id(&own) == manifest.secret_id;
        if !keys_stay_valid {
            note(
                "THE SECRET IS NOT THAT OF THE BACKUP: every key is invalid; put the original's secret in place and \
                 start again, or issue keys anew (`selkie key create`)",
            );
        }
        let answer = RestoredAnswer {
            manifest: manifest.name(),
            created_at: manifest.created_at.clone(),
            databases: manifest.databases(),
            copied_objects: restored.copied,
            removed_files: restored.removed,
            keys_stay_valid,
            missing: restored.loaded.missing,
            redefined: restored.loaded.redefined,
        };
        report(&answer.missing);
        if !answer.redefined.is_empty() {
            let names = printable(&answer.redefined.join(", "));
            note(&format!("these objects now have the project's account as definer: {names}"));
        }
        context.output.answer(&answer, |answer| {
            format!(
                "restored the backup of {}: databases: {}; media objects copied: {}; files removed because the backup lacks their bytes: {}",
                answer.created_at,
                if answer.databases.is_empty() { "none".to_owned() } else { printable(&answer.databases.join(", ")) },
                answer.copied_objects,
                answer.removed_files
            )
        })?;
        if answer.missing.is_empty() {
            return Ok(());
        }
        Err(CliError::failed(
            format!("the backup is restored, but these objects are missing: {}", names(&answer.missing)),
            "everything else is restored; the lines above have MariaDB's reasons",
        ))
    }

    /// Restores the backup. `unwritten` is the backup's secret if it is to become the installation's secret.
    async fn restore(
        &self,
        parts: &BackupParts<'_>,
        from: &Store,
        manifest: &Manifest,
        unwritten: Option<&str>,
    ) -> Result<backup::Restored, CliError> {
        let there = backup::refusals(parts, manifest).await?;
        let scope = match (there.is_empty(), self.replace) {
            (true, _) => Scope::Empty,
            (false, true) => Scope::Replace,
            (false, false) => {
                return Err(CliError::failed(
                    format!("the installation is not empty: it has {}", there.join(", ")),
                    "restore into a new data directory or MariaDB, or add --replace to drop and restore what the backup has",
                ));
            }
        };
        let owner = self.owner(parts, manifest).await?;
        if scope == Scope::Replace {
            let warning = format!(
                "This drops the schema selkie and these databases with all their tables, and restores the backup of {}: {}.",
                manifest.created_at,
                manifest.databases().join(", ")
            );
            confirm(Consent::of(self.yes), &warning, "restore")?;
        }
        adopt(unwritten, parts.config)?;
        Ok(backup::load(parts, from, manifest, scope, owner, &Shown::default()).await?)
    }

    async fn owner(&self, parts: &BackupParts<'_>, manifest: &Manifest) -> Result<MediaOwner, CliError> {
        let mark = parts.media.owner().await?.map(|mark| mark.trim().to_owned());
        let own = match parts.system.admin.schema_version().await? {
            Some(_) => parts.table.installation().await.ok(),
            None => None,
        };
        match mark {
            None => Ok(MediaOwner::New),
            Some(mark) if Some(&mark) == own.as_ref() => Ok(MediaOwner::Id(mark)),
            Some(mark) if mark == manifest.installation && self.original_is_gone => Ok(MediaOwner::Id(mark)),
            Some(mark) if mark == manifest.installation => Err(CliError::failed(
                "the media store belongs to the original installation, which may still run",
                "set another media_store, or add --original-is-gone if that installation never runs again",
            )),
            Some(_) => Err(CliError::failed(
                "the media store is marked as another installation's",
                "set another media_store or data_dir",
            )),
        }
    }
}
