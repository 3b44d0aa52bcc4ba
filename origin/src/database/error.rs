//! Errors of statements, and the problem responses that MariaDB's error numbers become.

mod host;
mod message;
mod names;

use super::description_budget::TooLarge;
use super::errno::{self, SIGNALLED, code};
use super::retry::Recovery;
use super::run::Denied;
use super::single_flight::LoadAborted;
use crate::query::catalog::broken_view;
use host::is_refusal_of_host;
pub(super) use host::{HostLost, means_lost};
use message::{ended, sentence, without_row};
use mysql_async::DriverError;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, shown};
use shared::limits::{BATCH_ANSWER_MAX_BYTES, BATCH_ANSWER_MAX_ROWS, INCLUDE_BATCH_MAX_RECORDS, INCLUDE_MAX_BYTES};
use shared::policy::role_forbids;

#[derive(Clone, Debug, thiserror::Error)]
pub enum DbError {
    #[error("MariaDB refused with {0}")]
    Refused(u16, Refusal),
    /// The outcome of the work may be unknown. The text is the cause, for logs only.
    #[error("the connection to MariaDB failed")]
    Unavailable(Box<str>),
    #[error("too many requests wait for a connection")]
    Overloaded,
    #[error("the statement ran for too long")]
    Timeout,
    #[error("there is no such database")]
    NoDatabase(DatabaseName),
    #[error("the statement has {0} parameters, {1} were given")]
    ParamCount(u16, usize),
    /// The driver can't bind the statement's values, or a row of a list of databases or tables has an unexpected form.
    #[error("the driver misread the statement")]
    Misread,
    #[error("the statement reads a file of its client")]
    LocalFile,
    #[error("the result sets are too large")]
    ResultsTooLarge,
    /// The result has more columns than the driver counts, and would be misread: the connection must be closed.
    #[error("the result has too many columns")]
    TooManyColumns,
    /// The table of receipts (see `idempotency`) is missing or has other columns, or the account lacks privileges on
    /// it.
    #[error("the account can't store idempotency receipts")]
    NoReceipts,
    /// The statement was not sent, since MariaDB would have closed the connection. The value is `max_allowed_packet` in
    /// bytes.
    #[error("the statement is larger than a packet")]
    PacketTooLarge(usize),
    #[error("the answer is too large")]
    AnswerTooLarge,
    /// The related records exceed [`INCLUDE_MAX_BYTES`].
    #[error("the related records are too large")]
    IncludeTooLarge,
    /// The head of the response, already sent, promises all rows, but rows added meanwhile exceed the maximum; or an
    /// update changed more rows than were read and locked before it.
    #[error("rows were added meanwhile")]
    RowsAdded,
    #[error("the position is not reached")]
    NotReached,
    #[error("the position is another database's")]
    OtherPosition,
    #[error(transparent)]
    DescriptionTooLarge(TooLarge),
    /// `X-Selkie-After` is too far ahead to be the position of a write.
    #[error("the position is none of this database")]
    NoPosition,
    #[error("the caller's role does not allow the record")]
    RoleForbids(Denied),
}

#[derive(Clone, Debug)]
pub struct Refusal {
    state: String,
    message: String,
    /// The index in `batchData` of the row at fault.
    row: Option<usize>,
}

impl Refusal {
    fn code(&self, errno: u16) -> Option<ErrorCode> {
        match is_refusal_of_host(errno, &self.message, &self.state) {
            true => Some(ErrorCode::DatabaseUnavailable),
            false => code(errno, &self.state),
        }
    }
}

impl From<mysql_async::Error> for DbError {
    fn from(error: mysql_async::Error) -> Self {
        match error {
            mysql_async::Error::Server(error) => {
                Self::Refused(error.code, Refusal { state: error.state, message: error.message, row: None })
            }
            mysql_async::Error::Driver(DriverError::StmtParamsMismatch { required, supplied }) => {
                Self::ParamCount(required, supplied)
            }
            mysql_async::Error::Driver(
                DriverError::MixedParams | DriverError::Params(_) | DriverError::StmtParamsNumberExceedsLimit { .. },
            ) => Self::Misread,
            mysql_async::Error::Driver(DriverError::LocalInfile(_)) => Self::LocalFile,
            other => Self::Unavailable(other.to_string().into()),
        }
    }
}

