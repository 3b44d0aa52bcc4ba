//! Measures webhooks: the time from a commit to the first attempt, and the deliveries a second.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use axum::{Router, body::Bytes, http::StatusCode};
use mysql_async::prelude::Queryable as _;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::AbortHandle,
    time::{interval, timeout},
};

use super::{
    ARRIVAL, Figure, quantiles,
    reader::key,
    subject::{ORDER, Subject},
};
use crate::{
    data,
    http::Connection,
    report::Bound::{AtLeast, AtMost},
};

/// Enough that the limit of deliveries under way is reached.
const WEBHOOKS: usize = 64;

/// An endpoint that answers 204 to a delivery that `takes` accepts, and 503 to others.
pub(super) struct Endpoint {
    pub(super) url: String,
    task: AbortHandle,
}

#[derive(Default)]
struct Received {
    deliveries: AtomicUsize,
    changes: AtomicUsize,
    /// When the first delivery of a record's change came, by the record's key.
    times: Mutex<HashMap<usize, Instant>>,
}

impl Endpoint {
    pub(super) async fn start(takes: impl Fn(&str) -> bool + Clone + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let answer = move |body: Bytes| {
            let is_taken = takes(std::str::from_utf8(&body).unwrap_or_default());
            async move { if is_taken { StatusCode::NO_CONTENT } else { StatusCode::SERVICE_UNAVAILABLE } }
        };
        let router = Router::new().fallback(answer);
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, task: task.abort_handle() })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Received {
    async fn endpoint() -> Result<(Endpoint, Arc<Self>)> {
        let received = Arc::<Self>::default();
        let of_endpoint = Arc::clone(&received);
        Ok((Endpoint::start(move |body| of_endpoint.take(body)).await?, received))
    }

    fn take(&self, body: &str) -> bool {
        let now = Instant::now();
        self.deliveries.fetch_add(1, Relaxed);
        if let Ok(mut times) = self.times.lock() {
            for change in body.split(r#"{"type":"#).skip(1) {
                self.changes.fetch_add(1, Relaxed);
                if let Some(key) = key(change.as_bytes()) {
                    times.entry(key).or_insert(now);
                }
            }
        }
        true
    }
}

pub(super) async fn make(on: &Subject, name: &str, url: &str, query: Value) -> Result<()> {
    let subscriptions = json!([{"database": data::DATABASE, "table": "orders", "query": query}]);
    let body = json!({"name": name, "url": url, "subscriptions": subscriptions});
    let (body, requests) = (body.to_string(), &on.endpoint.requests);
    let request = format!(
        "POST /api/v1/webhooks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        requests.host,
        requests.key,
        body.len()
    );
    let (status, answer) = Connection::open(on.endpoint.address).await?.fetch(request.as_bytes()).await?;
    ensure!(status == 200, "{}", String::from_utf8_lossy(&answer));
    Ok(())
}

pub(super) async fn webhooks(on: &Subject, count: usize, seconds: usize) -> Result<Vec<Figure>> {
    let mut figures = latency(on, count).await?;
    figures.extend(rate(on, seconds).await?);
    Ok(figures)
}

/// One webhook, and 1,000 inserts of one row a second.
async fn latency(on: &Subject, count: usize) -> Result<Vec<Figure>> {
    const PER_SECOND: usize = 1_000;
    let (endpoint, received) = Received::endpoint().await?;
    make(on, "latency", &endpoint.url, json!({})).await?;
    let before = Arc::new(Mutex::new(HashMap::new()));
    let befores = Arc::clone(&before);
    let note = move |key: usize, before: Instant, _: Instant| {
        if let Ok(mut befores) = befores.lock() {
            befores.insert(key, before);
        }
    };
    let inserted = on.insert_at(PER_SECOND, 1..count + 1, note).await?;
    let arrived = async {
        while received.changes.load(Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(ARRIVAL, arrived).await.context("changes are missing")?;
    let (before, times) = (before.lock().ok().context("a lock")?, received.times.lock().ok().context("a lock")?);
    let passed = |id: &usize| {
        let passed = times.get(id)?.saturating_duration_since(*before.get(id)?);
        u64::try_from(passed.as_micros()).ok()
    };
    // Not measured: the first tenth.
    let micros: Vec<u64> = (count / 10 + 1..=count).collect::<Vec<_>>().iter().filter_map(passed).collect();
    ensure!(micros.len() == count - count / 10, "{} changes came", micros.len());
    let [p50, p99] = quantiles(micros);
    let name = format!("{inserted:.0} inserts a second, one webhook: from before the insert to its endpoint");
    let deliveries = received.deliveries.load(Relaxed) as f64;
    Ok(vec![
        Figure { name: format!("{name}, p50"), value: p50, unit: "ms", wanted: None },
        Figure { name: format!("{name}, p99"), value: p99, unit: "ms", wanted: Some(AtMost(100.0)) },
        Figure {
            name: "changes of one of these deliveries".to_owned(),
            value: count as f64 / deliveries,
            unit: "",
            wanted: None,
        },
    ])
}

/// Many webhooks of one table. The session inserts more than can be delivered one by one, so that the couriers never wait.
async fn rate(on: &Subject, seconds: usize) -> Result<Vec<Figure>> {
    const PER_SECOND: u32 = 50;
    let (endpoint, received) = Received::endpoint().await?;
    for number in 0..WEBHOOKS {
        make(on, &format!("rate {number}"), &endpoint.url, json!({})).await?;
    }
    let time = Duration::from_secs(u64::try_from(seconds)?);
    let mut connection = on.session().await?;
    let insert = connection.prep(ORDER).await?;
    let (began, mut inserts) = (Instant::now(), 0_u32);
    let cpu = on.cpu()?;
    let mut due = interval(Duration::from_secs(1) / PER_SECOND);
    while began.elapsed() < time {
        due.tick().await;
        connection.exec_drop(&insert, (7,)).await?;
        inserts += 1;
    }
    let (cpu, seconds) = (on.cpu()?.saturating_sub(cpu).as_secs_f64(), began.elapsed().as_secs_f64());
    let (deliveries, changes) = (received.deliveries.load(Relaxed), received.changes.load(Relaxed));
    let name = format!("{WEBHOOKS} webhooks of one project, {:.0} inserts a second", f64::from(inserts) / seconds);
    Ok(vec![
        Figure {
            name: format!("{name}: deliveries"),
            value: deliveries as f64 / seconds,
            unit: "/s",
            wanted: Some(AtLeast(2_000.0)),
        },
        Figure { name: format!("{name}: changes"), value: changes as f64 / seconds, unit: "/s", wanted: None },
        Figure {
            name: format!("{name}: the origin's processor time of a delivery"),
            value: cpu * 1e6 / deliveries as f64,
            unit: "µs",
            wanted: None,
        },
    ])
}
