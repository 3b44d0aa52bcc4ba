//! Limits the memory of responses that are held as a whole: a long response counts for its caller until it is sent, and
//! is dropped if the client does not read it in time. Must not know the content of responses.

use super::request_context::RequestContext;
use super::stream::{self, StreamLimits};
use crate::metrics::StreamGuard;
use crate::project_quota::{QuotaGuard, Refused};
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::body::HttpBody as _;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{Method, Version};
use axum::response::Response;
use futures_util::stream::empty;
use http_body_util::BodyExt as _;
use shared::error::Problem;
use shared::limits::{UNCOUNTED_ANSWER_MAX_BYTES, UNCOUNTED_HTTP2_ANSWER_MAX_BYTES};
use std::convert::Infallible;

/// Marks a response whose memory was counted while it was made, so that it is not refused.
#[derive(Clone, Copy)]
pub(super) struct Admitted;

/// Refuses a request if the long responses of its caller or project have reached their limit. For writes, whose
/// response can't be refused after the commit.
pub(super) fn check_held_bytes(app: &ServiceState, caller: &Caller) -> Result<(), Problem> {
    app.answers.check_as(caller.project(), caller.key_id()).map_err(refused)
}

pub(super) fn take(app: &ServiceState, caller: &Caller, bytes: u64) -> Result<QuotaGuard, Problem> {
    app.answers.try_take_as(caller.project(), caller.key_id(), bytes).map_err(refused)
}

/// Counts the memory of a long response until it is sent. A stream has limits of its own and is returned unchanged.
pub(super) async fn count(
    context: &RequestContext,
    request: &Parts,
    mut response: Response,
) -> Result<Response, Problem> {
    let length = response.body().size_hint().exact().unwrap_or_default();
    if length <= uncounted_max_bytes(request) || request.method == Method::HEAD {
        return Ok(response);
    }
    let (app, caller) = (context.app(), context.caller());
    // A record longer than its caller's share takes the whole share.
    let bytes = length.min(app.answers.share());
    let guard = match request.method {
        Method::GET if response.extensions().get::<Admitted>().is_none() => take(app, caller, bytes)?,
        _ => app.answers.take_beyond(caller.project(), caller.key_id(), bytes),
    };
    let (limits, stream_guard) = context.stream_file();
    Box::pin(send_in_pieces(&mut response, limits.within(app.streams.timeout(), guard), stream_guard)).await?;
    Ok(response)
}

pub(super) fn uncounted_max_bytes(request: &Parts) -> u64 {
    if request.version == Version::HTTP_2 { UNCOUNTED_HTTP2_ANSWER_MAX_BYTES } else { UNCOUNTED_ANSWER_MAX_BYTES }
}

/// Sends the body in pieces, within `limits`. The pieces of a long body are copies, so the whole body can be freed.
pub(super) async fn send_in_pieces(
    response: &mut Response,
    limits: StreamLimits,
    guard: StreamGuard,
) -> Result<(), Problem> {
    let whole = std::mem::take(response.body_mut()).collect().await;
    let whole = whole.map_err(|error| Problem::internal("The answer broke off.", error.to_string()))?.to_bytes();
    response.headers_mut().insert(CONTENT_LENGTH, whole.len().into());
    *response.body_mut() = stream::body([whole], empty::<Result<_, Infallible>>(), "", limits, guard);
    Ok(())
}

fn refused(refused: Refused) -> Problem {
    refused.into_problem("bytes of long answers")
}
