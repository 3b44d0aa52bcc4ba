//! The headers between the edge and the origin, by name.

use shared::media::FORGETS_HEADER;
use shared::security::EDGE_SECRET_HEADER;

/// Tells the origin the caller's address.
pub const FORWARDED_FOR: &str = "x-forwarded-for";

/// Tells the origin the host that the caller asked, which the URLs in its answers begin with.
pub const FORWARDED_HOST: &str = "x-forwarded-host";

/// Tells the origin the scheme of the caller's URL.
pub const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// What of a request's headers stops here: those of the connection (RFC 9110, 7.6.1), what the runtime
/// writes by itself, and what a caller could use to pass for somebody else.
pub const NOT_FORWARDED: [&str; 20] = [
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

/// What of an answer's headers stops here. The runtime has kept back the others of the connection; what a
/// `Connection` named besides can't be known any more, and Selkie's origin names none.
pub const NOT_ANSWERED: [&str; 2] = ["proxy-authenticate", "proxy-connection"];

/// What a request is decided by, and what the origin answers by: no `Connection` takes it away, or the two would
/// answer different questions. Headers from one end to the other may not be named there anyway (RFC 9110, 7.6.1).
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

/// Whether a header stops here if `Connection` names it.
#[must_use]
pub fn may_be_of_connection(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_of_tus = name.starts_with("upload-") || name.starts_with("tus-");
    !is_of_tus && !END_TO_END.contains(&name.as_str())
}

/// An address without its port: `127.0.0.1:80`, `[::1]:80`.
#[must_use]
pub fn without_port(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Whether a header that is a list has an item already.
#[must_use]
pub fn lists(header: Option<&str>, item: &str) -> bool {
    let mut items = header.unwrap_or_default().split(',').map(str::trim);
    items.any(|listed| listed.eq_ignore_ascii_case(item))
}

/// The edge's part of `Server-Timing`, in milliseconds: its own work, and the wait for the origin's
/// head if it was asked.
#[must_use]
pub fn server_timing(total_ms: f64, origin_ms: Option<f64>) -> String {
    // Whole ones, which is all that the runtime's clock gives: to write fractions takes some kilobytes of code.
    let whole = |ms: f64| ms.max(0.0) as u32;
    match origin_ms {
        Some(origin) => format!(
            "edge;dur={}, upstream;dur={}",
            whole(total_ms - origin),
            whole(origin)
        ),
        None => format!("edge;dur={}", whole(total_ms)),
    }
}
