//! A request as far as the gateway looks at it: its head, and the length of its body.

use shared::request::RequestHead;
use shared::request_id::RequestId;

/// How long a request's body is, before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes; 0 without a body.
    Known(u64),
    /// It ends when it ends (chunked).
    Unknown,
}

impl BodyLength {
    /// The length that a `Content-Length` header announces.
    #[must_use]
    pub fn announced(content_length: Option<&str>) -> Self {
        match content_length.map(str::parse) {
            Some(Ok(bytes)) => Self::Known(bytes),
            _ => Self::Unknown,
        }
    }
}

/// The parts of a request's head that decide about it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method, in upper case.
    pub method: String,
    /// Whether it came by https, as far as the runtime knows.
    pub is_https: bool,
    /// The path, percent-encoded.
    pub path: String,
    /// The query without its `?`, percent-encoded.
    pub query: Option<String>,
    /// `Authorization`.
    pub authorization: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Accept`.
    pub accept: Option<String>,
    /// `Cache-Control`, where records are kept for who asks for it.
    pub cache_control: Option<String>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// `If-Match`.
    pub if_match: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The headers of resumable uploads by name, if the path is one of theirs.
    pub tus: Vec<(&'static str, String)>,
    /// `Origin`.
    pub origin: Option<String>,
    /// `Access-Control-Request-Method`.
    pub access_control_request_method: Option<String>,
    /// The body's length.
    pub body: BodyLength,
    /// The caller's own id if it was well-formed, else a new one.
    pub request_id: RequestId,
}

impl Call {
    pub(super) fn head(&self) -> RequestHead<'_> {
        let tus = self
            .tus
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        RequestHead {
            authorization: self.authorization.as_deref(),
            content_type: self.content_type.as_deref(),
            content_encoding: self.content_encoding.as_deref(),
            accept: self.accept.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            if_match: self.if_match.as_deref(),
            if_none_match: self.if_none_match.as_deref(),
            origin: self.origin.as_deref(),
            ..RequestHead::read(&self.method, &self.path, self.query.as_deref(), tus)
        }
    }

    /// The address to forward to. `base` has no path.
    #[must_use]
    pub fn target(&self, base: &str) -> String {
        match &self.query {
            Some(query) => format!("{base}{}?{query}", self.path),
            None => format!("{base}{}", self.path),
        }
    }
}

/// The scheme and the host (with its port) of a serialised URL, as the runtime gives it: without a name or a password.
#[must_use]
pub fn scheme_and_host(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    (!host.is_empty()).then_some((scheme, host))
}

/// Splits a serialised URL into its path and query, both as they are.
#[must_use]
pub fn split_url(url: &str) -> (&str, Option<&str>) {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let rest = url[after_scheme..]
        .find(['/', '?', '#'])
        .map_or("", |at| &url[after_scheme + at..]);
    let rest = rest.split('#').next().unwrap_or_default();
    match rest.split_once('?') {
        Some((path, query)) => (if path.is_empty() { "/" } else { path }, Some(query)),
        None => (if rest.is_empty() { "/" } else { rest }, None),
    }
}
