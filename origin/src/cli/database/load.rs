//! `selkie database load`: runs a file of SQL, such as a dump, in a project's database.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::cli::progress::Progress;
use crate::cli::system::{database, note, project};
use crate::cli::{CliError, Context};
use crate::database::admin::{ScriptSession, StatementRefusal};
use crate::database::errno;
use crate::query::sql::definer::blank_definer;
use crate::query::sql::script::{DatabaseUse, Script, ScriptStatement, mentions};
use crate::signal;
use crate::system::System;
use crate::system::projects::Presence;

const READ_BYTES: usize = 256 * 1024;

/// The number of bytes of a statement that are searched for `sql_mode`: only SET changes it.
const SET_MAX_BYTES: usize = 1024;

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The file of SQL, for example by mariadb-dump, mysqldump or phpMyAdmin; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The project whose rights the statements have
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = project)]
    project: ProjectName,
    /// The project's database that the file is loaded into [default: the one that the file names, else the project's
    /// only one]
    #[arg(long, value_name = "NAME", value_parser = database)]
    database: Option<DatabaseName>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoadedAnswer {
    statements: u64,
    redefined: u64,
    left_out: Vec<String>,
}

impl LoadArgs {
    pub(super) async fn run(self, context: &Context, system: &System) -> Result<(), CliError> {
        let projects = &system.projects;
        projects.require(&self.project).await?;
        let owned = projects.databases(Some(&self.project)).await?;
        let mut owned: Vec<DatabaseName> =
            owned.into_iter().filter(|one| one.presence == Presence::Present).map(|one| one.name).collect();
        if let Some(wanted) = &self.database {
            let wanted = system.admin.canonical(wanted).await?;
            if !owned.contains(&wanted) {
                return Err(self.not_owned(wanted.as_str(), &owned));
            }
            owned = vec![wanted];
        }
        let (mut input, size) = open(&self.file).await?;
        let account = projects.account(&self.project, Access::Full);
        let session = system.admin.open_script(&account).await?;
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        let progress = Progress::new(&format!("loading {}", self.file.display()), size);
        let mut load = ScriptLoad {
            arguments: &self,
            session,
            owned,
            named: None,
            script: Script::default(),
            answer: LoadedAnswer { statements: 0, redefined: 0, left_out: Vec::new() },
        };
        let outcome = tokio::select! {
            outcome = load.all(&mut input, &progress) => outcome,
            () = stop.cancelled() => Err(CliError::failed("stopped by a signal", "the statements before were run")),
        };
        drop(progress);
        let ScriptLoad { session, answer, .. } = load;
        session.close().await;
        outcome?;
        context.output.answer(&answer, |answer| {
            let redefined = match answer.redefined {
                0 => String::new(),
                count => format!("; {count} objects have the project's account as definer"),
            };
            format!("{} statements were run{redefined}", answer.statements)
        })
    }

    fn not_owned(&self, name: &str, owned: &[DatabaseName]) -> CliError {
        let names = owned.iter().map(DatabaseName::as_str).collect::<Vec<_>>().join(", ");
        let has = if names.is_empty() { "it has none".to_owned() } else { format!("it has {names}") };
        CliError::Usage {
            message: format!("project {} has no database {name}: {has}", self.project),
            hint: Some(format!(
                "create it (`selkie database create NAME --project {}`), or name another with --database",
                self.project
            )),
        }
    }
}

async fn open(file: &Path) -> Result<(Box<dyn AsyncRead + Unpin>, Option<u64>), CliError> {
    let failed = |error: std::io::Error| CliError::Usage {
        message: format!("{} can't be read: {error}", file.display()),
        hint: None,
    };
    if file == Path::new("-") {
        let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        return Ok((Box::new(tokio::fs::File::from_std(input.into())), None));
    }
    let opened = tokio::fs::File::open(file).await.map_err(failed)?;
    let size = opened.metadata().await.map_err(failed)?.len();
    Ok((Box::new(opened), Some(size)))
}

struct ScriptLoad<'a> {
    arguments: &'a LoadArgs,
    session: ScriptSession,
    owned: Vec<DatabaseName>,
    named: Option<String>,
    script: Script,
    answer: LoadedAnswer,
}

