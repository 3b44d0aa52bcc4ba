//! Access to private media: by a key of the project or by a signed URL.

use super::query::Query;
use crate::app::App;
use crate::clock::now;
use crate::http::request_log::RequestRecord;
use shared::error::Problem;
use shared::key::Principal;
use shared::media::FilePath;
use std::sync::Arc;

/// What gave access to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The file is public.
    Public,
    /// A key of the file's project.
    Key,
    /// A signed URL that is valid for so many seconds more.
    Signature { seconds_left: u64 },
}

pub(super) struct Credentials<'a> {
    pub(super) query: &'a Query,
    pub(super) authorization: Option<&'a str>,
}

/// Returns what gives access to private media at this path, whether or not a file exists there, and the key's
/// principal. `None` without a valid signature or a valid key of the path's project.
///
/// # Errors
/// The key could not be looked up, or is over its rate limit.
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
