//! Tells errors of a database host from errors of a statement.

use super::{SIGNALLED, code};
use shared::error::ErrorCode;

/// The host of a connection was left (see `hosts`), or no host can be used.
#[derive(Debug, thiserror::Error)]
#[error("the database host is lost")]
pub(in crate::database) struct HostLost;

/// Returns true for every I/O error and every error of the driver itself.
pub(in crate::database) fn means_lost(error: &mysql_async::Error) -> bool {
    match error {
        mysql_async::Error::Server(error) => is_refusal_of_host(error.code, &error.message, &error.state),
        mysql_async::Error::Io(_) | mysql_async::Error::Driver(_) => true,
        mysql_async::Error::Other(error) => error.is::<HostLost>(),
        mysql_async::Error::Url(_) => false,
    }
}

/// Such errors mean, for example, that the host shuts down, left its cluster or is read-only.
pub(super) fn is_refusal_of_host(errno: u16, message: &str, state: &str) -> bool {
    /// A Galera node answers with this number when replication of the write failed.
    const UNKNOWN: u16 = 1105;
    /// The number also has causes other than `--read-only`.
    const PREVENTED: u16 = 1290;
    if state == SIGNALLED {
        return false;
    }
    match errno {
        UNKNOWN => message.starts_with("WSREP"),
        PREVENTED => message.contains("--read-only"),
        _ => code(errno, state) == Some(ErrorCode::DatabaseUnavailable),
    }
}
