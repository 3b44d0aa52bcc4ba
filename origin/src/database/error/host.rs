//! Tells errors of a database host from errors of a statement.

use crate::database::errno::{self, SIGNALLED, code};
use shared::error::ErrorCode;

/// The host of a connection was left (see `hosts`), or no host can be used.
#[derive(Debug, thiserror::Error)]
#[error("the database host is lost")]
pub(in crate::database) struct HostLost;

/// Returns whether the error means that the host is lost, as every I/O error and every error of the driver itself does.
pub(in crate::database) fn means_lost(error: &mysql_async::Error) -> bool {
    match error {
        mysql_async::Error::Server(error) => is_refusal_of_host(error.code, &error.message, &error.state),
        mysql_async::Error::Io(_) | mysql_async::Error::Driver(_) => true,
        mysql_async::Error::Other(error) => error.is::<HostLost>(),
        mysql_async::Error::Url(_) => false,
    }
}

/// Returns whether the error means that the host shuts down, has left its cluster or is read-only, for example.
pub(super) fn is_refusal_of_host(errno: u16, message: &str, state: &str) -> bool {
    if state == SIGNALLED {
        return false;
    }
    match errno {
        // A Galera node failed to replicate the write.
        errno::UNKNOWN_ERROR => message.starts_with("WSREP"),
        errno::OPTION_PREVENTS_STATEMENT => message.contains("--read-only"),
        _ => code(errno, state) == Some(ErrorCode::DatabaseUnavailable),
    }
}
