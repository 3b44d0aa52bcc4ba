//! Answers: their bodies and the headers that all of them carry.

use crate::db::DbError;
use crate::db::run::Chunks;
use crate::metrics::StreamGuard;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use shared::envelope;
use shared::error::Problem;

/// 200 with a JSON body that is an envelope already.
pub(super) fn json(envelope: Vec<u8>) -> Response {
    with_type(Body::from(envelope), "application/json")
}

/// 200 with this JSON text as the payload.
pub(super) fn payload(payload: &[u8]) -> Response {
    json(envelope::success(payload))
}

/// 200 in Prometheus' text format.
pub(super) fn text(text: String) -> Response {
    with_type(
        Body::from(text),
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
}

fn with_type(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A problem's envelope, status and headers.
pub(super) fn problem(problem: &Problem, request_id: &str) -> Response {
    let mut response = json(problem.to_json(request_id));
    *response.status_mut() =
        StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in problem.headers() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// An answer that arrives in chunks. Its first chunk decides whether it is a success; one that is whole
/// at once goes out in one piece, with its length.
pub(super) async fn chunks(
    mut chunks: Chunks,
    guard: impl FnOnce() -> StreamGuard,
) -> Result<Response, DbError> {
    let first = match chunks.next().await {
        Some(first) => first?,
        None => Bytes::new(),
    };
    // The last chunk is followed by the end at once; before any other one MariaDB is asked again.
    let ready = match chunks.next().now_or_never() {
        Some(None) => return Ok(with_type(Body::from(first), "application/json")),
        // Nothing was sent yet: the caller is told what happened.
        Some(Some(second)) => Some(second?),
        None => None,
    };
    let guard = guard();
    let rest = async_stream::stream! {
        let _streaming = guard;
        yield Ok(first);
        // The head and the first chunk go out before anything can cut the answer short.
        tokio::task::yield_now().await;
        if let Some(second) = ready {
            yield Ok(second);
        }
        while let Some(chunk) = chunks.next().await {
            // An error here ends the connection without the closing chunk: the answer never reads as
            // whole.
            yield chunk.inspect_err(|error| tracing::warn!(%error, "an answer ended early"));
        }
    };
    Ok(with_type(Body::from_stream(rest), "application/json"))
}
