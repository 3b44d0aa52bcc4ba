//! Builds responses: bodies and common headers.

use super::etag::ETag;
use super::records::Failure;
use super::stream::{self, StreamLimits};
use crate::database::DbError;
use crate::database::run::Chunks;
use crate::metrics::StreamGuard;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use shared::conditional;
use shared::envelope;
use shared::error::Problem;
use shared::format::Format;
use shared::operation::RecordOperation;
use shared::operation::read::Selection;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

const USUAL_HEADERS: usize = 10;

pub(super) fn json(envelope: Vec<u8>) -> Response {
    with_type(Body::from(envelope), "application/json")
}

pub(super) fn payload(payload: &[u8]) -> Response {
    json(envelope::success(payload))
}

/// The client's own cache may store the response, but must revalidate it each time.
pub(super) fn tagged(body: impl Into<Bytes>, content_type: &'static str) -> Response {
    let body = body.into();
    let tag = ETag::of(&body);
    let mut response = with_type(Body::from(body), content_type);
    let headers = response.headers_mut();
    headers.extend(tag.into_header().map(|tag| (header::ETAG, tag)));
    depends_on_accept(headers, "private, no-cache");
    response
}

pub(super) fn written(payload: &[u8], operation: &RecordOperation) -> Response {
    let body = envelope::success(payload);
    let options = operation.write_options();
    let is_whole = options.is_some_and(|options| options.returning == Some(Selection::All));
    let tag = (is_whole && payload.starts_with(b"{")).then(|| ETag::of(&body));
    let mut response = json(body);
    let headers = response.headers_mut();
    headers.extend(tag.and_then(ETag::into_header).map(|tag| (header::ETAG, tag)));
    response
}

pub(super) fn preferred(mut response: Response, operation: &RecordOperation) -> Response {
    let preference = operation.write_options().and_then(|options| options.preference);
    if let Some(preference) = preference {
        response.headers_mut().insert(PREFERENCE_APPLIED, HeaderValue::from_static(preference.applied()));
    }
    response
}

pub(super) fn list(mut response: Response) -> Response {
    depends_on_accept(response.headers_mut(), "no-store");
    response
}

fn depends_on_accept(headers: &mut HeaderMap, cache_control: &'static str) {
    let kept = HeaderValue::from_static(cache_control);
    headers.insert(header::CACHE_CONTROL, kept);
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
}

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

/// Keeps a known length above 0 in `Content-Length` (RFC 9110, section 9.3.2).
pub(super) fn head(mut response: Response) -> Response {
    let body = std::mem::take(response.body_mut());
    if let Some(length @ 1..) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// Waits for the first chunk, so that `HEAD` has the same status as `GET`.
pub(super) async fn chunks_head(mut chunks: Chunks, content_type: &'static str) -> Result<Response, DbError> {
    if let Some(first) = chunks.next().await {
        first?;
    }
    Ok(with_type(Body::empty(), content_type))
}

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

/// Waits for the first chunk, so that an error still sets the status. Streams unless all of `chunks` is ready at once.
pub(super) async fn chunks(
    mut chunks: Chunks,
    format: Format,
    begin: impl FnOnce() -> Result<(StreamLimits, StreamGuard), Problem>,
) -> Result<Response, Failure> {
    let first = match chunks.next().await {
        Some(first) => first?,
        None => Bytes::new(),
    };
    // If `first` was the last chunk, the end of the stream is ready at once.
    let ready = match chunks.next().now_or_never() {
        Some(None) => return Ok(with_type(Body::from(first), format.content_type())),
        // No byte of the response was sent yet, so an error can still set the status.
        Some(Some(second)) => Some(second?),
        None => None,
    };
    let ready = [first].into_iter().chain(ready);
    let (limits, guard) = begin()?;
    let body = stream::body(ready, chunks, format.cut_mark(), limits, guard);
    Ok(with_type(body, format.content_type()))
}
