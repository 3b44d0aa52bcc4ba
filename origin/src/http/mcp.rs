//! `POST /mcp`: the Model Context Protocol, by the crate `rmcp`. No message needs a session, so that any origin can
//! answer it. Tool calls become API requests of the same caller (`api`), which `pipeline` admits, checks and logs. This
//! module must not access tables or check rights itself.

mod api;
mod arguments;
mod cut;
mod listing;
mod protocol;
mod resources;
mod server;
mod tools;

use super::body::CountedBody;
use super::held;
use super::request_metrics::RequestMetrics;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use api::Agent;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use protocol::{Reply, refusal};
use serde_json::value::RawValue;
use shared::error::{CODE_HEADER, ErrorCode, Problem};
use std::sync::Arc;

/// Maximum size of a tool's result: some 60,000 tokens, more than most models read at once.
const ANSWER_MAX_BYTES: usize = 256 * 1024;

/// Maximum messages of a batch: their responses are held in memory until the last message is handled.
const BATCH_MAX_COUNT: usize = 16;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

pub(super) async fn run(
    app: &Arc<ServiceState>,
    caller: &Caller,
    parts: &Parts,
    body: &CountedBody,
    record: &Arc<RequestMetrics>,
) -> Result<Response, Problem> {
    let agent = Agent::new(app, caller, &parts.headers, record);
    // Cancels the API requests when the client disconnects.
    let _stop = agent.stop_on_drop();
    let reply = if !protocol::accepts_both(&parts.headers) {
        let message = "The header Accept must list both application/json and text/event-stream.";
        refusal(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, message)
    } else if body.bytes().trim_ascii_start().starts_with(b"[") {
        let _answers = held::take(app, caller, (BATCH_MAX_COUNT * ANSWER_MAX_BYTES) as u64)?;
        batch(&agent, parts, body.bytes()).await
    } else {
        protocol::exchange(&agent, &parts.headers, body.share()).await
    };
    let mut failed = None;
    if reply.status.is_client_error() || reply.status.is_server_error() {
        // The message itself was refused. The body keeps its JSON-RPC error; this problem is only for the request's
        // record and for the header with the code.
        let problem = match reply.status.is_server_error() {
            true => Problem::internal("The message could not be answered.", format!("rmcp answered {}", reply.status)),
            false => Problem::new(ErrorCode::InvalidRequest, "The protocol refuses the message."),
        };
        let code = record.refuse(&problem).headers_mut().remove(CODE_HEADER);
        failed = code.map(|code| (HeaderName::from_static(CODE_HEADER), code));
    }
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.extend(failed);
    headers.extend(agent.purge_header());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if reply.status != StatusCode::ACCEPTED {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(response)
}

async fn batch(agent: &Agent, parts: &Parts, body: &[u8]) -> Reply {
    let refused = |code, message: &str| refusal(StatusCode::BAD_REQUEST, code, message);
    let version = parts.headers.get("mcp-protocol-version");
    if version.is_some_and(|version| version != "2025-03-26") {
        let message = "Only protocol version 2025-03-26 has batches: send each message in a request of its own.";
        return refused(INVALID_REQUEST, message);
    }
    let messages: Vec<&RawValue> = match serde_json::from_slice(body) {
        Ok(messages) => messages,
        Err(error) => return refused(PARSE_ERROR, &format!("The body is not valid JSON: {error}.")),
    };
    if messages.is_empty() || messages.len() > BATCH_MAX_COUNT {
        return refused(INVALID_REQUEST, &format!("A batch has between 1 and {BATCH_MAX_COUNT} messages."));
    }
    let mut answers = Vec::new();
    for message in messages {
        let message = Bytes::copy_from_slice(message.get().as_bytes());
        let reply = protocol::exchange(agent, &parts.headers, message).await;
        if !reply.body.is_empty() {
            answers.push(reply.body);
        }
    }
    if answers.is_empty() {
        return Reply { status: StatusCode::ACCEPTED, body: Bytes::new() };
    }
    let body = [b"[", &*answers.join(&b","[..]), b"]"].concat();
    Reply { status: StatusCode::OK, body: body.into() }
}
