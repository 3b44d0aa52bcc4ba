//! `selkie types`: prints the types of a project's tables for programs that use the API.

use clap::{Args, ValueEnum};
use shared::error::Problem;
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Grant;

use super::system::{Opened, database, project};
use super::{CliError, Context};
use crate::database::schema_cache::SchemaAge;
use crate::query::interface::{Interface, MediaInterface, python, rust, typescript};
use crate::query::plan::access::Rights;
use crate::system::System;
use crate::system::roles::schema;

#[derive(Debug, Args)]
pub struct TypesArgs {
    /// The language of the types
    #[arg(long, value_enum, value_name = "LANG")]
    lang: Language,
    /// The project of the tables
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
    /// Only the tables of this database
    #[arg(long, value_name = "DATABASE", value_parser = database)]
    database: Option<DatabaseName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    Ts,
    Python,
    Rust,
}

impl TypesArgs {
    /// Prints the types.
    ///
    /// # Errors
    /// There is no installation, project or database; MariaDB fails.
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let opened = Opened::migrated(context).await?;
        let types = self.types(context, &opened.system).await;
        let text = opened.close(types).await?;
        context.output.answer(&text, |text| text.trim_end().to_owned())
    }

    async fn types(&self, context: &Context, system: &System) -> Result<String, CliError> {
        system.projects.require(&self.project).await?;
        let cache = schema(&context.config, system, system.projects.account_source());
        let mut interface = Interface::new(Grant::Full, MediaInterface::default());
        let mut databases = cache.databases(&self.project).await.map_err(|problem| failed(&problem))?;
        if let Some(only) = &self.database {
            databases.retain(|database| database == only);
            if databases.is_empty() {
                let message = format!("the project {} has no database {only}", self.project);
                return Err(CliError::Failed { message, hint: None });
            }
        }
        for database in databases {
            let tables = cache.tables(&self.project, &database).await.map_err(|problem| failed(&problem))?;
            let relations = cache
                .relations(&self.project, &database, SchemaAge::Cached)
                .await
                .map_err(|problem| failed(&problem))?;
            interface.add(database, &tables, &relations, &Rights::Full);
        }
        Ok(match self.lang {
            Language::Ts => typescript::types(&interface),
            Language::Python => python::types(&interface),
            Language::Rust => rust::types(&interface),
        })
    }
}

fn failed(problem: &Problem) -> CliError {
    CliError::Failed { message: problem.message().to_owned(), hint: problem.hint().map(str::to_owned) }
}
