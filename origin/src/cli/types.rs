//! `selkie types`: prints the types of a project's tables for programs that use the API.

use clap::{Args, ValueEnum};
use shared::ident::DatabaseName;

use super::system::database;
use super::target::{ApiTarget, TargetArgs};
use super::{CliError, Context};

#[derive(Debug, Args)]
pub struct TypesArgs {
    /// The language of the types
    #[arg(long, value_enum, value_name = "LANG")]
    lang: Language,
    /// Only the tables of this database
    #[arg(long, value_name = "DATABASE", value_parser = database)]
    database: Option<DatabaseName>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    Ts,
    Python,
    Rust,
}

impl TypesArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let extension = match self.lang {
            Language::Ts => "ts",
            Language::Python => "py",
            Language::Rust => "rs",
        };
        let (target, database) = (self.target, self.database);
        let work = async |target: ApiTarget| Ok(target.api.types(extension, database.as_ref()).await?);
        let text = target.run(context, work).await?;
        context.output.answer(&text, |text| text.trim_end().to_owned())
    }
}
