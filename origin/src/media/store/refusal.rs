//! Converts errors of the crate `object_store`, which exposes a response's status only in the error's text.

use std::error::Error;

use object_store::client::HttpError;

use super::error::{StoreError, chain};

/// The maximum length of a cause, since some services answer with whole HTML pages.
const CAUSE_MAX_CHARS: usize = 1_000;

const STATUS: &str = "non-2xx status code: ";

/// The text of an error in the body of a response with status 200, which S3 may send.
const LATE: &str = "Server returned error response: ";

/// Codes with which MinIO, Ceph, Garage and other services report a full storage, with any HTTP status.
const FULL: &[&str] = &["QuotaExceeded", "StorageFull", "InsufficientStorage", "InsufficientCapacity"];

/// Converts an error, without the access key's id, which services may repeat in their messages.
pub(super) fn store_error(error: &object_store::Error, access_key: &str) -> StoreError {
    let text = chain(error);
    let cause: String = text.replace(access_key, "(the access key)").chars().take(CAUSE_MAX_CHARS).collect();
    let is_full = FULL.iter().any(|code| text.contains(code));
    match status(&text) {
        _ if is_full => StoreError::Full(cause.into()),
        Some(507) => StoreError::Full(cause.into()),
        Some(401 | 403) => StoreError::Denied(cause.into()),
        Some(404 | 408 | 429 | 500..) => StoreError::Unavailable(cause.into()),
        Some(_) => StoreError::Other(cause.into()),
        None if text.contains(LATE) || is_connection_error(error) => StoreError::Unavailable(cause.into()),
        None => StoreError::Other(cause.into()),
    }
}

/// Returns whether the object is missing; false for a missing bucket, except in a response to HEAD.
pub(super) fn is_absent(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. }) && !chain(error).contains("NoSuchBucket")
}

pub(super) fn is_beyond_the_end(error: &object_store::Error) -> bool {
    status(&chain(error)) == Some(416)
}

pub(super) fn is_not_implemented(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotImplemented { .. }) || status(&chain(error)) == Some(501)
}

fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once(STATUS)?;
    rest.get(..3)?.parse().ok()
}

fn is_connection_error(error: &object_store::Error) -> bool {
    let mut link: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = link {
        if error.is::<HttpError>() {
            return true;
        }
        link = error.source();
    }
    false
}
