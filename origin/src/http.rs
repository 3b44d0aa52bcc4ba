//! The HTTP server. `pipeline` has the routes, and shows how an API request is handled.

mod access;
mod batch;
mod body;
mod changes;
mod compression;
mod description;
mod files;
mod health;
mod held;
mod idempotency;
mod links;
mod listing;
mod management;
mod mcp;
pub mod media;
mod pages;
mod pipeline;
mod records;
mod request_context;
mod request_metrics;
mod respond;
mod schema;
pub mod server;
mod sql;
mod stream;
mod tus;
pub mod webhooks;

use crate::config::Config;
use crate::service_state::ServiceState;
use access::{CrossOrigin, OriginAccess};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AsHeaderName, CONNECTION, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::response::Response;
use body::ReceivedBody;
use futures_util::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use request_metrics::RequestMetrics;
use shared::error::Problem;
use shared::media::FilePath;
use shared::operation::{route, tus as protocol};
use shared::request::{check_headers, check_url, resolve_dot_segments};
use std::any::Any;
use std::borrow::Cow;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct HttpService {
    app: Arc<ServiceState>,
    access: OriginAccess,
    cors: CrossOrigin,
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

impl HttpService {
    fn new(app: Arc<ServiceState>, config: &Config) -> Self {
        let secret = app.edge_secret.clone();
        Self {
            access: OriginAccess::new(config.access, config.trusted_networks.clone(), secret),
            cors: CrossOrigin::new(config.cors_origins.clone()),
            app,
        }
    }

    /// Responds to one request. `peer` is the address of the client, or of the proxy that opened the connection.
    async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: IpAddr, transport: Transport) -> Response {
        let is_expecting = body::is_expecting(request.version(), request.headers());
        let is_unread = (is_expecting && !request.body().is_end_stream()).then(|| Arc::new(AtomicBool::new(true)));
        // Most requests have no body; `Body::empty()` needs no allocation.
        let mut request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(ReceivedBody { body, app: Arc::clone(&self.app), is_unread: is_unread.clone() }),
        });
        resolve_path(&mut request);
        join_values(request.headers_mut());
        let metrics = Arc::new(RequestMetrics::begin(Arc::clone(&self.app), &request));
        let origin = header(request.headers(), ORIGIN).map(str::to_owned);
        let path = request.uri().path();
        let has_own_headers = path.starts_with(FilePath::PREFIX) || path == "/" || route::page(path).is_some();
        let upload = protocol::is_at(path).then(|| path.to_owned());
        let wants_body = request.method() != Method::HEAD;
        let allowed = self.access.check(&mut request, peer);
        transport.set_forwarded_proto(request.headers_mut());
        let checked = allowed.and_then(|()| check(&request)).and_then(|()| self.cors.check_page(&request));
        let outcome = match checked {
            Ok(()) => match self.cors.preflight(&request) {
                Some(preflight) => Ok(preflight),
                None => {
                    let answered = AssertUnwindSafe(Box::pin(pipeline::route(&self.app, &metrics, request)));
                    answered.catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
                }
            },
            Err(problem) => {
                let (parts, content) = request.into_parts();
                body::drain(content, &parts);
                Err(problem)
            }
        };
        let mut response = outcome.unwrap_or_else(|problem| metrics.refuse(&problem));
        if !wants_body {
            response = respond::head(response);
        }
        if let Some(path) = upload {
            tus::add_headers(&path, &mut response);
        }
        // The client may or may not send a body that was never read, so hyper must close the connection.
        if is_unread.is_some_and(|is_unread| is_unread.load(Ordering::Relaxed)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        respond::add_security_headers(&mut response, has_own_headers);
        self.cors.add_headers(response.headers_mut(), origin.as_deref());
        metrics.finish(response)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Plain,
    Tls,
}

impl Transport {
    /// Sets `X-Forwarded-Proto` to `https` for a TLS connection, unless a trusted proxy has set it.
    fn set_forwarded_proto(self, headers: &mut HeaderMap) {
        if self == Self::Tls {
            headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("https"));
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Problem {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Problem::internal(
        "Something went wrong in the service itself.",
        format!("a panic: {}", text.unwrap_or("of unknown kind")),
    )
}

fn resolve_path(request: &mut Request) {
    let uri = request.uri();
    let Cow::Owned(path) = resolve_dot_segments(uri.path()) else {
        return;
    };
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    if let Ok(uri) = Uri::try_from(target) {
        *request.uri_mut() = uri;
    }
}

fn check(request: &Request) -> Result<(), Problem> {
    let uri = request.uri();
    check_url(uri.path(), uri.query())?;
    let headers = request.headers();
    check_headers(|| {
        let headers = headers.iter();
        headers.map(|(name, value)| (name.as_str(), value.as_bytes()))
    })
}

/// Joins the values of a repeated header, as Cloudflare's runtime does before the edge sees the headers.
fn join_values(headers: &mut HeaderMap) {
    if headers.len() == headers.keys_len() {
        return;
    }
    let several = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    let names: Vec<HeaderName> = headers.keys().filter(several).cloned().collect();
    for name in names {
        let values: Vec<_> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&values.join(&b", "[..])) {
            headers.insert(name, joined);
        }
    }
}

/// Returns the header's value, or U+FFFD (which no valid value contains) if it is not visible ASCII.
fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let value = headers.get(name)?;
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_bytes<F: Future>(_: impl FnOnce(Arc<HttpService>, Request<Incoming>, IpAddr, Transport) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn headers_read_as_at_the_edge() {
        for (values, expected) in
            [(&[][..], None), (&[&b"a"[..]], Some("a")), (&[b"a", b"b"], Some("a, b")), (&[b"\xff"], Some("\u{fffd}"))]
        {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ORIGIN, HeaderValue::from_bytes(value).unwrap());
            }
            join_values(&mut headers);
            assert_eq!(header(&headers, ORIGIN), expected);
        }
    }

    /// Limits the size of the future that is allocated and moved for each request: see CONTRIBUTING.md, "Futures".
    #[test]
    fn the_future_of_an_answer_stays_small() {
        let bytes = future_bytes(HttpService::answer);
        assert!(bytes <= 6 * 1024, "{bytes} bytes");
    }
}