impl From<LoadAborted> for DbError {
    fn from(_: LoadAborted) -> Self {
        Self::Unavailable("loading a description of the schema was aborted".into())
    }
}

impl DbError {
    /// Converts an error of opening or resetting a connection, so that callers don't see MariaDB's message, such as
    /// that of a refused password.
    pub(super) fn connecting(self) -> Self {
        match self {
            Self::Refused(..) if self.code() == Some(ErrorCode::Overloaded) => Self::Overloaded,
            Self::Refused(errno, refusal) => {
                Self::Unavailable(format!("MariaDB refused with {errno}: {}", refusal.message).into())
            }
            error => error,
        }
    }

    /// Adds the index in `batchData` of the row that MariaDB refused.
    pub(super) fn in_row(self, row: Option<usize>) -> Self {
        match self {
            Self::Refused(errno, refusal) => Self::Refused(errno, Refusal { row, ..refusal }),
            error => error,
        }
    }

    pub(super) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(errno, refusal) => refusal.code(*errno),
            _ => None,
        }
    }

    /// Returns whether connection or host were lost. It may then be unknown whether the statement ran.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Unavailable(_)) || self.code() == Some(ErrorCode::DatabaseUnavailable)
    }

    pub fn errno(&self) -> Option<u16> {
        match self {
            // A SIGNAL may carry any error number, so its number says nothing about schema, locks or keys.
            Self::Refused(_, refusal) if refusal.state == SIGNALLED => None,
            Self::Refused(errno, _) => Some(*errno),
            _ => None,
        }
    }

    pub fn recovery(&self) -> Recovery {
        match self.errno() {
            Some(errno) if errno::STALE_SCHEMA.contains(&errno) => Recovery::Schema,
            // `CHECKREAD` means, with `innodb_snapshot_isolation` (default since 11.6), that a row has changed.
            Some(errno::CHECKREAD | errno::LOCK_DEADLOCK) => Recovery::Again,
            Some(errno::UNKNOWN_COM | errno::OPTION_PREVENTS_STATEMENT) if self.is_lost() => Recovery::OtherHost,
            _ if self.is_lost() => Recovery::Lost,
            _ if matches!(self, Self::RowsAdded) => Recovery::Again,
            _ => Recovery::None,
        }
    }

    pub fn is_duplicate(&self) -> bool {
        matches!(self.errno(), Some(errno::DUP_ENTRY | errno::DUP_ENTRY_WITH_KEY_NAME))
    }

    /// Returns whether MariaDB ended the statement early; false for lock timeouts and [`DbError::Timeout`].
    pub fn is_cut_short(&self) -> bool {
        self.code() == Some(ErrorCode::QueryTimeout)
    }

    pub fn is_lock_timeout(&self) -> bool {
        self.errno() == Some(errno::LOCK_WAIT_TIMEOUT)
    }

    pub fn into_problem(self) -> Problem {
        match self {
            Self::Refused(errno, refusal) => refused(errno, refusal),
            Self::Unavailable(cause) => {
                Problem::new(ErrorCode::DatabaseUnavailable, "The database can't be reached at the moment.")
                    .with_cause(cause.into_string())
            }
            Self::Overloaded => Problem::new(ErrorCode::Overloaded, "Too many requests wait for the database."),
            Self::Timeout => {
                Problem::new(ErrorCode::QueryTimeout, "The statement ran for longer than allowed and was stopped.")
            }
            Self::NoDatabase(name) => no_database(&name, &[]),
            Self::ParamCount(required, given) => Problem::new(
                ErrorCode::InvalidBody,
                format!("The query has {required} placeholders, params has {given} values."),
            ),
            Self::Misread => Problem::new(
                ErrorCode::SqlError,
                "A colon in the query looks like a named parameter; only ? is a parameter.",
            )
            .with_hint("Pass text that holds a colon in params."),
            Self::LocalFile => Problem::new(
                ErrorCode::PermissionDenied,
                "LOAD DATA LOCAL is not possible here: there is no file to read.",
            )
            .with_hint("Insert the records with batchData."),
            Self::ResultsTooLarge => sql_error("The result sets of this statement are too large.")
                .with_hint("Return one result set per call, or page through the results."),
            Self::TooManyColumns => sql_error("The result has more than 65,535 columns, the maximum.")
                .with_hint("Select fewer columns."),
            Self::NoReceipts => Problem::new(
                ErrorCode::PermissionDenied,
                "Idempotency-Key can't be used: the project's MariaDB account can't store receipts in this database.",
            )
            .with_hint("Let the account create the table selkie_receipts, or create it as docs/accounts.md shows."),
            Self::PacketTooLarge(bytes) => Problem::new(
                ErrorCode::BodyTooLarge,
                format!("A record or statement is larger than the {bytes} bytes that MariaDB takes at once."),
            )
            .with_hint("MariaDB's max_allowed_packet sets that limit."),
            Self::RowsAdded => {
                Problem::new(ErrorCode::LockTimeout, "Other requests added records while this one ran.")
            }
            Self::NotReached => Problem::new(
                ErrorCode::LockTimeout,
                "The database has not reached the position of X-Selkie-After within 5 s.",
            )
            .with_hint("Send the request again, or without X-Selkie-After if older data will do."),
            Self::OtherPosition => Problem::new(
                ErrorCode::InvalidQueryOption,
                "The position in X-Selkie-After is not of the kind that this database has.",
            )
            .with_hint("Send the value of X-Selkie-Position from the answer to a write of this installation."),
            Self::DescriptionTooLarge(found) => found.into_problem(),
            Self::NoPosition => Problem::new(
                ErrorCode::InvalidQueryOption,
                "The position in X-Selkie-After is of no write to this database: it is far ahead of the last write, or of \
                 another replication domain.",
            )
            .with_hint("Send the value of X-Selkie-Position from the answer to a write of this installation."),
            Self::RoleForbids(denied) => forbidden(&denied),
            Self::IncludeTooLarge => Problem::new(
                ErrorCode::InvalidQueryOption,
                format!(
                    "The included records of {INCLUDE_BATCH_MAX_RECORDS} records, which are read together, take more \
                     than {INCLUDE_MAX_BYTES} bytes."
                ),
            )
            .with_hint("Give the relation a limit, fewer fields or a query in include, or read fewer records."),
            Self::AnswerTooLarge => Problem::new(
                ErrorCode::InvalidBody,
                format!(
                    "The answer of a batch, or of a write that returns records, has {BATCH_ANSWER_MAX_ROWS} rows and \
                     {BATCH_ANSWER_MAX_BYTES} bytes at most; this one has more."
                ),
            )
            .with_hint(
                "Nothing was written. Read less with limit, selectFields and returning, or read outside of the batch.",
            ),
        }
    }
}

