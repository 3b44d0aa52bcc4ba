//! Answers: their bodies and the headers that all of them carry.

use super::etag::ETag;
use super::records::Failure;
use super::stream::{self, Terms};
use crate::database::DbError;
use crate::database::run::Chunks;
use crate::metrics::StreamGuard;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use shared::conditional;
use shared::envelope;
use shared::error::Problem;
use shared::format::Format;

/// A problem on its way from a handler to where its envelope is written, which needs the request's id.
pub(super) struct Failed(Problem);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self.0);
        response
    }
}

/// Headers of an answer to a read, those that every answer gets among them: more make the map grow.
const USUAL_HEADERS: usize = 10;

/// 200 with a JSON body that is an envelope already.
pub(super) fn json(envelope: Vec<u8>) -> Response {
    with_type(Body::from(envelope), "application/json")
}

/// 200 with this JSON text as the payload.
pub(super) fn payload(payload: &[u8]) -> Response {
    json(envelope::success(payload))
}

/// 200 with one record. Caches may store it, but must revalidate it each time.
pub(super) fn record(body: Vec<u8>, format: Format) -> Response {
    let tag = ETag::of(&body);
    let mut response = with_type(Body::from(body), format.content_type());
    let headers = response.headers_mut();
    headers.extend(tag.into_header().map(|tag| (header::ETAG, tag)));
    depends_on_accept(headers, "private, no-cache");
    response
}

/// Marks the answer as a list of records, which has no validator and so is not cached.
pub(super) fn list(mut response: Response) -> Response {
    depends_on_accept(response.headers_mut(), "no-store");
    response
}

fn depends_on_accept(headers: &mut HeaderMap, cache_control: &'static str) {
    let kept = HeaderValue::from_static(cache_control);
    headers.insert(header::CACHE_CONTROL, kept);
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
}

/// Returns the answer, or 304 without its body if the client's list has its tag.
pub(super) fn unless_known(mut response: Response, if_none_match: Option<&str>) -> Response {
    let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    if if_none_match.zip(tag).is_some_and(|(list, tag)| conditional::names(list, tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_ENCODING);
    }
    response
}

/// Removes the body, and sets the Content-Length if it is known (RFC 9110, section 9.3.2).
pub(super) fn head(mut response: Response) -> Response {
    let body = std::mem::take(response.body_mut());
    if let Some(length @ 1..) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// Returns the head of an answer that arrives in chunks. The first chunk decides its status; the others are not read.
pub(super) async fn chunks_head(mut chunks: Chunks, content_type: &'static str) -> Result<Response, DbError> {
    if let Some(first) = chunks.next().await {
        first?;
    }
    Ok(with_type(Body::empty(), content_type))
}

/// 200 in Prometheus' text format.
pub(super) fn text(text: String) -> Response {
    with_type(Body::from(text), "application/openmetrics-text; version=1.0.0; charset=utf-8")
}

fn with_type(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    let mut headers = HeaderMap::with_capacity(USUAL_HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    *response.headers_mut() = headers;
    response
}

/// A problem's envelope, status and headers. Its cause goes to the log, under the request id: every failure of a
/// request passes here.
pub(super) fn problem(problem: &Problem, request_id: &str) -> Response {
    if let Some(cause) = problem.cause() {
        let code = problem.code().as_str();
        tracing::error!(id = request_id, code, cause, "the request failed");
    }
    let mut response = json(problem.to_json(request_id));
    *response.status_mut() = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in problem.headers() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// Returns an answer that arrives in chunks. The first chunk decides whether it is a success. One that is ready as a whole
/// is sent with its length; any other is streamed, within the limits that `begin` returns.
pub(super) async fn chunks(
    mut chunks: Chunks,
    content_type: &'static str,
    begin: impl FnOnce() -> Result<(Terms, StreamGuard), Problem>,
) -> Result<Response, Failure> {
    let first = match chunks.next().await {
        Some(first) => first?,
        None => Bytes::new(),
    };
    // The last chunk is followed by the end at once; before any other one MariaDB is asked again.
    let ready = match chunks.next().now_or_never() {
        Some(None) => return Ok(with_type(Body::from(first), content_type)),
        // Nothing was sent yet: the caller is told what happened.
        Some(Some(second)) => Some(second?),
        None => None,
    };
    let ready = [first].into_iter().chain(ready);
    let (terms, guard) = begin()?;
    let body = stream::body(ready, chunks, terms, guard);
    Ok(with_type(body, content_type))
}
