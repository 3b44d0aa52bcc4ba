//! `selkie project remove`: removes a project. Running it again completes an interrupted removal.

use clap::{Args, ValueEnum};
use serde::Serialize;
use shared::ident::ProjectName;
use shared::operation::media::MediaList;

use super::super::system::{Consent, confirm, note, project};
use super::super::{CliError, Context};
use crate::database::media::MediaTable;
use crate::database::media::{ChangeableFiles, ReadableFiles};
use crate::media::library::Library;
use crate::system::System;
use crate::system::projects::{ProjectError, Removal};

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The project
    #[arg(value_name = "NAME", value_parser = project)]
    name: ProjectName,
    /// What happens to its databases: kept without a project, or dropped unless adopted without --allow-drop database
    #[arg(long, value_name = "WHAT", value_enum)]
    databases: Option<Databases>,
    /// Delete its media
    #[arg(long)]
    delete_media: bool,
    /// Don't ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Databases {
    Release,
    Drop,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovedAnswer {
    name: String,
    removed: bool,
    revoked_keys: usize,
    deleted_files: u64,
    dropped_databases: Vec<String>,
    released_databases: Vec<String>,
}

impl RemoveArgs {
    pub(super) async fn run(self, context: &Context, system: &System) -> Result<(), CliError> {
        let table = MediaTable::new(&system.hosts, context.config.connect_timeout);
        let library = Library::open(&context.config, table)?;
        let outcome = self.remove(context, system, &library).await;
        library.table().clone().close().await;
        outcome
    }

    async fn remove(self, context: &Context, system: &System, library: &Library) -> Result<(), CliError> {
        let removal = match self.databases {
            None => Removal::Refuse,
            Some(Databases::Release) => Removal::Release,
            Some(Databases::Drop) => Removal::Drop,
        };
        let (projects, name) = (&system.projects, &self.name);
        projects.check_removal(name, removal).await?;
        let count = count(library, name).await?;
        if count > 0 && !self.delete_media {
            let project = name.clone();
            return Err(ProjectError::OwnsFiles { project, count }.into());
        }
        let databases = match removal {
            Removal::Refuse => "",
            Removal::Release => ", and releases its databases",
            Removal::Drop => ", and drops its databases, but those that were adopted",
        };
        let warning = format!("This removes project {name}, revokes its keys, deletes its files ({count}){databases}.");
        confirm(Consent::of(self.yes), &warning, name.as_str())?;
        let revoked_keys = projects.close(name).await?;
        let deleted_files = delete_all(library, name).await?;
        let removed = projects.remove(name, removal).await?;
        if projects.is_ready_made(name) {
            note(&format!(
                "the ready-made accounts under [accounts.{name}] were left: drop them, and that table of the file"
            ));
        }
        let answer = RemovedAnswer {
            name: name.to_string(),
            removed: true,
            revoked_keys,
            deleted_files,
            dropped_databases: removed.dropped,
            released_databases: removed.released,
        };
        context.output.answer(&answer, |answer| {
            let list = |names: &[String]| match names {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            format!(
                "project {} is removed; keys revoked: {}; files deleted: {}; databases dropped: {}; released: {}",
                answer.name,
                answer.revoked_keys,
                answer.deleted_files,
                list(&answer.dropped_databases),
                list(&answer.released_databases)
            )
        })
    }
}

async fn count(library: &Library, project: &ProjectName) -> Result<u64, CliError> {
    let list = MediaList { count: true, ..MediaList::default() };
    let (_, count) = library.list(project, &list, &ReadableFiles::All).await?;
    Ok(count.unwrap_or_default())
}

async fn delete_all(library: &Library, project: &ProjectName) -> Result<u64, CliError> {
    let mut deleted = 0;
    loop {
        let (rows, _) = library.list(project, &MediaList::default(), &ReadableFiles::All).await?;
        if rows.is_empty() {
            return Ok(deleted);
        }
        for row in rows {
            library.delete(project, row.id, ChangeableFiles::All).await?;
            deleted += 1;
        }
    }
}
