//! The parts of a request's head on which the edge's decisions depend, and the length of its body.

use super::headers::Head;
use shared::operation::{route::MCP, tus};
use shared::request::{self, AFTER_HEADER, RequestHead};
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
    /// Parses `Content-Length`.
    #[must_use]
    pub fn announced(content_length: Option<&str>) -> Self {
        match content_length.map(str::parse) {
            Some(Ok(bytes)) => Self::Known(bytes),
            _ => Self::Unknown,
        }
    }
}

#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// The HTTP method, in upper case.
    pub method: String,
    pub is_https: bool,
    /// The URL's path, percent-encoded, with dot segments resolved.
    pub path: String,
    /// The URL's query, percent-encoded, without its `?`.
    pub query: Option<String>,
    pub authorization: Option<String>,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub accept: Option<String>,
    pub cache_control: Option<String>,
    pub idempotency_key: Option<String>,
    pub prefer: Option<String>,
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    /// The request headers of the tus protocol; empty unless the path is for resumable uploads.
    pub tus: Vec<(&'static str, String)>,
    pub origin: Option<String>,
    /// Whether `Origin` names the host that was called: the page is the console, which this installation serves.
    pub is_own_page: bool,
    pub access_control_request_method: Option<String>,
    pub body: BodyLength,
    /// The client's `X-Request-Id` if it is well-formed, otherwise a new id.
    pub request_id: RequestId,
    /// The edge's span of the client's trace; `None` without a valid `traceparent`.
    pub trace: Option<TraceSpan>,
}

impl IncomingRequest {
    /// Parses a request's head at `now_ms`, in milliseconds since 1970. `random` returns random bytes, for a request id
    /// if the client sent none that is well-formed, and for the id of a span if the client sent a `traceparent`.
    ///
    /// # Errors
    /// The error of `random`.
    pub fn read<E>(head: &Head, now_ms: u64, random: impl Fn() -> Result<[u8; 10], E>) -> Result<Self, E> {
        let (path, query) = split_url(&head.url);
        let path = request::resolve_dot_segments(path).into_owned();
        let get = |name: &str| head.headers.get(name).map(str::to_owned);
        let body = match head.has_body {
            true => BodyLength::announced(head.headers.get("content-length")),
            false => BodyLength::Known(0),
        };
        let is_own_page = head.headers.get("origin").is_some_and(|origin| is_origin_of(origin, &head.url));
        let incoming_id = head.headers.get(request_id::HEADER);
        Ok(Self {
            method: head.method.clone(),
            is_https: head.url.starts_with("https:"),
            query: query.map(str::to_owned),
            authorization: get("authorization"),
            content_type: get("content-type"),
            content_encoding: get("content-encoding"),
            accept: get("accept"),
            // A read with `X-Selkie-After` must not be answered from the cache, so its `Cache-Control` is ignored.
            cache_control: get("cache-control").filter(|_| head.headers.get(AFTER_HEADER).is_none()),
            idempotency_key: get("idempotency-key"),
            prefer: get("prefer"),
            if_match: get("if-match"),
            if_none_match: get("if-none-match"),
            tus: match tus::is_at(&path) {
                true => TUS_HEADERS.into_iter().filter_map(|name| Some((name, get(name)?))).collect(),
                false => Vec::new(),
            },
            origin: get("origin"),
            is_own_page,
            access_control_request_method: get("access-control-request-method"),
            path,
            body,
            request_id: match incoming_id.and_then(RequestId::from_incoming) {
                Some(id) => id,
                None => RequestId::generate(now_ms, &random()?),
            },
            trace: match head.headers.get(TRACEPARENT) {
                Some(caller) => {
                    let [id @ .., _, _] = random()?;
                    TraceSpan::continued(caller, id)
                }
                None => None,
            },
        })
    }

    /// Returns whether the response may list files whose cache entries must be purged.
    #[must_use]
    pub fn may_change_media(&self) -> bool {
        const MEDIA: &str = "/api/v1/media";
        self.method != "GET" && (self.path.starts_with(MEDIA) || self.path == MCP)
    }

    pub(super) fn head(&self) -> RequestHead<'_> {
        let tus = self.tus.iter().map(|(name, value)| (*name, value.as_bytes()));
        RequestHead {
            authorization: self.authorization.as_deref(),
            content_type: self.content_type.as_deref(),
            content_encoding: self.content_encoding.as_deref(),
            accept: self.accept.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            prefer: self.prefer.as_deref(),
            if_match: self.if_match.as_deref(),
            if_none_match: self.if_none_match.as_deref(),
            origin: self.origin.as_deref(),
            ..RequestHead::read(&self.method, &self.path, self.query.as_deref(), tus)
        }
    }

    /// Returns the URL of the request at an origin. `base` is the origin's URL without a path.
    #[must_use]
    pub fn target(&self, base: &str) -> String {
        match &self.query {
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

/// Returns whether an `Origin` is that of a URL, in the form in which the runtime returns the URL. Neither names a
/// default port.
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
