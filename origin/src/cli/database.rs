//! `selkie database`: creates, adopts, loads, releases, lists and drops a project's databases.

mod load;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::{DatabaseName, ProjectName};

use self::load::LoadArgs;
use super::system::{Consent, Opened, ProjectFilter, confirm, database, note, project};
use super::{CliError, Context, TextTable};
use crate::database::admin::Drops;
use crate::system::projects::{OwnedDatabase, Presence, Projects};

#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Create a database for a project
    Create(NameArgs),
    /// Give a project an existing database, or change what its keys may drop in it
    Adopt(AdoptArgs),
    /// Run a file of SQL, such as a dump, in a project's database, with the rights of the project's full keys
    Load(LoadArgs),
    /// Take a database from a project, without changing it
    Release(NameArgs),
    /// List the projects' databases
    List(ProjectFilter),
    /// Drop a project's database with all its data; refuses one adopted without --allow-drop database
    Drop(DropArgs),
}

#[derive(Debug, Args)]
pub struct NameArgs {
    /// The database
    #[arg(value_name = "NAME", value_parser = database)]
    name: DatabaseName,
    /// The project that owns it
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
}

#[derive(Debug, Args)]
pub struct AdoptArgs {
    #[command(flatten)]
    target: NameArgs,
    /// What the project's full keys may drop: tables and the like, the database too, or nothing
    #[arg(long, value_name = "WHAT", default_value = "tables", value_parser = drops())]
    allow_drop: Drops,
}

fn drops() -> impl TypedValueParser<Value = Drops> {
    PossibleValuesParser::new(Drops::ALL.map(Drops::as_str)).try_map(|text| text.parse::<Drops>())
}

#[derive(Debug, Args)]
pub struct DropArgs {
    #[command(flatten)]
    target: NameArgs,
    /// Don't ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl DatabaseCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let projects = &opened.system.projects;
        let outcome = match self {
            Self::Create(args) => projects
                .create_database(&args.project, &args.name)
                .await
                .map_err(CliError::from)
                .and_then(|name| owned(context, projects, args.project, name, Drops::Database)),
            Self::Adopt(AdoptArgs { target, allow_drop }) => projects
                .adopt_database(&target.project, &target.name, allow_drop)
                .await
                .map_err(CliError::from)
                .and_then(|name| owned(context, projects, target.project, name, allow_drop)),
            Self::Load(args) => Box::pin(args.run(context, &opened.system)).await,
            Self::Release(args) => args.release(context, projects).await,
            Self::List(filter) => list(filter, context, projects).await,
            Self::Drop(args) => args.run(context, projects).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
struct DatabaseLine {
    name: String,
    project: String,
    present: bool,
    drops: &'static str,
}

impl DatabaseLine {
    fn of(database: &OwnedDatabase) -> Self {
        Self {
            name: database.name.to_string(),
            project: database.project.to_string(),
            present: database.presence == Presence::Present,
            drops: database.drops.as_str(),
        }
    }
}

fn owned(
    context: &Context,
    projects: &Projects,
    project: ProjectName,
    name: DatabaseName,
    drops: Drops,
) -> Result<(), CliError> {
    if projects.is_ready_made(&project) {
        note(&format!(
            "project {project} uses ready-made accounts: grant them their rights on it; `selkie doctor` says which"
        ));
    }
    let answer = DatabaseLine::of(&OwnedDatabase { name, project, presence: Presence::Present, drops });
    context.output.answer(&answer, |answer| format!("project {} owns database {}", answer.project, answer.name))
}

async fn list(filter: ProjectFilter, context: &Context, projects: &Projects) -> Result<(), CliError> {
    if let Some(project) = &filter.project {
        projects.require(project).await?;
    }
    let databases = projects.databases(filter.project.as_ref()).await?;
    let lines: Vec<DatabaseLine> = databases.iter().map(DatabaseLine::of).collect();
    context.output.answer(&lines, |lines| {
        let mut table = TextTable::new(["name", "project", "state", "keys may drop"]);
        for line in lines {
            let state = if line.present { "present" } else { "missing" };
            table.row([line.name.clone(), line.project.clone(), state.to_owned(), line.drops.to_owned()]);
        }
        table.to_string()
    })
}

#[derive(Serialize)]
struct ReleasedAnswer {
    name: String,
    released: bool,
}

impl NameArgs {
    async fn release(self, context: &Context, projects: &Projects) -> Result<(), CliError> {
        let name = projects.release_database(&self.project, &self.name).await?;
        if projects.is_ready_made(&self.project) {
            note(&format!(
                "project {} uses ready-made accounts: revoke their rights on it, or the next start refuses them",
                self.project
            ));
        }
        let answer = ReleasedAnswer { name: name.to_string(), released: true };
        context.output.answer(&answer, |answer| format!("database {} is released; its data is as it was", answer.name))
    }
}

#[derive(Serialize)]
struct DroppedAnswer {
    name: String,
    dropped: bool,
}

impl DropArgs {
    async fn run(self, context: &Context, projects: &Projects) -> Result<(), CliError> {
        let NameArgs { name, project } = self.target;
        projects.check_drop(&project, &name).await?;
        let warning = format!("This drops database {name} of project {project} with all its tables.");
        confirm(Consent::of(self.yes), &warning, name.as_str())?;
        let name = projects.drop_database(&project, &name).await?;
        let answer = DroppedAnswer { name: name.to_string(), dropped: true };
        context.output.answer(&answer, |answer| format!("database {} is dropped", answer.name))
    }
}
