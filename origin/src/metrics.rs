//! Counters and gauges, and their text in Prometheus' format.

use crate::database::hosts::HostsGauge;
use crate::database::pool::PoolGauge;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Upper bounds of the latency histogram's buckets, in seconds.
const LATENCY_BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The labels of a request in the metrics. Each label has a bounded number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// HTTP method; `OTHER` for an unknown one.
    pub method: &'static str,
    /// The route's pattern, such as `/media/{project}/{path}`.
    pub route: &'static str,
    pub status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: &'static str,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram>,
    rows: Counter,
    rate_limited: Counter,
    streams: Gauge,
    pool_open: Gauge,
    pool_in_use: Gauge,
    pool_waiting: Gauge,
    schema_loads: Counter,
    prepared_xa: Gauge,
    hosts_ready: Gauge,
    replicas_ready: Gauge,
    failovers: Counter,
}

/// Values that other modules count. They are read at each scrape of the metrics.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    pub pools: PoolGauge,
    /// The hosts of `database_url`.
    pub hosts: HostsGauge,
    /// The hosts of `replica_url`; `None` without replicas.
    pub replicas: Option<HostsGauge>,
    /// Number of times that a table's schema was read from MariaDB since the start.
    pub schema_loads: u64,
    /// Number of prepared XA transactions in MariaDB; `None` if MariaDB did not answer.
    pub prepared_xa: Option<usize>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("selkie");
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS)),
            rows: Counter::default(),
            rate_limited: Counter::default(),
            streams: Gauge::default(),
            pool_open: Gauge::default(),
            pool_in_use: Gauge::default(),
            pool_waiting: Gauge::default(),
            schema_loads: Counter::default(),
            prepared_xa: Gauge::default(),
            hosts_ready: Gauge::default(),
            replicas_ready: Gauge::default(),
            failovers: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register(
            "http_request_seconds",
            "Time from a request's head to its answer's last byte",
            metrics.seconds.clone(),
        );
        registry.register("rows", "Rows read or written", metrics.rows.clone());
        registry.register(
            "rate_limited",
            "Requests refused because their key made too many",
            metrics.rate_limited.clone(),
        );
        registry.register("streams", "Answers that are being streamed", metrics.streams.clone());
        registry.register("pool_connections", "Open connections to MariaDB", metrics.pool_open.clone());
        registry.register("pool_in_use", "Connections that run a statement", metrics.pool_in_use.clone());
        registry.register("pool_waiting", "Requests that wait for a connection", metrics.pool_waiting.clone());
        registry.register("schema_loads", "Descriptions of tables read from MariaDB", metrics.schema_loads.clone());
        registry.register(
            "prepared_xa_transactions",
            "XA transactions that MariaDB holds prepared: they keep their locks until somebody ends them",
            metrics.prepared_xa.clone(),
        );
        registry.register("database_hosts_ready", "Hosts of database_url that may serve", metrics.hosts_ready.clone());
        registry.register(
            "database_replicas_ready",
            "Hosts of replica_url that answer reads",
            metrics.replicas_ready.clone(),
        );
        registry.register("database_failovers", "How often another database host took over", metrics.failovers.clone());
        Self { registry, ..metrics }
    }

    pub fn request(&self, labels: RequestLabels, total: Duration, rows: u64) {
        let route = RouteLabels { method: labels.method, route: labels.route };
        self.requests.get_or_create(&labels).inc();
        self.seconds.get_or_create(&route).observe(total.as_secs_f64());
        self.rows.inc_by(rows);
    }

    /// Counts a request refused by a rate limit.
    pub fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// Increments the gauge of running streamed responses until the guard is dropped.
    #[must_use]
    pub fn stream(&self) -> StreamGuard {
        self.streams.inc();
        StreamGuard(self.streams.clone())
    }

    #[must_use]
    pub fn text(&self, readings: Readings) -> String {
        let pools = readings.pools;
        let gauge = |gauge: &Gauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        gauge(&self.pool_open, pools.open);
        gauge(&self.pool_in_use, pools.in_use);
        gauge(&self.pool_waiting, pools.waiting);
        gauge(&self.hosts_ready, readings.hosts.well);
        gauge(&self.replicas_ready, readings.replicas.map_or(0, |replicas| replicas.well));
        self.failovers.inner().store(readings.hosts.failovers, Ordering::Relaxed);
        if let Some(count) = readings.prepared_xa {
            gauge(&self.prepared_xa, count);
        }
        self.schema_loads.inner().store(readings.schema_loads, Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Decrements the gauge of running streamed responses on drop.
#[derive(Debug)]
pub struct StreamGuard(Gauge);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
