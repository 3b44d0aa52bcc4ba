//! Sends spans of requests to a collector by OTLP (HTTP, protobuf). A request never waits for the collector: if the
//! queue of ended requests is full, their spans are dropped and counted.

use crate::config::OtlpConfig;
use crate::database::run::{Step, StepKind};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use shared::trace::TraceSpan;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The maximum number of requests in the queue, which then takes about 10 MB: each has up to
/// [`STEPS_MAX_COUNT`](crate::database::run::STEPS_MAX_COUNT) steps.
pub const QUEUE_MAX_COUNT: usize = 2_048;

const BATCH_MAX_COUNT: usize = 512;

const COLLECT_TIME: Duration = Duration::from_millis(500);

/// The time limit for sending a batch, whose spans are then dropped.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

const LAST_SEND_TIMEOUT: Duration = Duration::from_secs(2);

const WARN_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Tracer {
    queue: mpsc::Sender<EndedRequest>,
    /// The share of requests without a `traceparent` that are recorded, scaled to 0–`u64::MAX`.
    share: u64,
    counts: Arc<SpanCounts>,
}

#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    #[error("the HTTP client for traces can't be built: {0}")]
    Client(#[from] reqwest::Error),
    #[error("traces can't be sent: {0}")]
    Exporter(#[from] ExporterBuildError),
}

#[derive(Debug, Default)]
pub struct SpanCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// A request's spans. Contains no values of records, no API key and no SQL.
#[derive(Debug)]
pub struct EndedRequest {
    pub span: TraceSpan,
    pub started: Instant,
    pub ended: Instant,
    pub method: &'static str,
    pub route: &'static str,
    pub status: u16,
    pub code: Option<&'static str>,
    pub id: String,
    pub project: Option<String>,
    pub steps: Vec<Step>,
}

pub struct Sender {
    queue: mpsc::Receiver<EndedRequest>,
    exporter: SpanExporter,
    endpoint: String,
    counts: Arc<SpanCounts>,
    ids: RandomState,
    warned_at: Option<Instant>,
}

impl Tracer {
    /// Opens a tracer. The sender must be run in a task.
    pub fn open(config: &OtlpConfig) -> Result<(Self, Sender), TracerError> {
        // The client needs a process-wide crypto provider. An error means that the process has installed one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let client = client?;
        let endpoint = config.traces_url();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint)
            .with_timeout(SEND_TIMEOUT)
            .with_headers(config.headers())
            .build()?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder_empty().with_service_name("selkie").with_attribute(version);
        exporter.set_resource(&resource.with_detector(Box::new(EnvResourceDetector::new())).build());
        let (sender, queue) = mpsc::channel(QUEUE_MAX_COUNT);
        let counts = Arc::<SpanCounts>::default();
        let tracer = Self { queue: sender, share: config.share_of_max(), counts: Arc::clone(&counts) };
        Ok((tracer, Sender { queue, exporter, endpoint, counts, ids: RandomState::new(), warned_at: None }))
    }

    /// Returns whether to record a request. `random` must be a new, uniformly distributed number for each request.
    pub fn should_sample(&self, random: u64) -> bool {
        random <= self.share && self.share > 0
    }

    pub fn record(&self, request: EndedRequest) {
        if let Err(refused) = self.queue.try_send(request) {
            self.counts.dropped.fetch_add(spans_of(&refused.into_inner()), Ordering::Relaxed);
        }
    }

    pub fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Ordering::Relaxed), self.counts.dropped.load(Ordering::Relaxed))
    }
}

fn spans_of(request: &EndedRequest) -> u64 {
    1 + request.steps.len() as u64
}

