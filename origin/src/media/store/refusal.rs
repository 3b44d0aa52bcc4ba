//! What a bucket's failures mean: the one place where they become the store's.
//!
//! The client keeps the status of an answer to itself, but for its text, which is therefore read; the suite holds that
//! against a real service and against broken ones.

use std::error::Error;

use object_store::client::HttpError;

use super::error::{StoreError, chain};

/// Most characters of a failure that go to the log: services answer with pages of HTML, too.
const TOLD_MAX_CHARS: usize = 1_000;

/// How the client begins to tell an answer that is no success, before the status.
const STATUS: &str = "non-2xx status code: ";

/// How it tells a success with a failure in its body, as S3 answers where it noticed late.
const LATE: &str = "Server returned error response: ";

/// What services say when no room is left, whatever the status: MinIO, Ceph, Garage and their like.
const FULL: &[&str] = &["QuotaExceeded", "StorageFull", "InsufficientStorage", "InsufficientCapacity"];

/// The store's failure that this one is. The cause is a text without the access key's id, which services repeat.
pub(super) fn told(error: &object_store::Error, access_key: &str) -> StoreError {
    let text = chain(error);
    let cause: String = text.replace(access_key, "(the access key)").chars().take(TOLD_MAX_CHARS).collect();
    let is_full = FULL.iter().any(|code| text.contains(code));
    match status(&text) {
        _ if is_full => StoreError::Full(cause.into()),
        Some(507) => StoreError::Full(cause.into()),
        Some(401 | 403) => StoreError::Denied(cause.into()),
        Some(404 | 408 | 429 | 500..) => StoreError::Unavailable(cause.into()),
        Some(_) => StoreError::Other(cause.into()),
        None if text.contains(LATE) || is_of_the_way(error) => StoreError::Unavailable(cause.into()),
        None => StoreError::Other(cause.into()),
    }
}

/// Whether it says that there is no such object, and not that there is no such bucket.
pub(super) fn is_absent(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. }) && !chain(error).contains("NoSuchBucket")
}

/// Whether it says that a range begins behind the object's end.
pub(super) fn is_behind_the_end(error: &object_store::Error) -> bool {
    status(&chain(error)) == Some(416)
}

/// Whether it says that the service does not know what was asked.
pub(super) fn is_not_implemented(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotImplemented { .. }) || status(&chain(error)) == Some(501)
}

fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once(STATUS)?;
    rest.get(..3)?.parse().ok()
}

/// Whether it is the connection that failed.
fn is_of_the_way(error: &object_store::Error) -> bool {
    let mut link: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = link {
        if error.is::<HttpError>() {
            return true;
        }
        link = error.source();
    }
    false
}
