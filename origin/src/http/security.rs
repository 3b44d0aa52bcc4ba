//! Adds the security headers defined in `shared` to responses.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::security::HEADERS;
use std::sync::LazyLock;

static READY: LazyLock<[(HeaderName, HeaderValue); HEADERS.len()]> =
    LazyLock::new(|| HEADERS.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));

/// Media and pages have security headers of their own, which a 304 must not overwrite in the client's cache.
pub(super) fn add_headers(response: &mut Response, has_own: bool) {
    let status = response.status().as_u16();
    if has_own && status < 400 {
        return;
    }
    let headers = response.headers_mut();
    for (name, value) in &*READY {
        headers.append(name, value.clone());
    }
}
