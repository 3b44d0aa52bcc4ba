//! Counts requests and other events, and writes all metrics in the OpenMetrics format. The values of labels are never
//! texts that a caller chose, so that the number of series is bounded.

mod process;

use crate::changes::ChangesGauge;
use crate::database::admin::DeliveryState;
use crate::database::hosts::HostsGauge;
use crate::database::pool::PoolGauge;
use crate::histogram::Durations;
use crate::webhooks::WebhooksGauge;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use shared::error::ErrorCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    pub method: &'static str,
    pub route: &'static str,
    pub status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub labels: RequestLabels,
    /// The time from the head of the request to the end of the response.
    pub total: Duration,
    pub rows: u64,
    /// The number of bytes of the body; of a truncated body, of the bytes that were sent.
    pub bytes: u64,
    pub code: Option<ErrorCode>,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Durations>,
    errors: [AtomicU64; ErrorCode::ALL.len()],
    received: Counter,
    sent: Counter,
    rows: Counter,
    rate_limited: Counter,
    streams: Gauge,
}

#[derive(Clone, Debug, Default)]
pub struct Readings {
    pub pools: PoolGauge,
    pub hosts: HostsGauge,
    pub replicas: Option<HostsGauge>,
    /// The number of loads of schemas. A load of all tables of a database counts as one.
    pub schema_loads: u64,
    pub schema_cache_hits: u64,
    pub key_lookups: u64,
    pub key_cache_hits: u64,
    /// The number of statements that each answered several requests, which `shared_requests` counts.
    pub shared_statements: u64,
    pub shared_requests: u64,
    pub images_waiting: usize,
    pub images_running: usize,
    pub tus_uploads: usize,
    pub spans_sent: u64,
    pub spans_dropped: u64,
    pub prepared_xa: Option<usize>,
    pub changes: ChangesGauge,
    pub webhooks: WebhooksGauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::default(),
            errors: [const { AtomicU64::new(0) }; ErrorCode::ALL.len()],
            received: Counter::default(),
            sent: Counter::default(),
            rows: Counter::default(),
            rate_limited: Counter::default(),
            streams: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION")), ("arch", std::env::consts::ARCH)]);
        registry.register("selkie_build", "Version of the program", build);
        registry.register("selkie_http_requests", "Requests answered", metrics.requests.clone());
        let help = "Time from a request's head to its answer's last byte";
        registry.register("selkie_http_request_seconds", help, metrics.durations.clone());
        let help = "Bytes of request bodies received";
        registry.register("selkie_http_received_bytes", help, metrics.received.clone());
        registry.register("selkie_http_sent_bytes", "Bytes of answers' bodies sent", metrics.sent.clone());
        registry.register("selkie_rows", "Records read or written", metrics.rows.clone());
        let help = "Requests refused because their key made too many";
        registry.register("selkie_rate_limited", help, metrics.rate_limited.clone());
        registry.register("selkie_streams", "Answers that are being streamed", metrics.streams.clone());
        metrics
    }

    pub fn request(&self, ended: &Ended) {
        let labels = &ended.labels;
        self.requests.get_or_create(labels).inc();
        let route = RouteLabels { method: labels.method, route: labels.route };
        self.durations.get_or_create(&route).observe(ended.total);
        self.rows.inc_by(ended.rows);
        self.sent.inc_by(ended.bytes);
        if let Some(count) = ended.code.and_then(|code| self.errors.get(code as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn received(&self, bytes: usize) {
        self.received.inc_by(bytes as u64);
    }

    pub fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    pub fn stream(&self) -> StreamGuard {
        self.streams.inc();
        StreamGuard(self.streams.clone())
    }

    pub fn text(&self, readings: &Readings) -> String {
        let mut read_now = Registry::default();
        let counts = self.errors.iter().map(|count| count.load(Ordering::Relaxed));
        let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
        let errors = LabelledCounts { label: "code", counts: codes.zip(counts).collect() };
        read_now.register("selkie_errors", "Requests answered with an error, by its code", errors);
        readings.register(&mut read_now);
        process::register(&mut read_now);
        let mut text = String::new();
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &read_now);
        let _ = encode_eof(&mut text);
        text
    }
}

impl Readings {
    fn register(&self, registry: &mut Registry) {
        let (pools, changes, feed, webhooks) = (&self.pools, &self.changes, &self.changes.feed, &self.webhooks);
        let replicas_ready = self.replicas.as_ref().map_or(0, |replicas| replicas.well);
        let gauges = [
            ("selkie_pool_connections", "Open connections to MariaDB", pools.open),
            ("selkie_pool_in_use", "Connections that run a statement", pools.in_use),
            ("selkie_pool_waiting", "Requests that wait for a connection", pools.waiting),
            ("selkie_database_hosts_ready", "Hosts of database_url that may serve", self.hosts.well),
            ("selkie_database_replicas_ready", "Hosts of replica_url that answer reads", replicas_ready),
            ("selkie_images_waiting", "Uploaded images that wait for a decoder", self.images_waiting),
            ("selkie_images_running", "Uploaded images that are being decoded", self.images_running),
            ("selkie_tus_uploads", "Requests that are sending bytes of a resumable upload", self.tus_uploads),
            ("selkie_changes_reader_running", "Whether the binary log is being read", usize::from(feed.is_running)),
            ("selkie_changes_tables", "Tables whose changes are followed", feed.tables),
            ("selkie_changes_waiting", "Requests and streams that wait for changes", feed.waiters),
            ("selkie_changes_recent_bytes", "Bytes of recent transactions of followed tables", feed.recent_bytes),
            ("selkie_webhook_deliveries_running", "Deliveries that are being sent", webhooks.under_way as usize),
        ];
        for (name, help, value) in gauges {
            registry.register(name, help, ConstGauge::new(value as u64));
        }
        if let Some(count) = self.prepared_xa {
            let help = "XA transactions that MariaDB holds prepared: they keep their locks until somebody ends them";
            registry.register("selkie_prepared_xa_transactions", help, ConstGauge::new(count as u64));
        }
        if let Some(count) = webhooks.failing {
            let help = "Webhooks whose endpoints have failed for more than a day";
            registry.register("selkie_webhooks_failing", help, ConstGauge::new(count as u64));
        }
        if feed.committed_at > 0 {
            let age = crate::clock::now().saturating_sub(feed.committed_at.into());
            let help = "Time since the commit of the last transaction read from the binary log";
            registry.register("selkie_changes_last_commit_age_seconds", help, ConstGauge::new(age));
        }
        let counts = changes.resyncs.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        let resyncs = LabelledCounts { label: "reason", counts };
        registry.register("selkie_changes_resyncs", "Callers told to read their records again, by reason", resyncs);
        let counts = webhooks.attempted.iter().map(|(state, count)| (outcome(*state), *count)).collect();
        let deliveries = LabelledCounts { label: "outcome", counts };
        registry.register("selkie_webhook_deliveries", "Attempts to deliver changes, by outcome", deliveries);
        let counters = [
            ("selkie_database_failovers", "How often another database host took over", self.hosts.failovers),
            ("selkie_schema_loads", "Descriptions of tables read from MariaDB", self.schema_loads),
            ("selkie_schema_cache_hits", "Uses of a cached description of a table", self.schema_cache_hits),
            ("selkie_key_lookups", "Keys and tokens verified and looked up in MariaDB", self.key_lookups),
            ("selkie_key_cache_hits", "Requests whose key or token was cached", self.key_cache_hits),
            ("selkie_coalesced_statements", "Statements that answered several requests", self.shared_statements),
            ("selkie_coalesced_requests", "Requests answered by a statement with others", self.shared_requests),
            ("selkie_changes_transactions", "Transactions read from the binary log", feed.transactions),
            ("selkie_changes_pages", "Pages of changes sent, in streams too", changes.pages),
            ("selkie_changes_sent", "Changes sent", changes.sent),
            ("selkie_trace_spans_sent", "Spans that the collector has taken", self.spans_sent),
            ("selkie_trace_spans_dropped", "Spans lost: full queue, or failed collector", self.spans_dropped),
        ];
        for (name, help, value) in counters {
            registry.register(name, help, ConstCounter::new(value));
        }
        registry.register("selkie_pool_wait_seconds", "Wait for a connection to MariaDB", pools.waits.clone());
    }
}

fn outcome(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Waiting => "retried",
        state => state.as_str(),
    }
}

/// Counts by the values of a label, with 0 for what did not occur yet: so Prometheus sees the first as an increase.
#[derive(Debug)]
struct LabelledCounts {
    label: &'static str,
    counts: Vec<(&'static str, u64)>,
}

impl EncodeMetric for LabelledCounts {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (value, count) in &self.counts {
            let labels = [(self.label, *value)];
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

#[derive(Debug)]
pub struct StreamGuard(Gauge);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests;
