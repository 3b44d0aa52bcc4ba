//! Errors of the media tables, and their conversion to problem responses. The responses contain no SQL and no message
//! of MariaDB.

use crate::database::errno::{self, LOGIN_REFUSED};
use crate::database::typed_rows::UnexpectedType;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::media::{FolderPath, MediaName};
use shared::policy::role_forbids;

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Connecting or logging in failed, the connection broke, its host was left (see `database::hosts`), the driver
    /// failed, or MariaDB can serve no requests at the moment. A transaction that was committing may have been
    /// committed.
    #[error("MariaDB can't be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Waiting for a connection, or running a statement or transaction, took too long. A transaction that was
    /// committing may have been committed.
    #[error("MariaDB did not answer in time")]
    TimedOut,
    /// Another transaction is changing the same rows. The failed transaction was rolled back.
    #[error("another transaction is changing the same rows")]
    Contended,
    #[error("waiting for a lock took too long")]
    LockTimeout,
    #[error("MariaDB refused: {message} ({errno})")]
    Refused { errno: u16, message: String },
    /// The media tables hold a value that this program never writes, or lack one; the text names the column or value.
    #[error("the media tables hold a {0} that can't be read")]
    Corrupt(&'static str),
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The folder already has a file of that name. Nothing was changed.
    #[error("a file of that name is in that folder")]
    Exists { folder: FolderPath, name: MediaName },
    /// The caller's role does not allow replacing or deleting the file. Nothing was changed.
    #[error("the file is not one that the caller may change")]
    Forbidden,
    /// The project was deleted. Nothing was changed.
    #[error("there is no such project")]
    NoProject,
    /// The resumable upload is finished already, or was deleted. Nothing was changed.
    #[error("the upload is finished or has expired")]
    NoUpload,
    /// The new objects were marked for deletion, or deleted, as abandoned, because storing them took too long. Nothing
    /// was changed.
    #[error("the objects were swept before their rows were written")]
    Swept,
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Tells whether a transaction that failed with this error may succeed if it is run again.
pub(super) trait Retry {
    fn is_worth_retrying(&self) -> bool;
}

impl Retry for TableError {
    fn is_worth_retrying(&self) -> bool {
        matches!(self, Self::Contended)
    }
}

impl Retry for WriteError {
    fn is_worth_retrying(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_worth_retrying())
    }
}

impl From<mysql_async::Error> for TableError {
    fn from(error: mysql_async::Error) -> Self {
        match error {
            mysql_async::Error::Server(server) => match errno::code(server.code, &server.state) {
                // A server that is read-only refuses with `OPTION_PREVENTS_STATEMENT`.
                _ if LOGIN_REFUSED.contains(&server.code) || server.code == errno::OPTION_PREVENTS_STATEMENT => {
                    Self::Unavailable(Box::new(server))
                }
                Some(ErrorCode::DatabaseUnavailable | ErrorCode::Overloaded) => Self::Unavailable(Box::new(server)),
                Some(ErrorCode::Deadlock) => Self::Contended,
                Some(ErrorCode::LockTimeout) => Self::LockTimeout,
                Some(ErrorCode::QueryTimeout) => Self::TimedOut,
                _ => Self::Refused { errno: server.code, message: server.message },
            },
            mysql_async::Error::Other(other) if other.is::<UnexpectedType>() => {
                Self::Corrupt("value of an unexpected type")
            }
            other => Self::Unavailable(Box::new(other)),
        }
    }
}

impl From<mysql_async::Error> for WriteError {
    fn from(error: mysql_async::Error) -> Self {
        Self::Table(error.into())
    }
}

impl TableError {
    pub fn errno(&self) -> Option<u16> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

impl From<TableError> for Problem {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable(cause) => {
                Problem::new(ErrorCode::DatabaseUnavailable, "The database can't be reached at the moment.")
                    .with_cause(cause.to_string())
            }
            TableError::TimedOut => {
                Problem::new(ErrorCode::DatabaseUnavailable, "The database did not answer in time.")
                    .with_cause("MariaDB did not answer in time for media")
            }
            TableError::Contended | TableError::LockTimeout => {
                Problem::new(ErrorCode::LockTimeout, "Other requests are changing the same files.")
            }
            TableError::Refused { errno, message } => Problem::internal(
                "The media library failed.",
                format!("MariaDB refused a statement on media with {errno}: {message}"),
            ),
            TableError::Corrupt(what) => Problem::internal(
                "The media library failed.",
                format!("the media tables hold what can't be read: {what}"),
            ),
        }
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Exists { folder, name } => exists(&folder, &name),
            WriteError::Forbidden => role_forbids("replace or delete this file"),
            WriteError::NoProject => {
                Problem::new(ErrorCode::MediaNotFound, "The project of this key is not there any more.")
            }
            WriteError::NoUpload => {
                Problem::new(ErrorCode::MediaNotFound, "The upload is finished already, or has expired.")
            }
            WriteError::Swept => Problem::new(ErrorCode::StorageUnavailable, "Storing the files took too long."),
            WriteError::Table(error) => error.into(),
        }
    }
}

pub(crate) fn exists(folder: &FolderPath, name: &MediaName) -> Problem {
    let place = match folder.as_str() {
        "" => "outside of any folder".to_owned(),
        folder => format!("in the folder {}", shown(folder)),
    };
    Problem::new(ErrorCode::MediaExists, format!("There is a file {} {place} already.", shown(name.as_str())))
        .with_hint("Choose another name, or replace it with \"update\": true.")
}
