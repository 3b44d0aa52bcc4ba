//! The headers that keep browsers from making more of an answer than it is, made ready once.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::security::HEADERS;
use std::sync::LazyLock;

static READY: LazyLock<[(HeaderName, HeaderValue); HEADERS.len()]> =
    LazyLock::new(|| HEADERS.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));

/// Adds them to an answer. That of a file has its own, and they must not change what its caller keeps (304).
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
