//! Determines the base URL of links in a response: from the configuration, or else from the request's headers.

use crate::config::BaseUrl;
use crate::media::url::Links;
use crate::service_state::ServiceState;
use axum::http::header::HOST;
use axum::http::request::Parts;

pub(super) fn links(app: &ServiceState, request: &Parts) -> Links {
    let configured = app.public_url.clone();
    Links::new(configured.or_else(|| base_of(request)))
}

/// Derives the base URL from the request's headers. A client that sends false headers affects only its own response.
fn base_of(request: &Parts) -> Option<BaseUrl> {
    let header = |name: &str| {
        let text = request.headers.get(name)?.to_str().ok()?;
        // The first entry of the list was added by the proxy nearest to the client.
        Some(text.split(',').next().unwrap_or_default().trim())
    };
    let scheme = header("x-forwarded-proto").unwrap_or("http");
    let asked = || request.uri.authority().map(|authority| authority.as_str());
    let host = header("x-forwarded-host").or_else(|| header(HOST.as_str())).or_else(asked)?;
    BaseUrl::from_parts(scheme, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = axum::http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        base_of(&parts).map(|base| base.as_str().to_owned())
    }

    #[test]
    fn the_proxy_is_asked_first_then_the_request() {
        let proxy = ("x-forwarded-host", "api.example.com");
        for (uri, headers, expected) in [
            ("/", &[("host", "a:8080")][..], Some("http://a:8080")),
            ("/", &[("host", "a:8080"), proxy], Some("http://api.example.com")),
            ("/", &[proxy, ("x-forwarded-proto", "https")], Some("https://api.example.com")),
            ("/", &[("x-forwarded-host", "one.example, two.example")], Some("http://one.example")),
            ("http://authority:1/", &[], Some("http://authority:1")),
            ("/", &[], None),
            ("/", &[("host", "a/b")], None),
            ("/", &[("host", "a"), ("x-forwarded-host", "x\"><script>")], None),
            ("/", &[("host", "a"), ("x-forwarded-proto", "javascript")], None),
        ] {
            assert_eq!(base(uri, headers).as_deref(), expected, "{uri} {headers:?}");
        }
    }
}
