//! Errors of administration, most of them converted from the driver's errors. Messages quote MariaDB's message, but not
//! the statement that failed.

use crate::database::errno::{self, LOGIN_REFUSED, NONEXISTING_GRANT, OPTION_PREVENTS_STATEMENT};
use crate::database::typed_rows::UnexpectedType;
use shared::error::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("MariaDB can't be reached: {0}")]
    Unreachable(String),
    #[error("MariaDB refuses the admin account \"{user}\": {message}")]
    Login { user: String, message: String },
    #[error("MariaDB did not answer in time")]
    TimedOut,
    /// Another origin or command held the installation's lock for longer than [`Admin::lock`](super::Admin::lock)
    /// waits.
    #[error("another origin or command is changing the system and did not finish in time")]
    Busy,
    /// A deadlock, a lock timeout, or a concurrent change of a row. The statement was rolled back.
    #[error("another transaction changed the same rows: {0}")]
    Contended(String),
    #[error("the admin account \"{user}\" may not do this: {message}")]
    Denied { user: String, message: String },
    #[error("MariaDB refused: {message} ({errno})")]
    Refused { errno: u16, message: String },
    #[error("the system schema has version {found}, this program knows {known}: it was written by a newer selkie")]
    SchemaTooNew { found: u32, known: u32 },
    /// The system schema holds a value that this program never writes, or MariaDB returned no value or one of an
    /// unexpected type. The text names the value.
    #[error("the system schema holds a {0} that can't be read")]
    Corrupt(&'static str),
}

impl AdminError {
    pub(in crate::database) fn of(error: mysql_async::Error, user: &str) -> Self {
        use mysql_async::{Error, ServerError};
        match error {
            Error::Server(ServerError { code: errno, message, state }) => match errno::code(errno, &state) {
                _ if LOGIN_REFUSED.contains(&errno) => Self::Login { user: user.to_owned(), message },
                _ if matches!(errno, NONEXISTING_GRANT | OPTION_PREVENTS_STATEMENT) => Self::Refused { errno, message },
                Some(ErrorCode::PermissionDenied) => Self::Denied { user: user.to_owned(), message },
                Some(ErrorCode::DatabaseUnavailable | ErrorCode::Overloaded) => Self::Unreachable(message),
                Some(ErrorCode::Deadlock | ErrorCode::LockTimeout) => Self::Contended(message),
                Some(ErrorCode::QueryTimeout) => Self::TimedOut,
                _ => Self::Refused { errno, message },
            },
            Error::Other(other) if other.is::<UnexpectedType>() => Self::Corrupt("value of an unexpected type"),
            other => Self::Unreachable(other.to_string()),
        }
    }

    pub fn errno(&self) -> Option<u16> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Returns whether the error is [`Self::Contended`]: an immediate retry may succeed.
    pub fn is_contended(&self) -> bool {
        matches!(self, Self::Contended(_))
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable(_) | Self::TimedOut => {
                Some("check that MariaDB runs and that SELKIE_DATABASE_URL is right")
            }
            Self::Login { .. } => Some(
                "check user and password in SELKIE_DATABASE_URL; an account without a name at this host \
                 (''@'localhost') shadows those of '%': drop it",
            ),
            Self::Denied { .. } => Some(
                "give it all privileges WITH GRANT OPTION, or all on `selkie`.* and ready-made accounts \
                 under [accounts.<project>] in selkie.toml",
            ),
            Self::SchemaTooNew { .. } => Some("run the newest selkie on every machine"),
            Self::Contended(_) => Some("try again"),
            Self::Busy => Some("try again; if it stays so, look for an origin that hangs"),
            _ => None,
        }
    }
}
