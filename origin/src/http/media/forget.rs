//! Tells an edge which of the files that it keeps are others now, or nobody's. Who does not ask is told nothing.

use crate::db::media::MediaRow;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use shared::media::{FORGET_HEADER, FORGETS_HEADER, KeptName};

/// Names files that were replaced or deleted, if the request's headers ask for it.
pub(in crate::http) fn tell(response: &mut Response, request: &HeaderMap, files: &[MediaRow]) {
    if !request.contains_key(FORGETS_HEADER) {
        return;
    }
    let paths: Vec<_> = files.iter().map(MediaRow::path).collect();
    if let Ok(names) = HeaderValue::try_from(KeptName::list(paths.iter())) {
        let name = HeaderName::from_static(FORGET_HEADER);
        response.headers_mut().insert(name, names);
    }
}
