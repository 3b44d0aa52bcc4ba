//! Answers: their bodies and the headers that all of them carry.

use crate::db::DbError;
use crate::db::run::Chunks;
use crate::metrics::StreamGuard;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use shared::cors::{self, CorsOrigins};
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
        Some(Some(second)) => Some(second),
        None => None,
    };
    let guard = guard();
    let rest = stream::iter([Ok(first)])
        .chain(stream::iter(ready))
        .chain(chunks)
        .map(move |chunk| {
            let _streaming = &guard;
            // An error here ends the connection without the closing chunk: the answer never reads as whole.
            chunk.inspect_err(|error| tracing::warn!(%error, "an answer ended early"))
        });
    Ok(with_type(Body::from_stream(rest), "application/json"))
}

/// The answer to a CORS preflight, if this is one.
pub(super) fn preflight(origins: &CorsOrigins, request: &Request) -> Option<Response> {
    let text = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let asked = text("access-control-request-method");
    if !cors::is_preflight(request.method().as_str(), text("origin"), asked) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in origins.preflight_headers() {
        response.headers_mut().insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    Some(response)
}

/// Adds the headers that let web pages read the answer.
pub(super) fn with_headers(
    mut response: Response,
    origins: &CorsOrigins,
    origin: Option<&HeaderValue>,
) -> Response {
    let origin = origin.and_then(|value| value.to_str().ok());
    for (name, value) in origins.answer_headers(origin) {
        if let Ok(value) = HeaderValue::from_str(value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}
