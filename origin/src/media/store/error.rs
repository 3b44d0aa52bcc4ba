//! Errors of the store. Messages name no path, bucket or host; the cause, which may name them, is only for operators.

use std::error::Error;
use std::io;

use shared::error::{ErrorCode, Problem};

pub type Cause = Box<dyn Error + Send + Sync + 'static>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no such object in the store")]
    NotFound,
    /// The storage is full. Includes EFBIG: the operating system refuses to let the file grow further.
    #[error("the store is full")]
    Full(#[source] Cause),
    /// The store may work again later: a deleted directory, or an error of the service such as status 408, 429 or 503.
    #[error("the store is not available")]
    Unavailable(#[source] Cause),
    #[error("the store denies access")]
    Denied(#[source] Cause),
    #[error("the setting {0} is missing, without which the bucket can't be reached")]
    NotSet(&'static str),
    #[error("the store failed")]
    Other(#[source] Cause),
}

impl StoreError {
    pub(super) fn other(what: &'static str) -> Self {
        Self::Other(what.into())
    }

    pub(super) fn of_object(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => error.into(),
        }
    }

    /// Returns the error with its causes, for operators only, since the causes may name paths and hosts.
    pub fn in_full(&self) -> String {
        chain(self)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Problem::new(ErrorCode::MediaNotFound, "There is no such file."),
            StoreError::Full(cause) => Problem::new(ErrorCode::StorageFull, "There is no room left to store files.")
                .with_hint("Delete files that are no longer needed, or ask the operator for room.")
                .with_cause(chain(&*cause)),
            StoreError::Unavailable(cause) => {
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be reached at the moment.")
                    .with_cause(chain(&*cause))
            }
            StoreError::Denied(cause) => Problem::new(
                ErrorCode::StorageUnavailable,
                "The storage of files can't be used at the moment.",
            )
            .with_cause(format!(
                "the media store denies access, look at the access key's rights or at the directory's owner: {}",
                chain(&*cause)
            )),
            StoreError::NotSet(setting) => {
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be used at the moment.")
                    .with_cause(format!("the media store needs the setting {setting}"))
            }
            StoreError::Other(cause) => Problem::internal("The storage of files failed.", chain(&*cause)),
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
            // Directories are created at the start: this one was deleted, or its disk was unmounted.
            io::ErrorKind::NotFound => Self::Unavailable(Box::new(error)),
            _ => Self::Other(Box::new(error)),
        }
    }
}

impl From<tokio::task::JoinError> for StoreError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Other(Box::new(error))
    }
}

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