fn forbidden(denied: &Denied) -> Problem {
    match denied {
        Denied::Rule => role_forbids("write a record with these values; nothing was written"),
        Denied::Reference(field) => {
            let what = format!("point {} to a record that it may not read; nothing was written", shown(field));
            role_forbids(&what).with_field(field)
        }
    }
}

fn refused(errno: u16, mut refusal: Refusal) -> Problem {
    if refusal.row.is_some() {
        without_row(&mut refusal.message);
    }
    let Some(code) = refusal.code(errno) else {
        return Problem::internal(
            "The database failed to do this.",
            format!("MariaDB failed with {errno}: {}", refusal.message),
        );
    };
    match code {
        ErrorCode::DatabaseUnavailable => {
            return Problem::new(code, "The database is not available at the moment.")
                .with_cause(format!("MariaDB refused with {errno}: {}", refusal.message));
        }
        ErrorCode::RejectedByDatabase => {
            return in_row(Problem::new(code, refusal.message).with_details(errno, refusal.state), refusal.row);
        }
        _ => {}
    }
    // `ACCESS_DENIED` means a view that the account may not see in full. Statements that administer the server get the
    // same error; `http::sql` handles those.
    if matches!(errno, errno::ACCESS_DENIED | errno::NO_SUCH_USER) {
        return Problem::new(
            code,
            "A view, routine or trigger that this uses has a definer that is no MariaDB account any more.",
        )
        .with_details(errno, refusal.state)
        .with_hint("Create it anew, or with SQL SECURITY INVOKER.");
    }
    if errno == errno::VIEW_INVALID {
        let name = refusal.message.split('\'').nth(1).unwrap_or_default();
        return broken_view(&format!("The view {}", shown(name))).with_details(errno, refusal.state);
    }
    let hint = hint(errno, &refusal.message);
    let (field, constraint) = names::names(errno, &refusal.message);
    let (field, constraint) = (field.map(str::to_owned), constraint.map(str::to_owned));
    let message = match code {
        // These messages quote the caller's own values and SQL, but no account or file name, so they are shown
        // unchanged.
        ErrorCode::DuplicateKey | ErrorCode::ForeignKeyViolation | ErrorCode::InvalidValue => ended(refusal.message),
        _ if errno == errno::PARSE_ERROR => ended(refusal.message),
        _ => sentence(&refusal.message),
    };
    let mut problem = Problem::new(code, message).with_details(errno, refusal.state).with_hint_if(hint);
    if let Some(field) = field {
        problem = problem.with_field(&field);
    }
    if let Some(constraint) = constraint {
        problem = problem.with_constraint(&constraint);
    }
    in_row(problem, refusal.row)
}

