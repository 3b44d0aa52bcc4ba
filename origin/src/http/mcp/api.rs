//! Runs the API requests of an MCP request inside the process, through `pipeline`, like requests from the network: with
//! the caller's own authorization, logged, and bound by all limits and roles.

use super::super::media::cache_purge;
use super::super::request_metrics::RequestMetrics;
use super::super::{panicked, pipeline};
use super::ANSWER_MAX_BYTES;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::Value;
use shared::error::{ErrorCode, Problem};
use shared::limits::URL_MAX_BYTES;
use shared::media::{ACCEPTS_PURGE_HEADER, PURGE_HEADER};
use shared::operation::options::parse_whole;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Headers that are copied to each API request: credentials, address, trace, and whether the edge can purge its cache.
const PASSED_ON: [&str; 8] = [
    "authorization",
    "host",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "traceparent",
    ACCEPTS_PURGE_HEADER,
];

/// The version of the protocol that brought `structuredContent`. Versions are dates, so they sort as text.
const STRUCTURED_SINCE: &str = "2025-06-18";

#[derive(Debug, PartialEq)]
pub(super) struct ApiRequest {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: Option<Value>,
}

impl ApiRequest {
    pub(super) fn offset(&self) -> u64 {
        let number = |name: &str| match self.body.as_ref()?.get(name)? {
            Value::String(text) => parse_whole(text),
            other => parse_whole(&other.to_string()),
        };
        let before =
            number("page").zip(number("limit")).map(|(page, limit)| page.saturating_sub(1).saturating_mul(limit));
        number("offset").or(before).unwrap_or(0)
    }

    pub(super) fn get(target: String) -> Self {
        Self { method: Method::GET, target, body: None }
    }
}

pub(super) struct ApiAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    pub(super) extent: Truncation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truncation {
    Whole,
    Beginning,
}

#[derive(Clone)]
pub(super) struct Agent(Arc<AgentParts>);

struct AgentParts {
    app: Arc<ServiceState>,
    caller: Caller,
    headers: HeaderMap,
    takes_structured: bool,
    record: Arc<RequestMetrics>,
    purges: Mutex<Vec<HeaderValue>>,
    stop: CancellationToken,
}

impl Agent {
    pub(super) fn new(
        app: &Arc<ServiceState>,
        caller: &Caller,
        headers: &HeaderMap,
        record: &Arc<RequestMetrics>,
    ) -> Self {
        let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
        let takes_structured = version.is_some_and(|version| version >= STRUCTURED_SINCE);
        let passed_on = PASSED_ON.map(HeaderName::from_static);
        let headers = passed_on.into_iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
        Self(Arc::new(AgentParts {
            app: Arc::clone(app),
            caller: caller.clone(),
            headers: headers.collect(),
            takes_structured,
            record: Arc::clone(record),
            purges: Mutex::default(),
            stop: CancellationToken::new(),
        }))
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Whether the message's version of the protocol has `structuredContent`.
    pub(super) fn takes_structured(&self) -> bool {
        self.0.takes_structured
    }

    pub(super) fn request_id(&self) -> &str {
        self.0.record.id()
    }

    pub(super) fn stop_on_drop(&self) -> DropGuard {
        self.0.stop.clone().drop_guard()
    }

    pub(super) fn purge_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let purges = self.0.purges.lock().unwrap_or_else(PoisonError::into_inner);
        cache_purge::joined(&purges)
    }

    pub(super) async fn call(&self, request: ApiRequest) -> Result<ApiAnswer, Problem> {
        let stopped = || Problem::new(ErrorCode::InvalidRequest, "The client disconnected.");
        self.0.stop.run_until_cancelled(self.run(request)).await.unwrap_or_else(|| Err(stopped()))
    }

    async fn run(&self, request: ApiRequest) -> Result<ApiAnswer, Problem> {
        let request = self.request(request)?;
        let record = Arc::new(self.0.record.begin_inner(&request));
        // The type is erased: the pipeline's future contains the future of an MCP request and can't contain itself.
        let answered: BoxFuture<'_, _> = Box::pin(pipeline::answer(&self.0.app, &record, request));
        let outcome = AssertUnwindSafe(answered).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
        let response = outcome.unwrap_or_else(|problem| record.refuse(&problem));
        let response = record.finish(response);
        let purge = response.headers().get(PURGE_HEADER).cloned();
        self.0.purges.lock().unwrap_or_else(PoisonError::into_inner).extend(purge);
        read(response).await
    }

    fn request(&self, asked: ApiRequest) -> Result<Request, Problem> {
        if asked.target.len() > URL_MAX_BYTES {
            return Err(Problem::new(
                ErrorCode::UriTooLong,
                format!("id and options take more than {URL_MAX_BYTES} bytes in a URL."),
            )
            .with_hint("Find the record by `query` instead of `id`."));
        }
        let uri = Uri::try_from(asked.target);
        let uri = uri.map_err(|error| Problem::internal("The tool call makes no valid request.", error.to_string()))?;
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = self.0.headers.clone();
        *request.method_mut() = asked.method;
        *request.uri_mut() = uri;
        if let Some(body) = asked.body {
            *request.body_mut() = Body::from(body.to_string());
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        Ok(request)
    }
}

async fn read(response: Response) -> Result<ApiAnswer, Problem> {
    let (parts, mut content) = response.into_parts();
    let mut body = Vec::new();
    while let Some(frame) = content.frame().await {
        let frame = frame.map_err(|error| Problem::internal("The answer broke off.", error.to_string()))?;
        body.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if body.len() > ANSWER_MAX_BYTES {
            body.truncate(ANSWER_MAX_BYTES);
            return Ok(ApiAnswer { status: parts.status, body, extent: Truncation::Beginning });
        }
    }
    Ok(ApiAnswer { status: parts.status, body, extent: Truncation::Whole })
}
