//! Headers of media responses: content type and disposition, browser restrictions, caching.

use super::super::respond::ETag;
use super::access::Access;
use super::disposition::{Disposition, essence};
use super::query::{Query, Saving};
use crate::database::media::StoredObject;
use crate::media::url;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use httpdate::HttpDate;
use shared::conditional::Validators;
use shared::media::{FilePath, Rendition};
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

/// The policy for media opened as a page: no scripts, no forms, and no access to the website's data.
const SHOWN_ONLY: &str = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

/// PDFs have no `sandbox`, because browsers don't start their PDF viewers in one; the viewers isolate a PDF's scripts.
const SHOWN_BY_VIEWER: &str = "default-src 'none'; img-src 'self'; object-src 'self'; style-src 'unsafe-inline'";

pub(super) struct Served<'a> {
    pub(super) path: &'a FilePath,
    pub(super) query: &'a Query,
    pub(super) object: &'a StoredObject,
    pub(super) access: Access,
    pub(super) tag: ETag,
    pub(super) modified: HttpDate,
}

impl Served<'_> {
    pub(super) fn validators(&self) -> Validators<'_> {
        Validators { tag: self.tag.as_str(), modified: self.modified }
    }

    pub(super) fn whole(&self, body: Body) -> Response {
        self.with_bytes(StatusCode::OK, self.object.size, body)
    }

    pub(super) fn part(&self, part: &Range<u64>, body: Body) -> Response {
        let mut response = self.with_bytes(StatusCode::PARTIAL_CONTENT, part.end - part.start, body);
        let last = part.end.saturating_sub(1);
        let range = format!("bytes {}-{last}/{}", part.start, self.object.size);
        set_header(response.headers_mut(), header::CONTENT_RANGE, &range);
        response
    }

    pub(super) fn not_modified(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.validate(response.headers_mut());
        response
    }

    fn with_bytes(&self, status: StatusCode, length: u64, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        let mime = HeaderValue::from_str(&self.object.mime);
        headers.insert(header::CONTENT_TYPE, mime.unwrap_or(HeaderValue::from_static("application/octet-stream")));
        set_header(headers, header::CONTENT_DISPOSITION, &self.disposition());
        let policy = match essence(&self.object.mime).as_str() {
            "application/pdf" => SHOWN_BY_VIEWER,
            _ => SHOWN_ONLY,
        };
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, policy),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::ACCEPT_RANGES, "bytes"),
            // Any website may embed a file, including pages with cross-origin isolation.
            (CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Access::Signature { .. } = self.access {
            // Links in a PDF must not leak the signed URL in `Referer`.
            let policy = HeaderValue::from_static("no-referrer");
            headers.insert(header::REFERRER_POLICY, policy);
        }
        self.validate(headers);
        response
    }

    fn validate(&self, headers: &mut HeaderMap) {
        headers.extend(self.tag.clone().into_header().map(|tag| (header::ETAG, tag)));
        set_header(headers, header::LAST_MODIFIED, &self.modified.to_string());
        set_header(headers, header::CACHE_CONTROL, &self.cache_control());
        if self.access == Access::Key {
            headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
        }
    }

    /// Returns `Cache-Control`. If the URL has the current version (`v`), a public file is cacheable for a year, and a
    /// file with a signed URL until the signature expires. All other responses must be revalidated.
    fn cache_control(&self) -> String {
        let current = url::version(&self.object.sha256);
        let is_versioned = self.query.version.as_deref() == Some(current.as_str());
        match (self.access, is_versioned) {
            (Access::Public, true) => "public, max-age=31536000, immutable".to_owned(),
            (Access::Public, false) => "public, no-cache".to_owned(),
            (Access::Signature { seconds_left }, true) => {
                format!("private, max-age={seconds_left}")
            }
            (Access::Signature { .. }, false) | (Access::Key, _) => "private, no-cache".to_owned(),
        }
    }

    fn disposition(&self) -> String {
        let name = match self.query.rendition {
            Rendition::Original => self.path.name.as_str().to_owned(),
            Rendition::Thumbnail => self.thumbnail_name(),
        };
        match &self.query.saving {
            Saving::AsItIs => Disposition::of(&self.object.mime).header(&name),
            Saving::Always => Disposition::Attachment.header(&name),
            Saving::Named(name) => Disposition::Attachment.header(name.as_str()),
        }
    }

    fn thumbnail_name(&self) -> String {
        let name = self.path.name.as_str();
        let stem = match self.path.name.extension() {
            Some(_) => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
            None => name,
        };
        let extension = match essence(&self.object.mime).as_str() {
            "image/webp" => "webp",
            _ => "jpg",
        };
        format!("{stem}-thumbnail.{extension}")
    }
}

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Converts `seconds` since 1970 to a date, at most the last second of the year 9999.
pub(super) fn date(seconds: u64) -> HttpDate {
    const LAST: u64 = 253_402_300_799;
    HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)))
}

fn set_header(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_date() {
        assert_eq!(date(784_111_777).to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(date(u64::MAX).to_string().ends_with("9999 23:59:59 GMT"));
    }
}
