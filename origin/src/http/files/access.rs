//! Who may read a private file: who has a key of its project, and who has a URL that such a one had signed.

use super::query::Query;
use crate::app::App;
use crate::clock::now;
use crate::http::request_log::RequestRecord;
use shared::error::Problem;
use shared::key::Principal;
use shared::media::FilePath;
use std::sync::Arc;

/// Why a file is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It is everybody's.
    Public,
    /// The caller has a key.
    Key,
    /// The URL is signed, for so many seconds more.
    Signature {
        /// At least one.
        seconds_left: u64,
    },
}

/// What speaks for a caller.
pub(super) struct Credentials<'a> {
    pub(super) query: &'a Query,
    pub(super) authorization: Option<&'a str>,
}

/// What gives the caller access to what is private at that path, whether or not there is something; and by whose key.
///
/// # Errors
/// The key could not be looked up, or calls too often. A key that is no good, or another project's, is no access.
pub(super) async fn to_private(
    app: &App,
    record: &RequestRecord,
    path: &FilePath,
    credentials: &Credentials<'_>,
) -> Result<Option<(Access, Option<Arc<Principal>>)>, Problem> {
    if let Some((expires_at, signature)) = &credentials.query.signature {
        let now = now();
        if app.signer.verify(path, *expires_at, signature, now) {
            let seconds_left = expires_at.saturating_sub(now);
            return Ok(Some((Access::Signature { seconds_left }, None)));
        }
    }
    if credentials.authorization.is_none() {
        return Ok(None);
    }
    let verified = app.keys.authenticate(credentials.authorization).await;
    if let Ok(principal) = &verified {
        record.count(principal)?;
    }
    match verified {
        Ok(principal) if *principal.project() == path.project => Ok(Some((Access::Key, Some(principal)))),
        Ok(_) => Ok(None),
        Err(problem) if problem.status() == 401 => Ok(None),
        Err(problem) => Err(problem),
    }
}