impl Sender {
    /// Sends batches until `stop`. Then a batch in flight gets 2 seconds, and at most one last batch is sent.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX_COUNT);
        loop {
            let got = tokio::select! {
                () = stop.cancelled() => break,
                got = self.queue.recv_many(&mut batch, BATCH_MAX_COUNT) => got,
            };
            if got == 0 {
                return;
            }
            if batch.len() < BATCH_MAX_COUNT {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(COLLECT_TIME) => {}
                }
                self.take_waiting(&mut batch);
            }
            tokio::select! {
                () = self.send(&mut batch, SEND_TIMEOUT) => {}
                () = async { stop.cancelled().await; tokio::time::sleep(LAST_SEND_TIMEOUT).await } => return,
            }
        }
        self.take_waiting(&mut batch);
        self.send(&mut batch, LAST_SEND_TIMEOUT).await;
    }

    fn take_waiting(&mut self, batch: &mut Vec<EndedRequest>) {
        while batch.len() < BATCH_MAX_COUNT
            && let Ok(request) = self.queue.try_recv()
        {
            batch.push(request);
        }
    }

    async fn send(&mut self, batch: &mut Vec<EndedRequest>, limit: Duration) {
        if batch.is_empty() {
            return;
        }
        let (now, at) = (SystemTime::now(), Instant::now());
        let time = |instant: Instant| now.checked_sub(at.saturating_duration_since(instant)).unwrap_or(now);
        let spans: Vec<SpanData> = batch.drain(..).flat_map(|request| self.spans(request, time)).collect();
        let count = spans.len() as u64;
        let fault = match tokio::time::timeout(limit, self.exporter.export(spans)).await {
            Ok(Ok(())) => {
                self.counts.sent.fetch_add(count, Ordering::Relaxed);
                return;
            }
            // The address is not logged, because its path may contain a secret of the collector.
            Ok(Err(error)) => error.to_string().replace(&self.endpoint, "the address"),
            Err(_) => "it did not answer in time".to_owned(),
        };
        self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            self.warned_at = Some(Instant::now());
            tracing::warn!(error = fault, spans = count, "the collector did not take the spans (otlp_endpoint)");
        }
    }

    fn spans(&self, request: EndedRequest, time: impl Fn(Instant) -> SystemTime) -> Vec<SpanData> {
        let EndedRequest { span, started, ended, method, route, status, code, id, project, steps } = request;
        let own = id_of(span.id());
        let context = |id| {
            let trace = TraceId::from_hex(span.trace()).unwrap_or(TraceId::INVALID);
            SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE)
        };
        let data = |id, parent, kind, name, started, ended, attributes| SpanData {
            span_context: context(id),
            parent_span_id: parent,
            parent_span_is_remote: id == own,
            span_kind: kind,
            name,
            start_time: time(started),
            end_time: time(ended),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("selkie").build(),
        };
        let mut attributes = vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route),
            KeyValue::new("http.response.status_code", i64::from(status)),
            KeyValue::new("selkie.request_id", id),
        ];
        attributes.extend(code.map(|code| KeyValue::new("error.type", code)));
        attributes.extend(project.map(|project| KeyValue::new("selkie.project", project)));
        let name = format!("{method} {route}").into();
        let mut whole = data(own, id_of(span.parent()), SpanKind::Server, name, started, ended, attributes);
        if status >= 500 {
            whole.status = Status::error(code.unwrap_or_default());
        }
        let steps = steps.into_iter().enumerate().map(|(number, step)| {
            let child = SpanId::from_bytes((self.ids.hash_one((span.id(), number)) | 1).to_be_bytes());
            let (kind, name, attributes) = match step.kind {
                StepKind::Media(name) => (SpanKind::Internal, name.into(), Vec::new()),
                StepKind::Statement(operation, table) => {
                    let mut attributes =
                        vec![KeyValue::new("db.system.name", "mariadb"), KeyValue::new("db.operation.name", operation)];
                    let name = match table {
                        None => operation.into(),
                        Some(path) => {
                            attributes.push(KeyValue::new("db.namespace", path.database.as_str().to_owned()));
                            attributes.push(KeyValue::new("db.collection.name", path.table.as_str().to_owned()));
                            format!("{operation} {}", path.table.as_str()).into()
                        }
                    };
                    (SpanKind::Client, name, attributes)
                }
            };
            data(child, own, kind, name, step.started, step.ended, attributes)
        });
        let steps: Vec<SpanData> = steps.collect();
        [whole].into_iter().chain(steps).collect()
    }
}

fn id_of(digits: &str) -> SpanId {
    SpanId::from_hex(digits).unwrap_or(SpanId::INVALID)
}
