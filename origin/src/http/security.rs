//! Adds the security headers of `shared` to responses.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::security::HEADERS;
use std::sync::LazyLock;

static READY: LazyLock<[(HeaderName, HeaderValue); HEADERS.len()]> =
    LazyLock::new(|| HEADERS.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));

/// Adds the security headers, except to a media response (`of_file`) below 400, which has its own: a 304 must not
/// overwrite those in the client's cache.
pub(super) fn mark(response: &mut Response, of_file: bool) {
    let status = response.status().as_u16();
    if of_file && status < 400 {
        return;
    }
    let headers = response.headers_mut();
    for (name, value) in &*READY {
        headers.append(name, value.clone());
    }
}
