//! Collects the data of a request for the log, metrics, trace, response headers and activity. The log line contains no
//! value, no key's secret, and no name that a caller chose, except the project's and the ids of request and trace.

use super::respond;
use super::stream::StreamLimits;
use crate::activity::Answered;
use crate::database::run::StatementStats;
use crate::metrics::{Ended, RequestLabels, StreamGuard};
use crate::query::plan::access::Rights;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use crate::traces::EndedRequest;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use shared::error::{ErrorCode, Problem};
use shared::policy::Action;
use shared::rate::Allowance;
use shared::request_id::{self, RequestId};
use shared::request_log::RequestLog;
use shared::trace::{TRACEPARENT, TraceSpan};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static(request_id::HEADER);
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const POSITION: HeaderName = HeaderName::from_static("x-selkie-position");
/// Initial capacity in bytes, enough for durations of some minutes.
const TIMING_BYTES: usize = 48;

pub(super) struct RequestMetrics {
    app: Arc<ServiceState>,
    id: RequestId,
    log: RequestLog,
    trace: Option<TraceSpan>,
    /// True for an MCP request's first API request, since the MCP request itself was counted against the rate limit.
    is_counted: bool,
    has_begun_counted: AtomicBool,
    has_role: AtomicBool,
    /// Exact durations tell how much a statement read, so only a caller with full access may see them.
    has_full_access: AtomicBool,
    allowance: OnceLock<Allowance>,
    progress: Arc<StatementStats>,
    started: Instant,
}

impl RequestMetrics {
    pub(super) fn begin(app: Arc<ServiceState>, request: &Request) -> Self {
        let (trace, progress) = begin_trace(&app, request);
        let incoming = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
        Self {
            app,
            id: incoming.and_then(RequestId::from_incoming).unwrap_or_else(fresh_id),
            log: RequestLog::begin(request.method().as_str()),
            trace,
            is_counted: false,
            has_begun_counted: AtomicBool::new(false),
            has_role: AtomicBool::new(false),
            has_full_access: AtomicBool::new(false),
            allowance: OnceLock::new(),
            progress,
            started: Instant::now(),
        }
    }

    pub(super) fn begin_inner(&self, request: &Request) -> Self {
        let is_counted = !self.has_begun_counted.swap(true, Ordering::Relaxed);
        let trace = self.trace.as_ref().map(|trace| trace.child(fresh_span()));
        let progress = progress(&self.app, trace.as_ref());
        Self { id: self.id.clone(), trace, progress, is_counted, ..Self::begin(Arc::clone(&self.app), request) }
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_str()
    }

    pub(super) fn request_id(&self) -> &RequestId {
        &self.id
    }

    pub(super) fn log(&self) -> &RequestLog {
        &self.log
    }

    pub(super) fn refuse(&self, problem: &Problem) -> Response {
        self.log.refused(problem);
        respond::problem(problem, self.id())
    }

    pub(super) fn app(&self) -> &Arc<ServiceState> {
        &self.app
    }

    pub(super) fn caller(&self, caller: &Caller) {
        self.log.caller(Arc::clone(caller.principal()));
        self.has_role.store(caller.rights().role().is_some(), Ordering::Relaxed);
        self.has_full_access.store(matches!(caller.rights(), Rights::Full), Ordering::Relaxed);
    }

    pub(super) fn is_counted(&self) -> bool {
        self.is_counted
    }

    pub(super) fn allowance(&self, allowance: Allowance) {
        self.allowance.get_or_init(|| allowance);
    }

    pub(super) fn hide_from_role(&self, problem: Problem) -> Problem {
        match self.has_role.load(Ordering::Relaxed) {
            true => problem.without_database_message(),
            false => problem,
        }
    }

