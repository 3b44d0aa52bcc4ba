//! Checks of a request's head that apply to all routes; edge and origin run them before they look at the route.

mod head;

pub use head::{RequestHead, TusHeaders};

use crate::error::{ErrorCode, Problem};
use crate::limits::{CONNECTION_NAMES_MAX_COUNT, HEADERS_MAX_BYTES, HEADERS_MAX_COUNT, URL_MAX_BYTES};
use std::borrow::Cow;

/// Request header with the `X-Selkie-Position` of a write. A read with this header sees the write, or fails if the
/// database does not reach the position in time.
pub const AFTER_HEADER: &str = "x-selkie-after";

/// Response header of CSV and NDJSON: a maximum of the server or the role withheld records. The envelope has `limited`.
pub const LIMITED_HEADER: &str = "x-selkie-limited";

/// Response header of CSV and NDJSON: `limit` or a maximum cut off further records. The envelope has `next` or `more`.
pub const MORE_HEADER: &str = "x-selkie-more";

const CONNECTION: &str = "connection";

/// Headers that are not counted, so that a request has the same number of headers at the origin as at the edge.
const ADDED_BY_PROXIES: [&str; 21] = [
    "accept-encoding",
    "cdn-loop",
    "cf-connecting-ip",
    "cf-ew-via",
    "cf-ipcountry",
    "cf-ray",
    "cf-visitor",
    "cf-worker",
    CONNECTION,
    "content-length",
    "forwarded",
    "host",
    "transfer-encoding",
    "true-client-ip",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
    crate::media::ACCEPTS_PURGE_HEADER,
];

/// Checks a URL. Fails with `uri_too_long`, or `invalid_request` for characters that must be percent-encoded.
pub fn check_url(path: &str, query: Option<&str>) -> Result<(), Problem> {
    check_url_length(path, query)?;
    let parts = [path, query.unwrap_or_default()];
    if parts.into_iter().any(has_forbidden_character) {
        return Err(malformed());
    }
    Ok(())
}

/// Resolves `.` and `..` as URL parsers do (WHATWG URL, path state). Cloudflare's runtime resolves only some of them.
pub fn resolve_dot_segments(path: &str) -> Cow<'_, str> {
    if path.split('/').all(|segment| Dots::of(segment).is_none()) {
        return Cow::Borrowed(path);
    }
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let dots = Dots::of(segment);
        if dots == Some(Dots::Parent) {
            resolved.pop();
        }
        if dots.is_none() {
            resolved.push(segment);
        } else if segments.peek().is_none() {
            resolved.push("");
        }
    }
    Cow::Owned(format!("/{}", resolved.join("/")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dots {
    Same,
    Parent,
}

impl Dots {
    fn of(segment: &str) -> Option<Self> {
        const LONGEST: usize = "%2e%2e".len();
        let may_be = matches!(segment.as_bytes().first(), Some(b'.' | b'%'));
        if !may_be || segment.len() > LONGEST {
            return None;
        }
        match &*segment.to_ascii_lowercase().replace("%2e", ".") {
            "." => Some(Self::Same),
            ".." => Some(Self::Parent),
            _ => None,
        }
    }
}

pub fn check_url_length(path: &str, query: Option<&str>) -> Result<(), Problem> {
    let length = path.len() + query.map_or(0, |query| query.len() + 1);
    if length <= URL_MAX_BYTES {
        return Ok(());
    }
    Err(url_too_long())
}

/// Checks headers with names in lower case; equal names must be adjacent. Fails with `invalid_request` for a malformed
/// header, with `headers_too_large` beyond the limits, and with `invalid_body` for `Trailer`, since some HTTP
/// implementations don't find the end of a body with trailers. Of the headers of proxies, only names in `Connection`
/// have a limit.
pub fn check_headers<'a, I>(headers: impl Fn() -> I) -> Result<(), Problem>
where
    I: Iterator<Item = (&'a str, &'a [u8])>,
{
    let (mut size, mut connection_names) = (Size::default(), 0);
    for (name, value) in headers() {
        if !name.is_ascii() || value.iter().fold(false, |found, byte| found | is_control(*byte)) {
            return Err(malformed());
        }
        if name == "trailer" && !value.is_empty() {
            return Err(Problem::new(
                ErrorCode::InvalidBody,
                "The header Trailer announces trailers, which no body may have here.",
            )
            .with_hint("Send the body without trailers."));
        }
        if name == CONNECTION {
            connection_names += 1 + memchr::memchr_iter(b',', value).count();
        }
        size.add(name, value);
    }
    if connection_names > CONNECTION_NAMES_MAX_COUNT {
        return Err(headers_too_large(format!(
            "The header Connection has more than {CONNECTION_NAMES_MAX_COUNT} names."
        ))
        .with_hint("Send none: clients need not list headers in it."));
    }
    if size.is_allowed() {
        return Ok(());
    }
    let mut size = Size::default();
    for (name, value) in headers().filter(|(name, _)| !ADDED_BY_PROXIES.contains(name)) {
        size.add(name, value);
    }
    if size.is_allowed() {
        return Ok(());
    }
    Err(headers_too_large(format!(
        "The request has more than {HEADERS_MAX_COUNT} headers, or more than {HEADERS_MAX_BYTES} bytes of them."
    ))
    .with_hint("Send fewer headers; a browser's are often cookies, which are not read here."))
}

fn malformed() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "The head of the request is not valid HTTP.").with_hint(
        "Percent-encode the URL; header names are ASCII; header values hold no control character but the tab.",
    )
}

