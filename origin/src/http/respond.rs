//! Builds responses: bodies, entity tags (RFC 9110, section 8.8.3) and common headers.

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
use shared::security::HEADERS;
use std::sync::LazyLock;
use twox_hash::XxHash3_128;
use uuid::Uuid;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

const USUAL_HEADERS: usize = 10;

static SECURITY_HEADERS: LazyLock<[(HeaderName, HeaderValue); HEADERS.len()]> =
    LazyLock::new(|| HEADERS.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));

/// A strong entity tag: equal bodies have equal tags at every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

impl ETag {
    pub(super) fn of(body: &[u8]) -> Self {
        // `Uuid` writes the 32 hex digits ten times as fast as `format!`.
        let digits = Uuid::from_u128(XxHash3_128::oneshot(body)).simple();
        let mut text = Uuid::encode_buffer();
        Self(["\"", digits.encode_lower(&mut text), "\""].concat())
    }

    pub(super) fn of_sha256(hash: &[u8; 32]) -> Self {
        Self(format!("\"{}\"", crate::media::url::version(hash)))
    }

    pub(super) fn into_header(self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.0).ok()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn json(envelope: Vec<u8>) -> Response {
    with_type(Body::from(envelope), "application/json")
}

pub(super) fn payload(payload: &[u8]) -> Response {
    json(envelope::success(payload))
}

/// Returns a response with an entity tag. The client's own cache may store it, but must revalidate it each time.
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
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.headers_mut().remove(header::CONTENT_ENCODING);
    }
    response
}

/// Removes the body, and puts a known length above 0 into `Content-Length` (RFC 9110, section 9.3.2).
pub(super) fn head(mut response: Response) -> Response {
    let body = std::mem::take(response.body_mut());
    if let Some(length @ 1..) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// Returns the response to `HEAD`. Waits for the first chunk, so that the status is that of `GET`.
pub(super) async fn chunks_head(mut chunks: Chunks, content_type: &'static str) -> Result<Response, DbError> {
    if let Some(first) = chunks.next().await {
        first?;
    }
    Ok(with_type(Body::empty(), content_type))
}

pub(super) fn text(text: String) -> Response {
    with_type(Body::from(text), "application/openmetrics-text; version=1.0.0; charset=utf-8")
}

pub(super) fn with_type(body: Body, content_type: &'static str) -> Response {
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

/// Returns a stream, or a whole body if all `chunks` are ready at once. An error of the first chunk sets the status.
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

/// Adds the security headers, unless the response has its own, which a 304 must not overwrite in the client's cache.
pub(super) fn add_security_headers(response: &mut Response, has_own: bool) {
    let status = response.status().as_u16();
    if has_own && status < 400 {
        return;
    }
    let headers = response.headers_mut();
    for (name, value) in &*SECURITY_HEADERS {
        headers.append(name, value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_the_same_bytes_is_the_same_everywhere() {
        // From the reference implementation of xxh3_128.
        assert_eq!(ETag::of(b"").0, "\"99aa06d3014798d86001c324468d497f\"");
        assert_ne!(ETag::of(b"a"), ETag::of(b"b"));
        assert!(ETag::of(b"a").into_header().is_some());
    }

    #[test]
    fn the_tag_of_a_file_is_its_version() {
        let tag = ETag::of_sha256(&[0xab; 32]);
        assert_eq!(tag.as_str(), format!("\"{}\"", "ab".repeat(16)));
    }
}