    pub(super) fn progress(&self) -> &Arc<StatementStats> {
        &self.progress
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn stream_file(&self) -> (StreamLimits, StreamGuard) {
        (StreamLimits::of_file(&self.app, self.id.clone()), self.app.metrics.stream())
    }

    /// Adds headers. Records the request at once if the body's length is known, otherwise when the body is dropped.
    pub(super) fn finish(self: Arc<Self>, mut response: Response) -> Response {
        let is_success = response.status().is_success();
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(self.id.as_str()) {
            headers.insert(REQUEST_ID, id);
        }
        if let Ok(timing) = HeaderValue::try_from(self.timing()) {
            headers.insert(SERVER_TIMING, timing);
        }
        let position = self.progress.position().and_then(|position| HeaderValue::try_from(position.to_string()).ok());
        if let Some(position) = position.filter(|_| is_success) {
            headers.insert(POSITION, position);
        }
        if let Some(allowance) = self.allowance.get() {
            for (name, value) in allowance.headers() {
                if let Ok(value) = HeaderValue::try_from(value) {
                    headers.insert(HeaderName::from_static(name), value);
                }
            }
        }
        let status = response.status().as_u16();
        let announced = response.headers().get(CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        match response.body().size_hint().exact() {
            Some(bytes) => {
                self.write(status, bytes, Ending::Whole);
                response
            }
            None => response.map(|body| {
                Body::new(LoggedBody { body, bytes: 0, announced, ending: Ending::Cut, status, record: self })
            }),
        }
    }

    /// Returns the timings, as `db;dur=0.31, origin;dur=0.42`, in whole milliseconds unless the caller has full access.
    fn timing(&self) -> String {
        let is_exact = self.has_full_access.load(Ordering::Relaxed);
        let push_millis = if is_exact { push_millis } else { push_whole_millis };
        let (db, total) = (self.progress.db_micros(), micros(self.started.elapsed()));
        let mut text = String::with_capacity(TIMING_BYTES);
        text.push_str("db;dur=");
        push_millis(&mut text, db);
        text.push_str(", origin;dur=");
        push_millis(&mut text, total);
        text
    }

    fn write(&self, status: u16, bytes: u64, ending: Ending) {
        let total = self.started.elapsed();
        let (rows, db_micros) = (self.progress.rows(), self.progress.db_micros());
        let (method, route) = (self.log.method(), self.log.route_name());
        let labels = RequestLabels { method, route, status };
        let code = self.log.code();
        self.app.metrics.request(&Ended { labels, total, rows, bytes, code });
        self.record_activity(status, bytes, ending, total);
        if let (Some(tracer), Some(span)) = (&self.app.tracer, self.trace)
            && let Some(steps) = self.progress.take_steps()
        {
            tracer.record(EndedRequest {
                span,
                started: self.started,
                ended: self.started + total,
                method,
                route,
                status,
                code: code.map(ErrorCode::as_str),
                id: self.id().to_owned(),
                project: self.log.project().map(str::to_owned),
                steps,
            });
        }
        let mut text = Uuid::encode_buffer();
        let key = self.log.key().map(|key| &*key.hyphenated().encode_lower(&mut text));
        tracing::info!(
            id = self.id.as_str(),
            method,
            route,
            status,
            code = code.map(ErrorCode::as_str),
            key,
            project = self.log.project(),
            rows,
            bytes,
            trace = self.trace.as_ref().map(TraceSpan::trace),
            span = self.trace.as_ref().map(TraceSpan::id),
            cut = (ending == Ending::Cut).then_some(true),
            db_us = db_micros,
            total_us = micros(total),
            "request"
        );
    }

    /// Adds the request to the activity of its project, unless the console repeats its route ([`Action::Observe`]).
    fn record_activity(&self, status: u16, bytes: u64, ending: Ending, total: Duration) {
        let route = self.log.route_name();
        let Some(project) = self.log.project().filter(|_| route != Action::Observe.route()) else {
            return;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let answered = Answered {
            at: u64::try_from(now.as_millis()).unwrap_or_default(),
            method: self.log.method(),
            route,
            status,
            code: self.log.code().map(ErrorCode::as_str),
            key: self.log.key(),
            rows: self.progress.rows(),
            bytes,
            cut: ending == Ending::Cut,
            db_micros: self.progress.db_micros(),
            total_micros: micros(total),
        };
        self.app.activity.record(project, self.id.as_str(), answered);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn push_whole_millis(text: &mut String, micros: u64) {
    text.push_str(itoa::Buffer::new().format((micros + 500) / 1000));
}

/// Appends milliseconds with two decimals. Written by hand: `format!` takes ten times as long.
fn push_millis(text: &mut String, micros: u64) {
    let hundredths = micros % 1000 / 10;
    text.push_str(itoa::Buffer::new().format(micros / 1000));
    text.push_str(if hundredths < 10 { ".0" } else { "." });
    text.push_str(itoa::Buffer::new().format(hundredths));
}

fn begin_trace(app: &ServiceState, request: &Request) -> (Option<TraceSpan>, Arc<StatementStats>) {
    let caller = request.headers().get(TRACEPARENT).and_then(|caller| caller.to_str().ok());
    let continued = caller.and_then(|caller| TraceSpan::continued(caller, fresh_span()));
    let begun = || {
        let id = fresh_span();
        let is_picked = app.tracer.as_ref().is_some_and(|tracer| tracer.should_sample(u64::from_ne_bytes(id)));
        is_picked.then(|| {
            let mut trace = [0; 16];
            trace[..8].copy_from_slice(&fresh_span());
            trace[8..].copy_from_slice(&fresh_span());
            TraceSpan::begin(trace, id)
        })
    };
    let trace = continued.or_else(|| app.tracer.as_ref().and_then(|_| begun()));
    (trace, progress(app, trace.as_ref()))
}

fn progress(app: &ServiceState, trace: Option<&TraceSpan>) -> Arc<StatementStats> {
    match trace {
        Some(trace) if app.tracer.is_some() && trace.is_sampled() => Arc::new(StatementStats::recorded()),
        _ => Arc::default(),
    }
}

/// Hashes a counter with random keys: the bytes differ between origins, but must not be used as a secret.
fn fresh() -> [u8; 10] {
    static KEY: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = &*KEY;
    let mut random = [0; 10];
    random[..2].copy_from_slice(&high.hash_one(count).to_le_bytes()[..2]);
    random[2..].copy_from_slice(&low.hash_one(count).to_le_bytes());
    random
}

fn fresh_span() -> [u8; 8] {
    let [_, _, id @ ..] = fresh();
    id
}

fn fresh_id() -> RequestId {
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RequestId::generate(u64::try_from(age.as_millis()).unwrap_or(0), &fresh())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    /// The body ended with an error, or its client disconnected.
    Cut,
}

struct LoggedBody {
    body: Body,
    bytes: u64,
    /// The `Content-Length`: hyper does not poll the body again after that many bytes.
    announced: Option<u64>,
    ending: Ending,
    status: u16,
    record: Arc<RequestMetrics>,
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.announced == Some(self.bytes) {
                    self.ending = Ending::Whole;
                }
            }
            Poll::Ready(None) => self.ending = Ending::Whole,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        self.record.write(self.status, self.bytes, self.ending);
    }
}
