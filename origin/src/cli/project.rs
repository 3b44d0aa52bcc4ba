//! `selkie project`: creates, lists and removes projects.

mod remove;

use clap::{Args, Subcommand};
use serde::Serialize;
use shared::ident::ProjectName;

use super::system::{Opened, project, time};
use super::{CliError, Context, TextTable};
use crate::database::admin::Inserted;
use crate::system::projects::{NameClaim, Projects};

#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Create a project and its two MariaDB accounts
    Create(CreateArgs),
    /// List projects
    List,
    /// Remove a project: revoke its keys, drop its two MariaDB accounts, delete its record
    Remove(remove::RemoveArgs),
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Lower-case letters, digits and inner hyphens, 32 at most
    #[arg(value_name = "NAME", value_parser = project)]
    name: ProjectName,
    /// Accept that existing databases named `<project>_…` become the project's
    #[arg(long)]
    claim: bool,
}

impl ProjectCommand {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let projects = &opened.system.projects;
        let outcome = match self {
            Self::Create(args) => args.run(context, projects).await,
            Self::List => list(context, projects).await,
            Self::Remove(args) => args.run(context, &opened.system).await,
        };
        opened.close(outcome).await
    }
}

#[derive(Serialize)]
struct CreatedAnswer {
    name: String,
    created: bool,
}

impl CreateArgs {
    async fn run(self, context: &Context, projects: &Projects) -> Result<(), CliError> {
        let claim = if self.claim { NameClaim::Take } else { NameClaim::Refuse };
        let inserted = projects.create(&self.name, claim).await?;
        let answer = CreatedAnswer { name: self.name.to_string(), created: inserted == Inserted::New };
        context.output.answer(&answer, |answer| {
            if answer.created {
                format!("project {} is created", answer.name)
            } else {
                format!("project {} exists; its accounts are correct", answer.name)
            }
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProjectLine {
    name: String,
    created_at: String,
    databases: Vec<String>,
}

async fn list(context: &Context, projects: &Projects) -> Result<(), CliError> {
    let databases = projects.databases(None).await?;
    let lines: Vec<ProjectLine> = projects
        .list()
        .await?
        .into_iter()
        .map(|row| ProjectLine {
            name: row.name.to_string(),
            created_at: time(row.created_at),
            databases: databases
                .iter()
                .filter(|database| database.project == row.name)
                .map(|database| database.name.to_string())
                .collect(),
        })
        .collect();
    context.output.answer(&lines, |lines| {
        let mut table = TextTable::new(["name", "created", "databases"]);
        for line in lines {
            table.row([line.name.clone(), line.created_at.clone(), line.databases.join(", ")]);
        }
        table.to_string()
    })
}