impl ScriptLoad<'_> {
    async fn all(&mut self, input: &mut (dyn AsyncRead + Unpin), progress: &Progress) -> Result<(), CliError> {
        if let [only] = self.owned.as_slice() {
            let only = only.clone();
            self.choose(1, &only).await?;
        }
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = input.read(&mut buffer).await.map_err(|error| {
                CliError::failed(format!("{} can't be read: {error}", self.arguments.file.display()), "try again")
            })?;
            if self.answer.statements == 0 && buffer[..read].starts_with(&[0x1f, 0x8b]) {
                let file = self.arguments.file.display();
                return Err(CliError::Usage {
                    message: format!("{file} is compressed by gzip"),
                    hint: Some(format!("pipe it: `zcat {file} | selkie database load -`")),
                });
            }
            self.script.push(&buffer[..read]);
            progress.advance(read);
            while let Some(statement) = self.script.next_statement(read == 0) {
                self.one(statement).await?;
            }
            if self.script.waiting() > self.session.statement_max_bytes {
                return Err(CliError::failed(
                    format!(
                        "line {}: the statement is larger than MariaDB's max_allowed_packet of {} bytes",
                        self.script.waiting_line(),
                        self.session.statement_max_bytes
                    ),
                    "raise max_allowed_packet, or dump with --skip-extended-insert",
                ));
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    async fn one(&mut self, statement: ScriptStatement) -> Result<(), CliError> {
        let ScriptStatement { line, mut text } = statement;
        match DatabaseUse::of(&text) {
            DatabaseUse::None => {}
            DatabaseUse::Chooses(name) => return self.file_chooses(line, name).await,
            DatabaseUse::Changes => {
                self.leave_out(line, "it creates or changes a database as a whole");
                return Ok(());
            }
            DatabaseUse::SetsReplication => {
                self.leave_out(line, "it sets what replication needs");
                return Ok(());
            }
            DatabaseUse::Drops => {
                return Err(CliError::failed(
                    format!("line {line}: the file drops a database"),
                    "remove the statement, or dump without --add-drop-database",
                ));
            }
        }
        if blank_definer(&mut text).is_some() {
            self.answer.redefined += 1;
        }
        let sets_mode = mentions(&text[..text.len().min(SET_MAX_BYTES)], b"SQL_MODE");
        let outcome = self.session.run(text).await?;
        self.accept(line, outcome)?;
        self.answer.statements += 1;
        if sets_mode {
            self.script.quoting = self.session.quoting().await?;
        }
        Ok(())
    }

    fn leave_out(&mut self, line: usize, reason: &str) {
        let text = format!("line {line} is left out: {reason}");
        note(&text);
        self.answer.left_out.push(text);
    }

    /// Handles `USE` of the database `name`. With `--database`, chooses the given database instead of `name`.
    async fn file_chooses(&mut self, line: usize, name: String) -> Result<(), CliError> {
        let other = self.named.as_ref().is_some_and(|before| *before != name);
        let target = match &self.arguments.database {
            Some(_) if other => {
                return Err(CliError::failed(
                    format!("line {line}: the file has more than one database, and --database can take only one"),
                    "dump each database apart",
                ));
            }
            Some(_) => self.owned.first(),
            None => self.owned.iter().find(|one| one.as_str() == name),
        };
        let Some(target) = target.cloned() else {
            return Err(self.arguments.not_owned(&name, &self.owned));
        };
        self.named = Some(name);
        self.choose(line, &target).await
    }

    async fn choose(&mut self, line: usize, database: &DatabaseName) -> Result<(), CliError> {
        let outcome = self.session.choose(database).await?;
        self.accept(line, outcome)
    }

    fn accept(&self, line: usize, outcome: Result<(), StatementRefusal>) -> Result<(), CliError> {
        let Err(StatementRefusal { errno, reason }) = outcome else {
            return Ok(());
        };
        let message = format!("line {line}: MariaDB refused the statement: {reason}");
        let hint = match errno {
            errno::DBACCESS_DENIED
            | errno::ACCESS_DENIED
            | errno::TABLEACCESS_DENIED
            | errno::SPECIFIC_ACCESS_DENIED
            | errno::PROCACCESS_DENIED => {
                "the statement needs a right beyond the project's databases: remove it, or run it yourself as an administrator"
            }
            errno::NO_DB => "name the database with --database",
            errno::TABLE_EXISTS | errno::DUP_ENTRY | errno::SP_ALREADY_EXISTS | errno::TRG_ALREADY_EXISTS => {
                "load into an empty database, or dump with --add-drop-table"
            }
            errno::UNKNOWN_CHARACTER_SET | errno::UNKNOWN_COLLATION => {
                "it is MySQL's: replace it in the file, for example by `sed s/utf8mb4_0900_ai_ci/utf8mb4_unicode_ci/g`"
            }
            errno::BINLOG_UNSAFE_ROUTINE | errno::BINLOG_CREATE_ROUTINE_NEED_SUPER => {
                "set log_bin_trust_function_creators = 1 in MariaDB until the file is loaded"
            }
            errno::PARSE_ERROR => {
                "a file of SQL for MariaDB or MySQL is needed; of a client's commands only DELIMITER is known"
            }
            _ => "correct the file",
        };
        Err(CliError::Failed {
            message,
            hint: Some(format!("{hint}; {} statements before it were run", self.answer.statements)),
        })
    }
}
