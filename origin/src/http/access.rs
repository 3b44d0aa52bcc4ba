//! Decides which peers may call the origin, whose forwarding headers (such as `X-Forwarded-For`) are trusted, and which
//! websites may call (CORS).

use super::header;
use crate::config::AccessConfig;
use crate::system::edge_secret::EdgeSecret;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use ipnet::IpNet;
use shared::cors::{self, CorsOrigins};
use shared::error::{ErrorCode, Problem};
use shared::security::EDGE_SECRET_HEADER;
use std::net::IpAddr;

/// Process supervisors check this path, so any peer may request it.
const OPEN_PATH: &str = "/healthz";

const FORWARDING_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];
const EDGE_SECRET: HeaderName = HeaderName::from_static(EDGE_SECRET_HEADER);

#[derive(Clone, Debug)]
pub(super) struct OriginAccess {
    config: AccessConfig,
    networks: Vec<IpNet>,
    secret: EdgeSecret,
}

impl OriginAccess {
    pub(super) fn new(config: AccessConfig, networks: Vec<IpNet>, secret: EdgeSecret) -> Self {
        Self { config, networks, secret }
    }

    /// Refuses a peer without access. Removes the edge's secret, and an untrusted peer's forwarding headers.
    pub(super) fn check<B>(&self, request: &mut axum::http::Request<B>, peer: IpAddr) -> Result<(), Problem> {
        let is_open = request.uri().path() == OPEN_PATH;
        let headers = request.headers_mut();
        let is_known = self.is_edge(headers) || self.trusts(peer);
        headers.remove(EDGE_SECRET);
        // With open access and no trusted networks, false headers affect only the peer's own response.
        let trusts_headers = is_known || (self.config == AccessConfig::Open && self.networks.is_empty());
        if !trusts_headers {
            for name in FORWARDING_HEADERS {
                headers.remove(name);
            }
        }
        if is_known || is_open || self.config == AccessConfig::Open {
            return Ok(());
        }
        Err(Problem::new(
            ErrorCode::PermissionDenied,
            "This origin answers only its edge and the networks that it trusts.",
        )
        .with_hint(
            "Call the edge. If this came through it, its EDGE_SECRET is not what `selkie edge secret` prints; a network can \
             be added to trusted_networks.",
        ))
    }

    fn is_edge(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(EDGE_SECRET).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => self.secret.is(value.as_bytes()),
            _ => false,
        }
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        // A dual-stack socket reports IPv4 peers as ::ffff:a.b.c.d.
        let peer = peer.to_canonical();
        self.networks.iter().any(|network| network.contains(&peer))
    }
}

#[derive(Clone, Debug)]
pub(super) struct CrossOrigin {
    origins: CorsOrigins,
    /// Headers of responses to requests without `Origin`, or to all requests if any website may call.
    common: Vec<(HeaderName, HeaderValue)>,
    any: bool,
}

impl CrossOrigin {
    pub(super) fn new(origins: CorsOrigins) -> Self {
        Self { common: headers(&origins, None).collect(), any: origins == CorsOrigins::any(), origins }
    }

    pub(super) fn add_headers(&self, headers_of_answer: &mut HeaderMap, origin: Option<&str>) {
        match origin {
            Some(origin) if !self.any => {
                headers_of_answer.extend(headers(&self.origins, Some(origin)));
            }
            _ => {
                for (name, value) in &self.common {
                    headers_of_answer.append(name, value.clone());
                }
            }
        }
    }

    /// Refuses an MCP request of a web page whose origin is not allowed. Other paths and preflight requests pass.
    pub(super) fn check_page(&self, request: &Request) -> Result<(), Problem> {
        if self.preflight(request).is_some() {
            return Ok(());
        }
        self.origins.check_page(request.uri().path(), header(request.headers(), ORIGIN))
    }

    pub(super) fn preflight(&self, request: &Request) -> Option<Response> {
        let text = |name: HeaderName| header(request.headers(), name);
        let (origin, asked) = (text(ORIGIN), text(ACCESS_CONTROL_REQUEST_METHOD));
        if !cors::is_preflight(request.method().as_str(), origin, asked) {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        for (name, value) in self.origins.preflight_headers() {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }
}

fn headers(origins: &CorsOrigins, origin: Option<&str>) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    origins.answer_headers(origin).filter_map(|(name, value)| {
        let value = HeaderValue::from_str(value).ok()?;
        Some((HeaderName::from_static(name), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::networks;

    const STRANGER: &str = "203.0.113.9";

    fn secret(byte: u8) -> EdgeSecret {
        EdgeSecret::of([byte; 32])
    }

    fn access(config: AccessConfig, list: &str) -> OriginAccess {
        let networks = if list.is_empty() { Vec::new() } else { networks(list).unwrap() };
        OriginAccess::new(config, networks, secret(1))
    }

    /// Returns whether the request passes the check, and whether its forwarding headers are still there afterwards.
    fn asked(access: &OriginAccess, path: &str, peer: &str, secrets: &[&str]) -> (bool, bool) {
        let mut request = Request::builder().uri(path).header("x-forwarded-host", "a.example");
        for secret in secrets {
            request = request.header(EDGE_SECRET_HEADER, *secret);
        }
        let mut request = request.body(()).unwrap();
        let allowed = access.check(&mut request, peer.parse().unwrap()).is_ok();
        assert!(!request.headers().contains_key(EDGE_SECRET_HEADER));
        (allowed, request.headers().contains_key("x-forwarded-host"))
    }

    #[test]
    fn a_guarded_origin_lets_in_its_edge_and_its_networks() {
        let access = access(AccessConfig::Restricted, "10.1.0.0/16, fd00::/8,192.0.2.7");
        let (right, wrong) = (secret(1), secret(2));
        for (peer, secrets, known) in [
            (STRANGER, &[][..], false),
            (STRANGER, &[right.text()], true),
            (STRANGER, &[wrong.text()], false),
            (STRANGER, &[""], false),
            (STRANGER, &[&right.text()[1..]], false),
            (STRANGER, &[right.text(), right.text()], false),
            (STRANGER, &[wrong.text(), right.text()], false),
            ("10.1.2.3", &[], true),
            ("10.2.2.3", &[], false),
            ("::ffff:10.1.2.3", &[], true),
            ("fd00::1", &[], true),
            ("192.0.2.7", &[], true),
            ("192.0.2.8", &[], false),
        ] {
            let outcome = asked(&access, "/api/v1/sql", peer, secrets);
            assert_eq!(outcome, (known, known), "{peer} {}", secrets.len());
            assert!(asked(&access, "/healthz", peer, secrets).0, "{peer}");
        }
    }

    #[test]
    fn an_open_origin_believes_everybody_until_it_is_told_whom() {
        let open = access(AccessConfig::Open, "");
        assert_eq!(asked(&open, "/", STRANGER, &[]), (true, true));
        let told = access(AccessConfig::Open, "10.0.0.0/8");
        assert_eq!(asked(&told, "/", STRANGER, &[]), (true, false));
        assert_eq!(asked(&told, "/", "10.0.0.1", &[]), (true, true));
        assert_eq!(asked(&told, "/", STRANGER, &[secret(1).text()]), (true, true));
    }

    #[test]
    fn the_secret_shows_itself_to_nobody() {
        let access = access(AccessConfig::Restricted, "");
        assert!(!format!("{access:?}").contains(secret(1).text()));
    }
}
