//! `selkie database`: make, adopt, list and drop a project's databases.

use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::{DatabaseName, ProjectName};

use super::system::{Consent, Opened, confirm, database, note, project};
use super::{CliError, Context, Table};
use crate::projects::{OwnedDatabase, Presence, Projects};

/// Arguments of `selkie database`.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    #[command(subcommand)]
    command: DatabaseCommand,
}

#[derive(Debug, Subcommand)]
enum DatabaseCommand {
    /// Make a database for a project
    Create(NameArgs),
    /// Give a project a database that is there already
    Adopt(NameArgs),
    /// List the projects' databases
    List(ListArgs),
    /// Drop a project's database with all that is in it
    Drop(DropArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The database
    #[arg(value_name = "NAME", value_parser = database)]
    name: DatabaseName,
    /// The project that owns it
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only this project's
    #[arg(long, value_name = "PROJECT", value_parser = project)]
    project: Option<ProjectName>,
}

#[derive(Debug, Args)]
struct DropArgs {
    #[command(flatten)]
    target: NameArgs,
    /// Don't ask
    #[arg(long)]
    yes: bool,
}

impl DatabaseArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// The installation can't be opened, or what was asked can't be done.
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let projects = &opened.system.projects;
        let outcome = match self.command {
            DatabaseCommand::Create(args) => projects
                .create_database(&args.project, &args.name)
                .await
                .map_err(CliError::from)
                .and_then(|name| owned(context, projects, args.project, name)),
            DatabaseCommand::Adopt(args) => projects
                .adopt_database(&args.project, &args.name)
                .await
                .map_err(CliError::from)
                .and_then(|name| owned(context, projects, args.project, name)),
            DatabaseCommand::List(args) => args.run(context, projects).await,
            DatabaseCommand::Drop(args) => args.run(context, projects).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
struct DatabaseLine {
    name: String,
    project: String,
    present: bool,
}

impl DatabaseLine {
    fn of(database: &OwnedDatabase) -> Self {
        Self {
            name: database.name.to_string(),
            project: database.project.to_string(),
            present: database.presence == Presence::Present,
        }
    }
}

fn owned(
    context: &Context,
    projects: &Projects,
    project: ProjectName,
    name: DatabaseName,
) -> Result<(), CliError> {
    if projects.is_ready_made(&project) {
        note(&format!(
            "project {project} uses ready-made accounts: grant them their rights on it; `selkie doctor` says which"
        ));
    }
    let answer = DatabaseLine::of(&OwnedDatabase {
        name,
        project,
        presence: Presence::Present,
    });
    context.output.answer(&answer, |answer| {
        format!("project {} owns database {}", answer.project, answer.name)
    })
}

impl ListArgs {
    async fn run(self, context: &Context, projects: &Projects) -> Result<(), CliError> {
        if let Some(project) = &self.project {
            projects.require(project).await?;
        }
        let databases = projects.databases(self.project.as_ref()).await?;
        let lines: Vec<DatabaseLine> = databases.iter().map(DatabaseLine::of).collect();
        context.output.answer(&lines, |lines| {
            let mut table = Table::new(["name", "project", "state"]);
            for line in lines {
                let state = if line.present { "present" } else { "missing" };
                table.row([line.name.clone(), line.project.clone(), state.to_owned()]);
            }
            table.to_string()
        })
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
        let warning =
            format!("This drops database {name} of project {project} with all its tables.");
        confirm(Consent::of(self.yes), &warning, name.as_str())?;
        let name = projects.drop_database(&project, &name).await?;
        let answer = DroppedAnswer {
            name: name.to_string(),
            dropped: true,
        };
        context.output.answer(&answer, |answer| {
            format!("database {} is dropped", answer.name)
        })
    }
}