fn headers_too_large(message: String) -> Problem {
    Problem::new(ErrorCode::HeadersTooLarge, message)
}

fn url_too_long() -> Problem {
    Problem::new(ErrorCode::UriTooLong, format!("The URL has more than {URL_MAX_BYTES} bytes."))
        .with_hint("Send the same options as a JSON body to POST /api/v1/crud/{database}/{table}/query.")
}

#[derive(Default)]
struct Size<'a> {
    count: usize,
    bytes: usize,
    last: &'a str,
}

impl<'a> Size<'a> {
    fn add(&mut self, name: &'a str, value: &[u8]) {
        const COMMA_AND_SPACE: usize = 2;
        if name == self.last {
            // At the edge, the values of repeated headers arrive joined by `", "`.
            self.bytes += COMMA_AND_SPACE + value.len();
        } else {
            self.count += 1;
            self.bytes += name.len() + value.len();
            self.last = name;
        }
    }

    fn is_allowed(&self) -> bool {
        self.count <= HEADERS_MAX_COUNT && self.bytes <= HEADERS_MAX_BYTES
    }
}

/// Returns whether HTTP forbids the byte in a header's value (RFC 9110, section 5.5).
const fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Returns whether a part has characters that must be percent-encoded. U+FFFD stands for bytes that are not UTF-8.
fn has_forbidden_character(part: &str) -> bool {
    let is_forbidden = |byte: u8| byte <= b' ' || matches!(byte, 0x7f | b'"' | b'<' | b'>' | b'\\' | b'`');
    part.bytes().any(is_forbidden) || (!part.is_ascii() && part.contains('\u{fffd}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_code(path: &str, query: Option<&str>) -> Option<ErrorCode> {
        check_url(path, query).err().map(|problem| problem.code())
    }

    fn headers_code(headers: &[(&str, &[u8])]) -> Option<ErrorCode> {
        let outcome = check_headers(|| headers.iter().copied());
        outcome.err().map(|problem| problem.code())
    }

    #[test]
    fn a_url_is_percent_encoded() {
        for (path, query) in [
            ("/", None),
            ("/api/v1/crud/demo/caf\u{e9}/%2e%2e%2fposts", Some("a={}|^[]'~")),
            ("/media/default/..a/...", Some("../..")),
            ("/.well-known/x", None),
        ] {
            assert_eq!(url_code(path, query), None, "{path}");
        }
        for (path, query) in [
            ("/a b", None),
            ("/a\u{1}", None),
            ("/a\\b", None),
            ("/a`b", None),
            ("/a\u{fffd}", None),
            ("/a", Some("q=\"x\"")),
            ("/a", Some("<")),
            ("/a", Some("\u{7f}")),
        ] {
            let expected = Some(ErrorCode::InvalidRequest);
            assert_eq!(url_code(path, query), expected, "{path} {query:?}");
        }
        let longest = "a".repeat(URL_MAX_BYTES - "/?".len());
        for (path, expected) in [("/", None), ("/a", Some(ErrorCode::UriTooLong))] {
            assert_eq!(url_code(path, Some(&longest)), expected, "{path}");
        }
    }

    #[test]
    fn dot_segments_are_resolved_as_a_url_parser_does() {
        for path in ["/", "/a/b", "/a//b", "/.a/..b/...", "/%2e%2e%2f", "/a/%2ea", ""] {
            assert_eq!(resolve_dot_segments(path), path);
        }
        for (path, resolved) in [
            ("/.", "/"),
            ("/..", "/"),
            ("/./a", "/a"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a/b/../../../c", "/c"),
            ("/a//../b", "/a/b"),
            ("/a/b//..", "/a/b/"),
            ("/..//a", "//a"),
            ("/a/%2E/b", "/a/b"),
            ("/a/.%2e/b", "/b"),
            ("/a/%2e./b", "/b"),
            ("/a/%2E%2e/b", "/b"),
        ] {
            assert_eq!(resolve_dot_segments(path), resolved, "{path}");
        }
    }

    #[test]
    fn headers_hold_what_http_allows() {
        let value: &[u8] = b"a\tb \xe9";
        assert_eq!(headers_code(&[("x-a", value), ("trailer", b"")]), None);
        for (name, value, code) in [
            ("x-a", &b"a\x01b"[..], ErrorCode::InvalidRequest),
            ("x-a", b"\x7f", ErrorCode::InvalidRequest),
            ("x-\u{e9}", b"a", ErrorCode::InvalidRequest),
            ("trailer", b"x-checksum", ErrorCode::InvalidBody),
        ] {
            assert_eq!(headers_code(&[(name, value)]), Some(code), "{name}");
        }
    }

    #[test]
    fn headers_have_limits_that_proxies_do_not_use_up() {
        let names: Vec<String> = (0..=HEADERS_MAX_COUNT).map(|n| format!("x-{n}")).collect();
        let mut headers: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"1"[..])).collect();
        let too_large = Some(ErrorCode::HeadersTooLarge);
        assert_eq!(headers_code(&headers), too_large);
        headers.pop();
        headers.extend(ADDED_BY_PROXIES.map(|name| (name, &b"1"[..])));
        assert_eq!(headers_code(&headers), None);
        let repeated = vec![("x-a", &b"1"[..]); HEADERS_MAX_COUNT + 1];
        assert_eq!(headers_code(&repeated), None);
        for (names, expected) in [(CONNECTION_NAMES_MAX_COUNT, None), (CONNECTION_NAMES_MAX_COUNT + 1, too_large)] {
            assert_eq!(headers_code(&vec![("connection", &b"x"[..]); names]), expected, "{names} lines");
            assert_eq!(headers_code(&[("connection", vec!["x"; names].join(",").as_bytes())]), expected, "{names}");
        }
        let fitting = vec![b'a'; HEADERS_MAX_BYTES - "x-a".len()];
        assert_eq!(headers_code(&[("host", b"x"), ("x-a", &fitting)]), None);
        for (shorter, expected) in [(", 1".len(), None), (", ".len(), too_large)] {
            let value = &fitting[shorter..];
            assert_eq!(headers_code(&[("x-a", value), ("x-a", b"1")]), expected, "{shorter}");
        }
    }
}
