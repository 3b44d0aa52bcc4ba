//! The heads of requests and answers as the host read them (names in lower case, and values), and the headers that the edge
//! changes between the client and the origin.

use super::incoming_request::{IncomingRequest, scheme_and_host, split_url};
use super::request_log::Outcome;
use crate::config::AccessConfig;
use shared::cors::CorsOrigins;
use shared::error::{ErrorCode, Problem};
use shared::media::{FORGET_HEADER, FORGETS_HEADER};
use shared::operation::tus;
use shared::request;
use shared::request_id;
use shared::security::{self, EDGE_SECRET_HEADER};
use std::borrow::Cow;

/// The headers of a request or an answer: lines of a name, a comma and a value. No name holds a comma, and no value a line
/// end.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    text: String,
    /// Where each line, its name and the line itself end.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// Parses what the host read.
    #[must_use]
    pub fn parse(text: String) -> Self {
        let mut ends = Vec::with_capacity(32);
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            if let Some(name) = line.find(',') {
                ends.push((start + name, end));
            }
            start = end + 1;
        }
        Self { text, ends }
    }

    /// Returns the names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| end + 1));
        starts.zip(&self.ends).map(|(start, (name, end))| {
            let part = |range| self.text.get(range).unwrap_or_default();
            (part(start..*name), part(name + 1..*end))
        })
    }

    /// Returns the value of a header, named in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        // Some forty calls a request: bytes need no look at character boundaries.
        let (text, name) = (self.text.as_bytes(), name.as_bytes());
        let mut start = 0;
        for (name_end, end) in &self.ends {
            if name_end - start == name.len() && text.get(start..*name_end) == Some(name) {
                return self.text.get(name_end + 1..*end);
            }
            start = end + 1;
        }
        None
    }
}

impl<'a, 'b> FromIterator<(&'a str, &'b str)> for Headers {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'b str)>>(pairs: T) -> Self {
        let lines: Vec<_> = pairs.into_iter().map(|(name, value)| [name, ",", value].concat()).collect();
        Self::parse(lines.join("\n"))
    }
}

/// A request's head.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The method, in upper case.
    pub method: String,
    /// The serialised URL.
    pub url: String,
    /// Whether there is a body, however long.
    pub has_body: bool,
    /// The headers.
    pub headers: Headers,
}

impl Head {
    /// Checks for what no request may hold, and for what the origin's HTTP parser would refuse.
    ///
    /// # Errors
    /// Those of [`request::check_url`] and [`request::check_headers`]; `invalid_body` for a body with both
    /// `Content-Length` and `Transfer-Encoding`.
    pub fn check(&self) -> Result<(), Problem> {
        let (path, query) = split_url(&self.url);
        request::check_url(path, query)?;
        let headers = || self.headers.iter();
        request::check_headers(|| headers().map(|(name, value)| (name, value.as_bytes())))?;
        let is_ambiguous = self.has_body
            && self.headers.get("content-length").is_some()
            && self.headers.get("transfer-encoding").is_some();
        if !is_ambiguous {
            return Ok(());
        }
        // Other servers on the way may obey the other header (RFC 9112, 6.1).
        Err(Problem::new(ErrorCode::InvalidBody, "The request has both Content-Length and Transfer-Encoding.")
            .with_hint("Send one of them."))
    }
}

/// Tells the origin the caller's address.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Tells the origin the host that the caller asked, which the URLs in its answers begin with.
const FORWARDED_HOST: &str = "x-forwarded-host";

/// Tells the origin the scheme of the caller's URL.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Request headers that are not forwarded as they came: those of the connection (RFC 9110, 7.6.1), those that the host
/// writes, and those by which a caller could pass for another one.
pub const NOT_FORWARDED: [&str; 21] = [
    "accept-encoding",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
    "forwarded",
    FORWARDED_FOR,
    FORWARDED_HOST,
    FORWARDED_PROTO,
    "x-real-ip",
    "true-client-ip",
    FORGETS_HEADER,
    "cf-connecting-ip",
    EDGE_SECRET_HEADER,
];

/// Answer headers that are not passed on. The runtime has removed the others of the connection; Selkie's origin names
/// none in `Connection`. Which web origins may read an answer, the edge says itself.
pub const NOT_ANSWERED: [&str; 4] =
    ["access-control-allow-origin", "access-control-expose-headers", "proxy-authenticate", "proxy-connection"];

/// Headers that a request is decided by at both hosts: `Connection` can't remove them, or the two hosts would decide about
/// different requests. A sender may not name end-to-end headers there anyway (RFC 9110, 7.6.1).
const END_TO_END: [&str; 17] = [
    "accept",
    "access-control-request-method",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "origin",
    "range",
    "traceparent",
    "tracestate",
];

/// The headers of a request to an origin.
pub type RequestHeaders<'a> = Vec<(&'a str, &'a str)>;

