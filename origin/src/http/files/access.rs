//! Access to private media: by an API key or user token of the project, or by a signed URL.

use super::query::Query;
use crate::clock::now;
use crate::database::media::MediaRow;
use crate::http::request_context::admit_caller;
use crate::http::request_metrics::RequestMetrics;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use shared::error::Problem;
use shared::media::FilePath;
use shared::operation::media::MediaId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Public,
    Key,
    Signature {
        /// The time until the signature expires.
        seconds_left: u64,
    },
}

pub(super) struct Credentials<'a> {
    pub(super) query: &'a Query,
    pub(super) authorization: Option<&'a str>,
}

/// Returns how the request may read a private file. Does the same work without a `file`, to hide which files exist.
pub(super) async fn to_private(
    app: &ServiceState,
    metrics: &RequestMetrics,
    (file, path): (Option<&MediaRow>, &FilePath),
    credentials: &Credentials<'_>,
) -> Result<Option<(Access, Option<Caller>)>, Problem> {
    if let Some((expires_at, signature)) = &credentials.query.signature {
        let id = file.map_or(MediaId::from(0), |file| file.id);
        let now = now();
        if app.signer.verify((id, path), *expires_at, signature, now) {
            let seconds_left = expires_at.saturating_sub(now);
            return Ok(Some((Access::Signature { seconds_left }, None)));
        }
    }
    if credentials.authorization.is_none() {
        return Ok(None);
    }
    let verified = app.keys.authenticate(credentials.authorization).await;
    if let Ok(caller) = &verified {
        admit_caller(metrics, caller)?;
    }
    match verified {
        Ok(caller) => {
            let is_readable = file.is_some_and(|file| caller.readable_files().has(file));
            Ok((*caller.project() == path.project && is_readable).then_some((Access::Key, Some(caller))))
        }
        Err(problem) if problem.status() == 401 => Ok(None),
        Err(problem) => Err(problem),
    }
}
