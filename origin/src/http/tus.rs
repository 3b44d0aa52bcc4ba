//! Uploads that can be resumed, by tus 1.0.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::operation::tus;

/// Adds the headers that the protocol wants on every answer.
pub(super) fn mark(path: &str, response: &mut Response) {
    let status = response.status().as_u16();
    for (name, value) in tus::answer_headers(path, status) {
        let name = HeaderName::from_static(name);
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
}
