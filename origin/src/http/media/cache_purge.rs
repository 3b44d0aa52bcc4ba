//! Lists the cache tags that the edge must purge after a write, in a response header that only the edge requests.

use crate::database::media::MediaRow;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use shared::ident::ProjectName;
use shared::media::{ACCEPTS_PURGE_HEADER, FilePathHash, PURGE_HEADER, purge_project};

/// Adds the header, if the request asks for it: the tags of `files` and, if a folder became private, the tag of the
/// whole project `private_in`.
pub(in crate::http) fn announce(
    response: &mut Response,
    request: &HeaderMap,
    files: &[MediaRow],
    private_in: Option<&ProjectName>,
) {
    if !request.contains_key(ACCEPTS_PURGE_HEADER) {
        return;
    }
    let paths: Vec<_> = files.iter().map(MediaRow::path).collect();
    let names = FilePathHash::list(paths.iter());
    let entries: Vec<_> =
        [names].into_iter().chain(private_in.map(purge_project)).filter(|entry| !entry.is_empty()).collect();
    if entries.is_empty() {
        return;
    }
    if let Ok(entries) = HeaderValue::try_from(entries.join(",")) {
        let name = HeaderName::from_static(PURGE_HEADER);
        response.headers_mut().insert(name, entries);
    }
}

pub(in crate::http) fn joined(headers: &[HeaderValue]) -> Option<(HeaderName, HeaderValue)> {
    let values: Vec<_> = headers.iter().map(HeaderValue::as_bytes).collect();
    let joined = HeaderValue::from_bytes(&values.join(&b","[..])).ok();
    joined.filter(|_| !headers.is_empty()).map(|value| (HeaderName::from_static(PURGE_HEADER), value))
}
