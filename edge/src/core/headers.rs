//! The heads of requests and responses, and the headers that the edge changes between client and origin.

use super::incoming_request::{IncomingRequest, TUS_HEADERS, scheme_and_host, split_url};
use super::request_log::RequestOutcome;
use crate::config::AccessConfig;
use shared::cors::CorsOrigins;
use shared::error::{ErrorCode, Problem};
use shared::media::{ACCEPTS_PURGE_HEADER, PURGE_HEADER};
use shared::operation::tus;
use shared::request::{self, AFTER_HEADER};
use shared::request_id;
use shared::security::{self, EDGE_SECRET_HEADER};
use shared::trace::{TRACEPARENT, TRACESTATE, TraceSpan};
use std::borrow::Cow;

/// Headers as lines of a lower-case name, a comma and a value. Names contain no comma, values no line end.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    text: String,
    /// For each line, the offsets at which its name and the line end.
    ends: Vec<(usize, usize)>,
}

impl Headers {
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

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| end + 1));
        starts.zip(&self.ends).map(|(start, (name, end))| {
            let part = |range| self.text.get(range).unwrap_or_default();
            (part(start..*name), part(name + 1..*end))
        })
    }

    /// Returns a header's value; `None` if it is missing. `name` must be in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        // Compares bytes, since comparing `str` slices checks character boundaries: each request makes some forty
        // calls.
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

#[derive(Clone, Debug, Default)]
pub struct RequestParts {
    /// The HTTP method, in upper case.
    pub method: String,
    pub url: String,
    /// Whether the request has a body, which may be empty.
    pub has_body: bool,
    pub headers: Headers,
}

impl RequestParts {
    /// Checks the URL and the headers, including faults for which the origin's HTTP parser would refuse the request.
    /// A body with both `Content-Length` and `Transfer-Encoding` is `invalid_body`.
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
        // Servers in between may follow either header, and so disagree about the body's end (RFC 9112, 6.1).
        Err(Problem::new(ErrorCode::InvalidBody, "The request has both Content-Length and Transfer-Encoding.")
            .with_hint("Send one of them."))
    }
}

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Request header with the host of the client's URL, from which the origin builds the URLs in its responses.
const FORWARDED_HOST: &str = "x-forwarded-host";

const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Request headers that are not forwarded unchanged: connection headers (RFC 9110, 7.6.1), headers that the edge sets
/// itself, and headers by which a client could impersonate another client.
pub const NOT_FORWARDED: [&str; 22] = [
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
    ACCEPTS_PURGE_HEADER,
    "cf-connecting-ip",
    EDGE_SECRET_HEADER,
    TRACEPARENT,
];

/// Response headers that the client does not get, besides [`PURGE_HEADER`]. The runtime has already removed other
/// connection headers, and Selkie's origin lists none in `Connection`. The edge sets the CORS headers itself.
pub const NOT_ANSWERED: [&str; 4] =
    ["access-control-allow-origin", "access-control-expose-headers", "proxy-authenticate", "proxy-connection"];

/// Request headers on which the decisions of edge and origin depend. A client can't have them removed by listing them
/// in `Connection`, because edge and origin would then decide about different requests. Clients may not list end-to-end
/// headers there anyway (RFC 9110, 7.6.1). [`may_be_of_connection`] treats [`TUS_HEADERS`] in the same way.
const END_TO_END: [&str; 20] = [
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
    "last-event-id",
    "origin",
    "prefer",
    "range",
    "traceparent",
    "tracestate",
    AFTER_HEADER,
];

pub type RequestHeaders<'a> = Vec<(&'a str, &'a str)>;

/// Returns the headers of the request to an origin, without `Accept-Encoding`. `seen_address` is the client's address
/// with its port, as reported by the runtime; it is ignored if the configuration trusts a header instead.
pub fn forwarded<'a>(
    request: &'a IncomingRequest,
    access: &'a AccessConfig,
    seen_address: Option<&'a str>,
) -> RequestHeaders<'a> {
    let connection = request.header("connection").unwrap_or_default();
    let connection: Vec<_> = connection.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_of_connection =
        |name: &str| connection.iter().any(|named| named.eq_ignore_ascii_case(name)) && may_be_of_connection(name);
    let is_forwarded = |name: &str| {
        name != request_id::HEADER
            && !NOT_FORWARDED.contains(&name)
            && (name != TRACESTATE || request.trace.is_some())
            && !is_of_connection(name)
    };
    let kept = request.head.headers.iter().filter(|(name, _)| is_forwarded(name));
    let mut headers: RequestHeaders<'_> = kept.collect();
    headers.extend(about_caller(request, access, seen_address));
    if request.may_change_media() {
        headers.push((ACCEPTS_PURGE_HEADER, "1"));
    }
    headers
}

