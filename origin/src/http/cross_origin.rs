//! CORS: preflight responses, and the CORS headers of all responses.

use super::header;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use shared::cors::{self, CorsOrigins};
use shared::error::Problem;

#[derive(Clone, Debug)]
pub(super) struct CrossOrigin {
    origins: CorsOrigins,
    /// Headers for requests without `Origin`, or for all requests if any website may call.
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

    /// A web page that calls MCP must have an allowed origin. Other paths and preflight requests pass.
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
