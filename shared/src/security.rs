//! Security headers of responses, the same at edge and origin. Media responses have their own, which are not
//! overwritten.

/// Headers of every API response: browsers never render JSON as a page or in a frame, and pages of other sites read it
/// by CORS only.
pub const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Header of the edge's https responses: browsers use only https for a year.
pub const HTTPS_HEADER: (&str, &str) = ("strict-transport-security", "max-age=31536000");

/// Request header by which the edge proves its identity to the origin. The edge never forwards a caller's own.
pub const EDGE_SECRET_HEADER: &str = "x-selkie-edge";
