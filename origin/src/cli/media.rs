//! `selkie media`: commands for media files. They access the store and MariaDB directly, so the origin need not run.

mod claim;
mod get;
mod list;
mod put;
mod remove;
mod sign;
mod source;
mod sweep;
mod target;

use clap::{Args, Subcommand};
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use tokio_util::sync::CancellationToken;

use super::system::{Opened, project};
use super::{CliError, Context};
use crate::database::media::{MediaRow, MediaTable, TableError};
use crate::media::library::{Library, SweepError};
use crate::media::store::StoreError;
use crate::media::url::Links;
use crate::system::System;

#[derive(Debug, Subcommand)]
pub enum MediaCommand {
    /// Upload files: all of them, or none
    Put(put::PutArgs),
    /// Fetch a file, or its thumbnail
    Get(get::GetArgs),
    /// List files, the newest first
    Ls(list::ListArgs),
    /// Remove files; removes nothing if one of them doesn't exist
    Rm(remove::RemoveArgs),
    /// Print a signed URL, by which anybody may read a private file until it expires
    Sign(sign::SignArgs),
    /// Count orphaned objects in the store, such as remains of aborted uploads; --delete deletes them
    Sweep(sweep::SweepArgs),
    /// Mark the store as belonging to this installation
    Claim(claim::ClaimArgs),
}

#[derive(Debug, Args)]
struct OfProject {
    /// The project of the files
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
}

struct MediaContext<'a> {
    context: &'a Context,
    system: &'a System,
    table: MediaTable,
    links: Links,
}

impl MediaContext<'_> {
    /// Opens the media library. Commands that need only the table of files don't call this, so that they work without
    /// the credentials of a bucket.
    fn library(&self) -> Result<Library, CliError> {
        Ok(Library::open(&self.context.config, self.table.clone())?)
    }
}

impl MediaCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let table = MediaTable::new(&opened.system.hosts, context.config.connect_timeout);
        let context = MediaContext {
            context,
            system: &opened.system,
            table: table.clone(),
            links: Links::new(context.config.public_url.clone()),
        };
        let outcome = match self {
            Self::Put(args) => args.run(&context).await,
            Self::Get(args) => args.run(&context).await,
            Self::Ls(args) => args.run(&context).await,
            Self::Rm(args) => args.run(&context).await,
            Self::Sign(args) => args.run(&context).await,
            Self::Sweep(args) => args.run(&context).await,
            Self::Claim(args) => args.run(&context).await,
        };
        table.close().await;
        opened.close(outcome).await
    }
}

/// Returns the path as commands take it: a name of digits gets a slash, or it would be taken for an id.
fn path_of(row: &MediaRow) -> String {
    let (folder, name) = (row.folder.as_str(), row.name.as_str());
    match folder {
        "" if name.bytes().all(|byte| byte.is_ascii_digit()) => format!("/{name}"),
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

async fn unless_stopped<T>(
    stop: &CancellationToken,
    deed: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    tokio::select! {
        outcome = deed => outcome,
        () = stop.cancelled() => Err(stopped()),
    }
}

fn stopped() -> CliError {
    CliError::Failed { message: "stopped; nothing was stored".to_owned(), hint: None }
}

impl From<Problem> for CliError {
    fn from(problem: Problem) -> Self {
        let hint = match problem.code() {
            // The API's own hint names a key of the request body, which the command line doesn't have.
            ErrorCode::MediaExists => Some("add --update to replace it".to_owned()),
            _ => problem.hint().map(str::to_owned),
        };
        Self::Failed { message: problem.message().to_owned(), hint }
    }
}

impl From<TableError> for CliError {
    fn from(error: TableError) -> Self {
        Problem::from(error).into()
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotSet(_) => {
                Self::failed(error.to_string(), "set it in the environment or in selkie.toml, as the origin has it")
            }
            error => Self::failed(format!("the media store fails: {}", error.in_full()), "`selkie doctor` checks it"),
        }
    }
}

impl From<SweepError> for CliError {
    fn from(error: SweepError) -> Self {
        let hint = match error {
            SweepError::Store(error) => return error.into(),
            SweepError::Table(_) => None,
            SweepError::Another => Some(
                "name this installation's own store by media_store; if the store is meant, and nobody else uses it, \
                 `selkie media claim`",
            ),
            SweepError::Unmarked => Some("if no other installation uses the store, mark it by `selkie media claim`"),
            SweepError::Implausible { .. } => {
                Some("check that this is the store's database and that it is complete; if so, raise --max-share")
            }
        };
        Self::Failed { message: error.to_string(), hint: hint.map(str::to_owned) }
    }
}
