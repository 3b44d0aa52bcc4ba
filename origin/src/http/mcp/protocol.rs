//! Hands one message to `rmcp`, and turns the plain-text errors of `rmcp` into JSON-RPC errors.

use super::api::Agent;
use super::{INVALID_REQUEST, PARSE_ERROR};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::json;
use std::sync::Arc;

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANY_HOST: HeaderValue = HeaderValue::from_static("selkie");

pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

pub(super) async fn exchange(agent: &Agent, headers: &HeaderMap, message: Bytes) -> Reply {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // `pipeline` has limited the body. Each request has a key or token, so the header `Host` needs no check.
        .with_max_request_body_bytes(usize::MAX)
        .disable_allowed_hosts();
    let agent = agent.clone();
    let service =
        StreamableHttpService::new(move || Ok(agent.clone()), Arc::new(NeverSessionManager::default()), config);
    let mut request = Request::new(Full::new(message.clone()));
    *request.method_mut() = Method::POST;
    let own = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-"));
    request.headers_mut().extend(own.map(|(name, value)| (name.clone(), value.clone())));
    // `rmcp` requires these headers. `run` has checked the client's `Accept`; the other two have no effect here.
    for (name, value) in [(header::ACCEPT, BOTH), (header::CONTENT_TYPE, JSON), (header::HOST, ANY_HOST)] {
        request.headers_mut().insert(name, value);
    }
    let (parts, body) = service.handle(request).await.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
    if parts.status.is_success() || parts.headers.get(header::CONTENT_TYPE) == Some(&JSON) {
        return Reply { status: parts.status, body };
    }
    match parts.status {
        // `rmcp` answers with 415 if it can't parse the body.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => unreadable(&message),
        status if status.is_server_error() => refusal(status, INTERNAL_ERROR, "The message could not be answered."),
        status => refusal(status, INVALID_REQUEST, &String::from_utf8_lossy(&body)),
    }
}

const INTERNAL_ERROR: i32 = -32_603;

fn unreadable(message: &[u8]) -> Reply {
    let refused = |code, message: &str| refusal(StatusCode::BAD_REQUEST, code, message);
    match serde_json::from_slice::<IgnoredAny>(message) {
        Err(error) => refused(PARSE_ERROR, &format!("The body is not valid JSON: {error}.")),
        Ok(_) => refused(
            INVALID_REQUEST,
            "The body is not a JSON-RPC 2.0 message: an object with \"jsonrpc\": \"2.0\", \"method\", \"params\" if the \
             method has some, and \"id\" (a string or number) unless it is a notification.",
        ),
    }
}

pub(super) fn refusal(status: StatusCode, code: i32, message: &str) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    Reply { status, body: body.to_string().into() }
}

pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    let accept = super::super::header(headers, header::ACCEPT).unwrap_or_default().to_ascii_lowercase();
    let types: Vec<&str> = accept.split(',').map(|item| item.split(';').next().unwrap_or_default().trim()).collect();
    let has = |names: [&str; 3]| types.iter().any(|listed| names.contains(listed));
    has(["application/json", "application/*", "*/*"]) && has(["text/event-stream", "text/*", "*/*"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_accepts_json_and_event_streams() {
        for (accept, expected) in [
            ("application/json, text/event-stream", true),
            ("text/event-stream;q=0.5,Application/JSON", true),
            ("*/*", true),
            ("application/json, text/*", true),
            ("application/json", false),
            ("text/event-stream", false),
            ("text/html", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(accepts_both(&headers), expected, "{accept}");
        }
        assert!(!accepts_both(&HeaderMap::new()));
    }

    #[test]
    fn an_unreadable_message_is_no_json_or_no_message() {
        for (message, code) in [(&b"{"[..], "-32700"), (b"", "-32700"), (b"{}", "-32600"), (b"1", "-32600")] {
            let body = unreadable(message).body;
            assert!(String::from_utf8_lossy(&body).contains(code), "{message:?}");
        }
    }
}
