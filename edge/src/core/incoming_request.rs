//! The parts of a request's head on which the edge's decisions depend, and the length of its body.

use super::headers::RequestParts;
use shared::operation::route::MCP;
use shared::request::{self, RequestHead};
use shared::request_id::{self, RequestId};
use shared::trace::{TRACEPARENT, TraceSpan};

/// The request headers of resumable uploads (the tus protocol).
pub(super) const TUS_HEADERS: [&str; 8] = [
    "tus-resumable",
    "upload-checksum",
    "upload-concat",
    "upload-defer-length",
    "upload-length",
    "upload-metadata",
    "upload-offset",
    "x-http-method-override",
];

/// The length of a body, known before the body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// The number of bytes; 0 without a body.
    Known(u64),
    /// The body is chunked, or its `Content-Length` is missing or invalid.
    Unknown,
}

impl BodyLength {
    pub fn announced(content_length: Option<&str>) -> Self {
        match content_length.map(str::parse) {
            Some(Ok(bytes)) => Self::Known(bytes),
            _ => Self::Unknown,
        }
    }
}

#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// The request's head as received.
    pub head: RequestParts,
    /// The URL's path, percent-encoded, with dot segments resolved.
    pub path: String,
    pub body: BodyLength,
    /// The client's `X-Request-Id` if it is well-formed, otherwise a new id.
    pub request_id: RequestId,
    /// The edge's span of the client's trace; `None` without a valid `traceparent`.
    pub trace: Option<TraceSpan>,
}

impl IncomingRequest {
    /// Parses a request's head at `now_ms`, in milliseconds since 1970. `random` returns random bytes: for a request id
    /// if the client sent no well-formed one, and for a span id if the client sent a `traceparent`.
    pub fn read<E>(head: RequestParts, now_ms: u64, random: impl Fn() -> Result<[u8; 10], E>) -> Result<Self, E> {
        let (path, _) = split_url(&head.url);
        let path = request::resolve_dot_segments(path).into_owned();
        let body = match head.has_body {
            true => BodyLength::announced(head.headers.get("content-length")),
            false => BodyLength::Known(0),
        };
        let incoming_id = head.headers.get(request_id::HEADER);
        let request_id = match incoming_id.and_then(RequestId::from_incoming) {
            Some(id) => id,
            None => RequestId::generate(now_ms, &random()?),
        };
        let trace = match head.headers.get(TRACEPARENT) {
            Some(caller) => {
                let [id @ .., _, _] = random()?;
                TraceSpan::continued(caller, id)
            }
            None => None,
        };
        Ok(Self { head, path, body, request_id, trace })
    }

    pub fn method(&self) -> &str {
        &self.head.method
    }

    /// Returns the URL's query, percent-encoded, without its `?`.
    pub fn query(&self) -> Option<&str> {
        split_url(&self.head.url).1
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)
    }

    /// Returns a copy of the request without this header, whose name must be in lower case.
    pub fn without(&self, name: &str) -> Self {
        let mut copy = self.clone();
        copy.head.headers = self.head.headers.iter().filter(|(known, _)| *known != name).collect();
        copy
    }

    /// Returns whether `Origin` is the request's own host, which means that this installation serves the page (the
    /// console, for example).
    pub fn is_of_own_page(&self) -> bool {
        self.header("origin").is_some_and(|origin| is_origin_of(origin, &self.head.url))
    }

    /// Returns whether the response may list files whose cache entries must be purged.
    pub fn may_change_media(&self) -> bool {
        const MEDIA: &str = "/api/v1/media";
        self.method() != "GET" && (self.path.starts_with(MEDIA) || self.path == MCP)
    }

    /// Returns the parts of the head that edge and origin interpret in the same way.
    pub(super) fn request_head(&self) -> RequestHead<'_> {
        let headers = self.head.headers.iter().map(|(name, value)| (name, value.as_bytes()));
        RequestHead::read(self.method(), &self.path, self.query(), headers)
    }

    /// Returns the URL of the request at an origin. `base` is the origin's URL without a path.
    pub fn target(&self, base: &str) -> String {
        match self.query() {
            Some(query) => format!("{base}{}?{query}", self.path),
            None => format!("{base}{}", self.path),
        }
    }
}

/// Returns scheme and host (with port) of a URL in the form in which the runtime returns it; `None` if either is
/// missing.
pub(super) fn scheme_and_host(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    (!host.is_empty()).then_some((scheme, host))
}

/// Returns whether `origin` and `url` have the same scheme, host and port. Both must omit default ports, as browsers
/// and the runtime do.
fn is_origin_of(origin: &str, url: &str) -> bool {
    scheme_and_host(url).is_some() && scheme_and_host(origin) == scheme_and_host(url)
}

/// Splits a URL, in the form in which the runtime returns it, into path and query without decoding them. An empty path
/// becomes `/`.
pub(super) fn split_url(url: &str) -> (&str, Option<&str>) {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let rest = url[after_scheme..].find(['/', '?', '#']).map_or("", |at| &url[after_scheme + at..]);
    let rest = rest.split('#').next().unwrap_or_default();
    match rest.split_once('?') {
        Some((path, query)) => (if path.is_empty() { "/" } else { path }, Some(query)),
        None => (if rest.is_empty() { "/" } else { rest }, None),
    }
}
