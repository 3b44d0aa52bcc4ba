//! Code that many commands share: the opened system, parsers of names, times as text, and confirmations.

use std::io::{self, BufRead, IsTerminal, Read as _, Write};
use std::path::Path;

use clap::Args;
use shared::ident::{DatabaseName, ProjectName};

use super::{CliError, Context};
pub(super) use crate::clock::utc as time;
use crate::database::admin::AdminError;
use crate::system::installation::Installation;
use crate::system::issuers::IssuerError;
use crate::system::keys::KeyError;
use crate::system::projects::ProjectError;
use crate::system::roles::RoleError;
use crate::system::{System, SystemSchemaError};

pub(super) struct Opened {
    pub(super) system: System,
    installation: Installation,
}

impl Opened {
    /// Opens the system without checking the schema's version. Starts the private MariaDB; doesn't contact the MariaDB
    /// of a `database_url`.
    pub(super) async fn plain(context: &Context) -> Result<Self, CliError> {
        Ok(Self::of(context.open().await?, context))
    }

    pub(super) fn of(installation: Installation, context: &Context) -> Self {
        let system = System::new(&installation.database, installation.secret.clone(), &context.config);
        Self { system, installation }
    }

    pub(super) async fn migrated(context: &Context) -> Result<Self, CliError> {
        let opened = Self::plain(context).await?;
        match opened.system.migrate().await {
            Ok(()) => Ok(opened),
            Err(error) => opened.close(Err(error.into())).await,
        }
    }

    pub(super) async fn close<T>(self, outcome: Result<T, CliError>) -> Result<T, CliError> {
        self.system.close().await;
        self.installation.close().await;
        outcome
    }
}

fn failed(message: String, hint: Option<String>) -> CliError {
    CliError::Failed { message, hint }
}

impl From<AdminError> for CliError {
    fn from(error: AdminError) -> Self {
        failed(error.to_string(), error.hint().map(str::to_owned))
    }
}

macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                failed(error.to_string(), error.hint())
            }
        }
    )*};
}
failed!(IssuerError, KeyError, ProjectError, RoleError);

impl From<SystemSchemaError> for CliError {
    fn from(error: SystemSchemaError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            SystemSchemaError::NoSchema(_) => Self::Usage { message, hint },
            _ => failed(message, hint),
        }
    }
}

#[derive(Debug, Args)]
pub struct ProjectFilter {
    /// Only those of this project
    #[arg(long, value_name = "PROJECT", value_parser = project)]
    pub(super) project: Option<ProjectName>,
}

pub(super) fn project(text: &str) -> Result<ProjectName, String> {
    ProjectName::parse(text).map_err(|problem| match problem.hint() {
        Some(hint) => format!("{} {hint}", problem.message()),
        None => problem.message().to_owned(),
    })
}

pub(super) fn database(text: &str) -> Result<DatabaseName, String> {
    DatabaseName::parse(text).map_err(|problem| problem.message().to_owned())
}

/// Reads a file, or standard input for `-`. `what` names the file in errors.
pub(super) fn read(what: &str, path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let outcome = match path.as_os_str() == "-" {
        true => io::stdin().lock().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    outcome.map_err(|error| failed(format!("the {what} {} can't be read: {error}", path.display()), None))?;
    Ok(text)
}

pub(super) fn time_or_dash(seconds: Option<u64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), time)
}

pub(super) fn note(text: &str) {
    // An error is ignored: if standard error is closed, nobody can read the line.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    ToBeAsked,
}

impl Consent {
    pub(super) fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::ToBeAsked }
    }
}

pub(super) fn confirm(consent: Consent, warning: &str, word: &str) -> Result<(), CliError> {
    if consent == Consent::Given {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(CliError::Usage { message: warning.to_owned(), hint: Some("add --yes to do it".to_owned()) });
    }
    note(&format!("{warning}\nType {word} to go on:"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && answer.trim() == word {
        return Ok(());
    }
    Err(CliError::Failed { message: "nothing was done".to_owned(), hint: None })
}