fn in_row(problem: Problem, row: Option<usize>) -> Problem {
    match row {
        Some(row) => problem.with_row(row),
        None => problem,
    }
}

fn hint(errno: u16, message: &str) -> Option<&'static str> {
    Some(match errno {
        errno::CHECKREAD => "Try again: another transaction changed a row after this one had begun to read.",
        errno::DBACCESS_DENIED => "A key reaches its project's databases only; one that it makes is named {project}_….",
        errno::BAD_NULL => "Give the field a value, or leave it out if it has a default.",
        errno::DUP_ENTRY => "A record with this value is there: change that one, or use another value.",
        // From MariaDB's parser of boolean full-text searches.
        errno::PARSE_ERROR if message.starts_with("syntax error, unexpected") => {
            "In a boolean search each sign stands before a word, and quotes and brackets come in pairs."
        }
        errno::PARSE_ERROR => "A request runs one statement; values go into params, each as a ? in the query.",
        errno::FT_MATCHING_KEY_NOT_FOUND => "Add a FULLTEXT index over exactly these fields.",
        errno::LOCK_DEADLOCK => "Try again: a deadlock with another transaction rolled the statement back.",
        errno::DATA_TRUNCATED => {
            "The table's _schema says what the field takes: its type, and its values if it has a list of them."
        }
        errno::TRUNCATED_WRONG_VALUE if message.starts_with("Incorrect date") => {
            "Write a date that exists as 2026-11-20 or 2026-11-20 08:36:16, without an offset. A TIMESTAMP begins in 1970 and \
             ends in 2038, or 2106 in MariaDB 11.5 and later."
        }
        errno::NON_UPDATABLE_TABLE | errno::NON_INSERTABLE_TABLE => "Write to the tables that the view reads.",
        errno::NONUPDATEABLE_COLUMN => "The view computes it: leave it out.",
        errno::NO_DEFAULT_FOR_FIELD => "Give the field a value: it must not be left out.",
        errno::ROW_IS_REFERENCED => "Change or delete the records that refer to it first.",
        errno::NO_REFERENCED_ROW => "Insert the record that this one refers to first.",
        errno::NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN => "MariaDB computes it, and nothing was written: leave it out.",
        _ => return None,
    })
}

pub fn no_database(name: &DatabaseName, others: &[String]) -> Problem {
    let near = nearest(name.as_str(), others.iter().map(String::as_str));
    Problem::new(ErrorCode::DatabaseNotFound, format!("There is no database {}.", shown(name.as_str())))
        .with_hint_if(near.map(|near| format!("Did you mean {}?", shown(near))))
}

fn sql_error(message: &'static str) -> Problem {
    Problem::new(ErrorCode::SqlError, message)
}

#[cfg(test)]
mod tests;
