//! Security headers of responses, the same at edge and origin. Media files and browser pages have their own.

/// Headers that forbid browsers to treat JSON as HTML or a script, load anything for it, show it in a frame, or send
/// its URL as a referrer. Other websites can read it only by CORS.
pub const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Header that makes browsers use only https for a year.
pub const HTTPS_HEADER: (&str, &str) = ("strict-transport-security", "max-age=31536000");

/// Request header by which the edge proves its identity. The edge drops it from clients' requests.
pub const EDGE_SECRET_HEADER: &str = "x-selkie-edge";
