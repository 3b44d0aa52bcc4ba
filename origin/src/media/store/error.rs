//! How the store fails: one enum for files and for buckets, and the one place where it becomes a problem.
//!
//! Messages name no path, no bucket and no host: the cause, which may, goes to the log.

use std::error::Error;
use std::io;

use shared::error::{ErrorCode, Problem};

/// What lies behind a failure. For the log only.
pub type Cause = Box<dyn Error + Send + Sync + 'static>;

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such object, or no such staged file.
    #[error("there is no such object in the store")]
    NotFound,
    /// No room is left: the disk or the quota is full, or a file may not grow further.
    #[error("the store is full")]
    Full(#[source] Cause),
    /// The store can't be reached, or does not answer in time.
    #[error("the store is not available")]
    Unavailable(#[source] Cause),
    /// The store refuses the rights that Selkie needs: wrong or withdrawn access keys, or permissions of a directory.
    #[error("the store denies access")]
    Denied(#[source] Cause),
    /// A setting that is needed to reach the store is missing.
    #[error("the setting {0} is missing, without which the bucket can't be reached")]
    NotSet(&'static str),
    /// Anything else; not for the caller to mend.
    #[error("the store failed")]
    Other(#[source] Cause),
}

impl StoreError {
    /// A failure that a sentence of ours tells.
    pub(super) fn other(what: &'static str) -> Self {
        Self::Other(what.into())
    }

    /// The failure of reaching an object's file, where an absent one is no surprise.
    pub(super) fn of_object(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => error.into(),
        }
    }

    /// Itself and its cause, which may name paths and hosts: for operators only.
    #[must_use]
    pub fn in_full(&self) -> String {
        chain(self)
    }

    /// The problem that the caller is shown, with its cause for the log.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        match self {
            Self::NotFound => Problem::new(ErrorCode::MediaNotFound, "There is no such file."),
            Self::Full(cause) => Problem::new(ErrorCode::StorageFull, "There is no room left to store files.")
                .with_hint("Delete files that are no longer needed, or ask the operator for room.")
                .with_cause(chain(&*cause)),
            Self::Unavailable(cause) => {
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be reached at the moment.")
                    .with_cause(chain(&*cause))
            }
            Self::Denied(cause) => Problem::new(
                ErrorCode::StorageUnavailable,
                "The storage of files can't be used at the moment.",
            )
            .with_cause(format!(
                "the media store denies access, look at the access key's rights or at the directory's owner: {}",
                chain(&*cause)
            )),
            Self::NotSet(setting) => {
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be used at the moment.")
                    .with_cause(format!("the media store needs the setting {setting}"))
            }
            Self::Other(cause) => Problem::internal("The storage of files failed.", chain(&*cause)),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full(Box::new(error))
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied(Box::new(error)),
            // Our own directories are made at the start: the disk was taken away.
            io::ErrorKind::NotFound => Self::Unavailable(Box::new(error)),
            _ => Self::Other(Box::new(error)),
        }
    }
}

/// A thread of ours that ended early: the runtime is going down, or there is a fault.
impl From<tokio::task::JoinError> for StoreError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Other(Box::new(error))
    }
}

/// An error and what is behind it, in one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut link = error.source();
    while let Some(behind) = link {
        line.push_str(": ");
        line.push_str(&behind.to_string());
        link = behind.source();
    }
    line
}