/// Returns the client's address. If the configuration names a header for the address, the address is that header's value
/// (`None` if the request lacks the header); otherwise it is the address that the runtime reports, without the port.
pub fn client_address<'a>(
    request: &'a IncomingRequest,
    access: &AccessConfig,
    seen_address: Option<&'a str>,
) -> Option<&'a str> {
    match &access.client_address {
        Some(name) => request.header(name),
        None => seen_address.map(without_port),
    }
}

/// Returns the headers that identify the client, the edge and the request.
fn about_caller<'a>(
    request: &'a IncomingRequest,
    access: &'a AccessConfig,
    seen_address: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let address = client_address(request, access, seen_address);
    let (scheme, host) = scheme_and_host(&request.head.url).unzip();
    let secret = access.edge_secret.as_ref().map(|secret| secret.text());
    [
        (request_id::HEADER, Some(request.request_id.as_str())),
        (FORWARDED_FOR, address),
        (EDGE_SECRET_HEADER, secret),
        (FORWARDED_PROTO, scheme),
        (FORWARDED_HOST, host),
        (TRACEPARENT, request.trace.as_ref().map(TraceSpan::header)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderChange {
    Set(&'static str, Cow<'static, str>),
    /// Adds a value and keeps the header's other values.
    Append(&'static str, Cow<'static, str>),
    Delete(&'static str),
}

/// Returns the necessary changes to a response's headers. The list is minimal, since each change is a call of the
/// runtime.
pub fn answer_changes(
    headers: &Headers,
    request: &IncomingRequest,
    cors: Option<&CorsOrigins>,
    outcome: &RequestOutcome,
) -> Vec<HeaderChange> {
    let origin = request.header("origin");
    let cors_headers: Vec<_> = cors.map(|cors| cors.answer_headers(origin)).into_iter().flatten().collect();
    let is_set = |name: &str| cors_headers.iter().any(|(set, _)| *set == name);
    let removed = NOT_ANSWERED.into_iter().chain([PURGE_HEADER]);
    let mut changes: Vec<HeaderChange> =
        removed.filter(|name| headers.get(name).is_some() && !is_set(name)).map(HeaderChange::Delete).collect();
    let mut set = |name: &'static str, value: &str| {
        if headers.get(name) != Some(value) {
            changes.push(HeaderChange::Set(name, value.to_owned().into()));
        }
    };
    set(request_id::HEADER, request.request_id.as_str());
    if request.head.url.starts_with("https:") {
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
    // The origin's `Vary` may list further headers, so the value is appended.
    let vary = vary.filter(|(_, value)| !lists(headers.get("vary"), value));
    changes.extend(vary.map(|(name, value)| HeaderChange::Append(name, (*value).to_owned().into())));
    let timing = server_timing(outcome.total_ms, outcome.origin_ms);
    changes.push(HeaderChange::Append("server-timing", timing.into()));
    changes
}

/// Returns whether a client may have this header removed by listing it in `Connection`.
pub fn may_be_of_connection(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !TUS_HEADERS.contains(&name.as_str()) && !END_TO_END.contains(&name.as_str())
}

/// Removes the port from an address such as `127.0.0.1:80` or `[::1]:80`.
pub(super) fn without_port(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Returns whether a header's comma-separated list contains an item.
pub(super) fn lists(header: Option<&str>, item: &str) -> bool {
    let mut items = header.unwrap_or_default().split(',').map(str::trim);
    items.any(|listed| listed.eq_ignore_ascii_case(item))
}

/// Returns the edge's part of `Server-Timing`, in ms: the edge's own work and, if an origin was asked, the wait for it.
pub fn server_timing(total_ms: f64, origin_ms: Option<f64>) -> String {
    // Whole milliseconds, since the runtime's clock is no more precise.
    let whole = |ms: f64| ms.max(0.0) as u32;
    match origin_ms {
        Some(origin) => format!("edge;dur={}, upstream;dur={}", whole(total_ms - origin), whole(origin)),
        None => format!("edge;dur={}", whole(total_ms)),
    }
}