/// Returns the headers that a request has on its way to an origin. `seen_address` is the caller's address, with its port,
/// where the runtime knows it; the header that the configuration trusts has precedence.
#[must_use]
pub fn forwarded<'a>(
    head: &'a Head,
    request: &'a IncomingRequest,
    access: &'a AccessConfig,
    seen_address: Option<&'a str>,
) -> RequestHeaders<'a> {
    let connection = head.headers.get("connection").unwrap_or_default();
    let is_of_connection = |name: &str| {
        let mut named = connection.split(',').map(str::trim);
        may_be_of_connection(name) && named.any(|named| named.eq_ignore_ascii_case(name))
    };
    let is_forwarded = |name: &str| {
        name != request_id::HEADER
            && !NOT_FORWARDED.contains(&name)
            && (connection.is_empty() || !is_of_connection(name))
    };
    let kept = head.headers.iter().filter(|(name, _)| is_forwarded(name));
    let mut headers: RequestHeaders<'_> = kept.collect();
    headers.extend(about_caller(head, request, access, seen_address));
    if request.may_change_media() {
        headers.push((FORGETS_HEADER, "1"));
    }
    headers
}

/// The headers that tell an origin who sends the request.
fn about_caller<'a>(
    head: &'a Head,
    request: &'a IncomingRequest,
    access: &'a AccessConfig,
    seen_address: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let address = match &access.client_address {
        Some(name) => head.headers.get(name),
        None => seen_address.map(without_port),
    };
    let (scheme, host) = scheme_and_host(&head.url).unzip();
    let secret = access.edge_secret.as_ref().map(|secret| secret.text());
    [
        (request_id::HEADER, Some(request.request_id.as_str())),
        (FORWARDED_FOR, address),
        (EDGE_SECRET_HEADER, secret),
        (FORWARDED_PROTO, scheme),
        (FORWARDED_HOST, host),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

/// One change of an answer's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The header has this value only.
    Set(&'static str, Cow<'static, str>),
    /// The header has this value too.
    Append(&'static str, Cow<'static, str>),
    /// The header is removed.
    Delete(&'static str),
}

/// Returns the changes to the headers of an answer on its way to the caller. What already is as it should be is left: each
/// change is a call of the runtime.
#[must_use]
pub fn answer_changes(
    headers: &Headers,
    request: &IncomingRequest,
    cors: Option<&CorsOrigins>,
    outcome: &Outcome,
) -> Vec<Change> {
    let origin = request.origin.as_deref();
    let cors_headers: Vec<_> = cors.map(|cors| cors.answer_headers(origin)).into_iter().flatten().collect();
    let is_set = |name: &str| cors_headers.iter().any(|(set, _)| *set == name);
    let removed = NOT_ANSWERED.into_iter().chain([FORGET_HEADER]);
    let mut changes: Vec<Change> =
        removed.filter(|name| headers.get(name).is_some() && !is_set(name)).map(Change::Delete).collect();
    let mut set = |name: &'static str, value: &str| {
        if headers.get(name) != Some(value) {
            changes.push(Change::Set(name, value.to_owned().into()));
        }
    };
    set(request_id::HEADER, request.request_id.as_str());
    if request.is_https {
        let (name, value) = security::HTTPS_HEADER;
        set(name, value);
    }
    for (name, value) in tus::answer_headers(&request.path, outcome.status) {
        set(name, value);
    }
    for (name, value) in cors_headers.iter().filter(|(name, _)| *name != "vary") {
        set(name, value);
    }
    let vary = cors_headers.iter().filter(|(name, _)| *name == "vary");
    // The answer may depend on more.
    let vary = vary.filter(|(_, value)| !lists(headers.get("vary"), value));
    changes.extend(vary.map(|(name, value)| Change::Append(name, (*value).to_owned().into())));
    let timing = server_timing(outcome.total_ms, outcome.origin_ms);
    changes.push(Change::Append("server-timing", timing.into()));
    changes
}

/// Whether `Connection` may remove a header.
#[must_use]
pub fn may_be_of_connection(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_of_tus = name.starts_with("upload-") || name.starts_with("tus-");
    !is_of_tus && !END_TO_END.contains(&name.as_str())
}

/// An address without its port: `127.0.0.1:80`, `[::1]:80`.
pub(super) fn without_port(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Whether a header that is a list has an item already.
pub(super) fn lists(header: Option<&str>, item: &str) -> bool {
    let mut items = header.unwrap_or_default().split(',').map(str::trim);
    items.any(|listed| listed.eq_ignore_ascii_case(item))
}

/// The edge's part of `Server-Timing`, in milliseconds: its own work, and the wait for the origin's head if it was asked.
#[must_use]
pub fn server_timing(total_ms: f64, origin_ms: Option<f64>) -> String {
    // The runtime's clock has whole milliseconds, and code that formats fractions takes some kilobytes.
    let whole = |ms: f64| ms.max(0.0) as u32;
    match origin_ms {
        Some(origin) => format!("edge;dur={}, upstream;dur={}", whole(total_ms - origin), whole(origin)),
        None => format!("edge;dur={}", whole(total_ms)),
    }
}
