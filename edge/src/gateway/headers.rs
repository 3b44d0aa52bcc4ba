//! The headers between the edge and the origin, by name.

use super::call::{Call, scheme_and_host};
use super::head::{Changes, Head};
use super::record::Ending;
use crate::config::Door;
use shared::cors::CorsOrigins;
use shared::media::{FORGET_HEADER, FORGETS_HEADER};
use shared::operation::tus;
use shared::request_id;
use shared::security::{self, EDGE_SECRET_HEADER};

/// Tells the origin the caller's address.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Tells the origin the host that the caller asked, which the URLs in its answers begin with.
const FORWARDED_HOST: &str = "x-forwarded-host";

/// Tells the origin the scheme of the caller's URL.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

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
/// `Connection` named besides can't be known any more, and Selkie's origin names none. Which web origins may read an
/// answer, the edge says by itself.
pub const NOT_ANSWERED: [&str; 4] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "proxy-authenticate",
    "proxy-connection",
];

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

/// What is changed in a request's head on its way to an origin. `seen` is the caller's address, with its port, where the
/// runtime tells it; the header whom the configuration believes goes before.
#[must_use]
pub fn forwarded_changes(head: &Head, call: &Call, door: &Door, seen: Option<&str>) -> Changes {
    let mut changes = Changes::default();
    let connection = head.get("connection").unwrap_or_default();
    let named = connection.split(',').map(str::trim);
    let named = named.filter(|name| may_be_of_connection(name));
    for name in NOT_FORWARDED.into_iter().chain(named) {
        let name = name.to_ascii_lowercase();
        // What is not there, or can't be, needs no deleting.
        if head.get(&name).is_some() {
            changes.delete(&name);
        }
    }
    changes.set(request_id::HEADER, call.request_id.as_str());
    let client = match &door.client_address {
        Some(name) => head.get(name),
        None => seen.map(without_port),
    };
    if let Some(client) = client {
        changes.set(FORWARDED_FOR, client);
    }
    if let Some(secret) = &door.edge_secret {
        changes.set(EDGE_SECRET_HEADER, secret.text());
    }
    if let Some((scheme, host)) = scheme_and_host(head.url()) {
        changes.set(FORWARDED_PROTO, scheme);
        changes.set(FORWARDED_HOST, host);
    }
    if call.may_change_media() {
        changes.set(FORGETS_HEADER, "1");
    }
    changes
}

/// What is changed in the head of an origin's answer on its way to the caller. What is already as it should be is left:
/// each change costs the runtime more than to find that out.
#[must_use]
pub fn origin_changes(head: &Head, call: &Call, cors: &CorsOrigins, ending: &Ending) -> Changes {
    let mut changes = Changes::default();
    let allowed = cors.answer_headers(call.origin.as_deref());
    let allowed: Vec<_> = allowed.collect();
    for name in NOT_ANSWERED {
        if head.get(name).is_some() && !allowed.iter().any(|(set, _)| *set == name) {
            changes.delete(name);
        }
    }
    of_every_answer(&mut changes, head, call, ending);
    of_pages(&mut changes, head, allowed);
    changes
}

/// What an answer has beside its own headers that does not come from an origin as it is.
pub fn own_changes(
    changes: &mut Changes,
    head: &Head,
    call: &Call,
    cors: Option<&CorsOrigins>,
    ending: &Ending,
) {
    of_every_answer(changes, head, call, ending);
    let allowed = cors.map(|cors| cors.answer_headers(call.origin.as_deref()));
    of_pages(changes, head, allowed.into_iter().flatten());
}

fn of_every_answer(changes: &mut Changes, head: &Head, call: &Call, ending: &Ending) {
    let mut set = |name: &str, value: &str| {
        if head.get(name) != Some(value) {
            changes.set(name, value);
        }
    };
    set(request_id::HEADER, call.request_id.as_str());
    if call.is_https {
        let (name, value) = security::HTTPS_HEADER;
        set(name, value);
    }
    for (name, value) in tus::answer_headers(&call.path, ending.status) {
        set(name, value);
    }
    if call.may_change_media() {
        changes.delete(FORGET_HEADER);
    }
    let timing = server_timing(ending.total_ms, ending.origin_ms);
    changes.append("server-timing", &timing);
}

/// Which pages may read an answer.
fn of_pages<'a>(
    changes: &mut Changes,
    head: &Head,
    allowed: impl IntoIterator<Item = (&'static str, &'a str)>,
) {
    for (name, value) in allowed {
        match name {
            // The answer may depend on more.
            "vary" if lists(head.get(name), value) => {}
            "vary" => changes.append(name, value),
            _ if head.get(name) == Some(value) => {}
            _ => changes.set(name, value),
        }
    }
}

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
