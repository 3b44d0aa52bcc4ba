//! CORS: which web pages may call the API. Any page may call by default, since API keys are bearer tokens and cookies
//! are not read; but the edge refuses full-access keys of other sites' pages by default.

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::operation::route;
use std::fmt;

const PREFLIGHT_CACHE_SECONDS: &str = "86400";

/// Names `Authorization` explicitly, because `*` does not include that header.
const ALLOWED_HEADERS: &str = "Authorization, Cache-Control, Content-Type, Idempotency-Key, If-Match, If-Modified-Since, If-None-Match, \
                               If-Range, If-Unmodified-Since, Prefer, Range, Tus-Resumable, Upload-Length, Upload-Metadata, \
                               Upload-Offset, X-HTTP-Method-Override, X-Request-Id, X-Selkie-After, traceparent, tracestate, *";

const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const EXPOSED_HEADERS: &str = "Accept-Ranges, Age, Allow, Content-Disposition, Content-Length, Content-Range, ETag, \
                               Idempotency-Replayed, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, \
                               Selkie-Media-Id, Selkie-Media-Thumbnail-Url, Selkie-Media-Url, Server-Timing, \
                               Tus-Extension, Tus-Max-Size, \
                               Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Metadata, \
                               Upload-Offset, WWW-Authenticate, X-Request-Id, X-Selkie-Code, X-Selkie-Limited, X-Selkie-More, \
                               X-Selkie-Position";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsOrigins {
    /// The allowed origins; an empty list allows any origin.
    listed: Vec<Box<str>>,
}

impl fmt::Display for CorsOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.listed.is_empty() {
            return f.write_str("*");
        }
        f.write_str(&self.listed.join(","))
    }
}

impl CorsOrigins {
    pub const fn any() -> Self {
        Self { listed: Vec::new() }
    }

    /// Parses `*` or a comma-separated list. Fails with `invalid_value` if an item is not an origin.
    pub fn parse(setting: &str) -> Result<Self, Problem> {
        if setting.trim() == "*" {
            return Ok(Self::any());
        }
        let listed = setting.split(',').map(|entry| parse_origin(entry.trim())).collect::<Result<_, _>>()?;
        Ok(Self { listed })
    }

    pub fn answer_headers<'a>(
        &self,
        origin: Option<&'a str>,
    ) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        let any = self.listed.is_empty();
        let allowed = match origin {
            _ if any => Some("*"),
            origin => origin.filter(|origin| self.has(origin)),
        };
        let allow = allowed.map(|value| ("access-control-allow-origin", value));
        let expose = allowed.map(|_| ("access-control-expose-headers", EXPOSED_HEADERS));
        // Caches must distinguish responses by the `Origin` header.
        let vary = (!any).then_some(("vary", "Origin"));
        [allow, expose, vary].into_iter().flatten()
    }

    fn has(&self, origin: &str) -> bool {
        self.listed.iter().any(|listed| **listed == *origin)
    }

    /// Refuses MCP requests of web pages that are not listed, as the MCP specification demands (transports, security
    /// warning). Fails with `permission_denied`.
    pub fn check_page(&self, path: &str, origin: Option<&str>) -> Result<(), Problem> {
        match origin.filter(|_| path == route::MCP && !self.listed.is_empty()) {
            Some(origin) if !origin.is_empty() && !self.has(origin) => Err(Problem::new(
                ErrorCode::PermissionDenied,
                format!("Web pages of {} may not call MCP here.", shown(origin)),
            )
            .with_hint("Whoever runs the service can add the origin to the setting of CORS.")),
            _ => Ok(()),
        }
    }

    /// Returns the headers that only preflight responses (204, no body) have.
    pub fn preflight_headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        [
            ("access-control-allow-methods", ALLOWED_METHODS),
            ("access-control-allow-headers", ALLOWED_HEADERS),
            ("access-control-max-age", PREFLIGHT_CACHE_SECONDS),
        ]
        .into_iter()
    }
}

/// Returns whether a request is a CORS preflight, which needs no API key; any other `OPTIONS` request is an API
/// request. An empty `Origin` counts as missing, because some HTTP parsers drop empty headers.
pub fn is_preflight(method: &str, origin: Option<&str>, access_control_request_method: Option<&str>) -> bool {
    let has_origin = origin.is_some_and(|origin| !origin.is_empty());
    method == "OPTIONS" && has_origin && access_control_request_method.is_some()
}

/// Parses an origin as browsers send it: `http://` or `https://`, a host in lower case, and perhaps a port.
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
    fn a_setting_is_written_as_it_is_read() {
        for setting in ["*", "https://a.example,http://[::1]:3000"] {
            assert_eq!(CorsOrigins::parse(setting).unwrap().to_string(), setting);
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
        let told: Vec<_> = CorsOrigins::any().preflight_headers().collect();
        assert_eq!(told[0], ("access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        assert_eq!(told[2], ("access-control-max-age", "86400"));
    }
}
