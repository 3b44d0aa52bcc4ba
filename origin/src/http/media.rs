//! `/api/v1/media`: uploading, listing, one file, signing, deleting. How bytes are served is `files`'.

mod payload;
mod receive;

use super::respond;
use crate::app::App;
use crate::media::intake::Claim;
use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use payload::Shown;
use receive::Terms;
use shared::envelope;
use shared::error::{ErrorCode, Problem};
use shared::key::Principal;
use shared::operation::media::{MediaCall, MediaId, MediaList, SignedFor};
use shared::upload::{Given, Shape};
use std::sync::Arc;

/// Does what is asked of the library. Only an upload looks at the body.
pub(super) async fn run(
    app: &Arc<App>,
    principal: &Principal,
    call: MediaCall,
    parts: &Parts,
    content: &mut Body,
) -> Result<Response, Problem> {
    match call {
        MediaCall::Upload => upload(app, principal, parts, content).await,
        MediaCall::List(list) => self::list(app, principal, parts, &list).await,
        MediaCall::Describe(id) => describe(app, principal, parts, id).await,
        MediaCall::Sign(id, valid) => sign(app, principal, parts, id, valid).await,
        MediaCall::Delete(id) => delete(app, principal, id).await,
    }
}
