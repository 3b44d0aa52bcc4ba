//! The headers that keep browsers from making more of an answer than it is: one table for both doors.
//!
//! Callers' files have stricter or looser ones of their own, which the origin sets; what is there stays.

/// What every answer of the interface has. JSON is never a page: nothing in it is loaded or run, it stands in no
/// frame, and pages of other sites get it by CORS or not at all.
pub const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// What an answer over https has at the edge: browsers then never ask again without it, for a year.
pub const HTTPS_HEADER: (&str, &str) = ("strict-transport-security", "max-age=31536000");

/// By this header the edge proves to the origin that it is the edge. Nobody else's passes through it.
pub const EDGE_SECRET_HEADER: &str = "x-selkie-edge";
