//! Cross-origin rules: which web pages may call, and the headers that tell their browsers so.
//! Keys are bearer tokens and no cookie is read, so any page may call by default. Knows neither keys nor paths.

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use std::fmt;

/// A day.
const PREFLIGHT_CACHE_SECONDS: &str = "86400";

/// `*` does not cover `Authorization`, which is therefore named.
const ALLOWED_HEADERS: &str = "Authorization, Cache-Control, Content-Type, Idempotency-Key, If-Match, If-Modified-Since, If-None-Match, \
                               If-Range, If-Unmodified-Since, Range, Tus-Resumable, Upload-Length, Upload-Metadata, \
                               Upload-Offset, X-HTTP-Method-Override, X-Request-Id, traceparent, tracestate, *";

const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Response headers that pages may read, beside those that browsers always show.
const EXPOSED_HEADERS: &str = "Accept-Ranges, Age, Allow, Content-Disposition, Content-Length, Content-Range, ETag, \
                               Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, \
                               Selkie-Media-Id, Selkie-Media-Url, Server-Timing, Tus-Extension, Tus-Max-Size, \
                               Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Metadata, \
                               Upload-Offset, WWW-Authenticate, X-Request-Id";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsOrigins {
    /// Empty: any origin.
    listed: Vec<Box<str>>,
}

/// Writes the list as [`CorsOrigins::parse`] reads it.
impl fmt::Display for CorsOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.listed.is_empty() {
            return f.write_str("*");
        }
        f.write_str(&self.listed.join(","))
    }
}

impl CorsOrigins {
    #[must_use]
    pub const fn any() -> Self {
        Self { listed: Vec::new() }
    }

    /// Reads a setting: `*`, or a comma list such as `https://a.example, http://localhost:3000`.
    ///
    /// # Errors
    /// `invalid_value`, naming the entry that is no origin.
    pub fn parse(setting: &str) -> Result<Self, Problem> {
        if setting.trim() == "*" {
            return Ok(Self::any());
        }
        let listed = setting.split(',').map(|entry| parse_origin(entry.trim())).collect::<Result<_, _>>()?;
        Ok(Self { listed })
    }

    /// Returns the CORS headers of a response to a request with this `Origin`.
    pub fn answer_headers<'a>(
        &self,
        origin: Option<&'a str>,
    ) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        let any = self.listed.is_empty();
        let allowed = match origin {
            _ if any => Some("*"),
            Some(origin) => self.listed.iter().any(|listed| **listed == *origin).then_some(origin),
            None => None,
        };
        let allow = allowed.map(|value| ("access-control-allow-origin", value));
        let expose = allowed.map(|_| ("access-control-expose-headers", EXPOSED_HEADERS));
        // The response depends on the `Origin` header, which caches must know.
        let vary = (!any).then_some(("vary", "Origin"));
        [allow, expose, vary].into_iter().flatten()
    }

    /// Returns the headers that a preflight response (204, no body) has beside those of every response.
    pub fn preflight_headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        [
            ("access-control-allow-methods", ALLOWED_METHODS),
            ("access-control-allow-headers", ALLOWED_HEADERS),
            ("access-control-max-age", PREFLIGHT_CACHE_SECONDS),
        ]
        .into_iter()
    }
}

/// Returns whether a request is a browser's preflight, which needs no key. `OPTIONS` without these two headers asks for
/// a table's metadata. An empty `Origin` counts as none, because some HTTP parsers leave empty headers out.
#[must_use]
pub fn is_preflight(method: &str, origin: Option<&str>, access_control_request_method: Option<&str>) -> bool {
    let has_origin = origin.is_some_and(|origin| !origin.is_empty());
    method == "OPTIONS" && has_origin && access_control_request_method.is_some()
}

/// Parses an origin as browsers send it: lower case, no path.
fn parse_origin(entry: &str) -> Result<Box<str>, Problem> {
    let host = entry.strip_prefix("https://").or_else(|| entry.strip_prefix("http://"));
    let well_formed = host.is_some_and(|host| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b))
    });
    if well_formed {
        return Ok(entry.into());
    }
    Err(Problem::new(ErrorCode::InvalidValue, format!("{} is no origin such as https://app.example.", shown(entry))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(origins: &CorsOrigins, origin: Option<&str>) -> Vec<(String, String)> {
        origins.answer_headers(origin).map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn any_origin_is_answered_with_a_star_whoever_asks() {
        let any = CorsOrigins::parse("*").unwrap();
        for origin in [None, Some("https://a.example")] {
            let headers = answer(&any, origin);
            assert_eq!(headers[0], ("access-control-allow-origin".into(), "*".into()));
            assert!(headers.iter().all(|(name, _)| name != "vary"));
        }
    }

    #[test]
    fn a_listed_origin_is_named_and_others_are_told_nothing() {
        let origins = CorsOrigins::parse("https://a.example, http://localhost:3000").unwrap();
        let listed = answer(&origins, Some("http://localhost:3000"));
        assert_eq!(listed[0], ("access-control-allow-origin".into(), "http://localhost:3000".into()));
        for origin in [None, Some("https://b.example"), Some("https://a.example.evil")] {
            assert_eq!(answer(&origins, origin), [("vary".to_owned(), "Origin".to_owned())]);
        }
    }

    #[test]
    fn a_setting_that_no_browser_would_send_is_refused() {
        for setting in ["", "a.example", "https://", "https://A.example", "https://a.example/", "null", "*, https://a"]
        {
            assert!(CorsOrigins::parse(setting).is_err(), "{setting}");
        }
    }

    #[test]
    fn only_options_with_both_headers_is_a_preflight() {
        assert!(is_preflight("OPTIONS", Some("https://a"), Some("PUT")));
        assert!(!is_preflight("GET", Some("https://a"), Some("PUT")));
        assert!(!is_preflight("OPTIONS", None, Some("PUT")));
        assert!(!is_preflight("OPTIONS", Some(""), Some("PUT")));
        assert!(is_preflight("OPTIONS", Some("\u{fffd}"), Some("\u{fffd}")));
        assert!(!is_preflight("OPTIONS", Some("https://a"), None));
    }
}
