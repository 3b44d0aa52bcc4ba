//! The load: a number of callers, each on a connection of its own, for a fixed time.
//!
//! All of them live on one thread: it sends some 100,000 requests a second before it is full, and leaves the other
//! processors to what is measured.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;
use tokio::time::timeout;

use crate::{
    http::Connection,
    request::Requests,
    workload::{Random, Workload},
};

/// Longer than any answer here should take, and what a caller waits at most.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How requests follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// The next one when the answer to the last is there.
    Closed,
    /// So many a second, whatever the answers do; latency counts from the moment at which a request was due.
    Open { per_second: u32 },
}

#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
    pub(crate) workload: Workload,
    pub(crate) callers: u16,
    pub(crate) pace: Pace,
    pub(crate) duration: Duration,
}

/// What the callers saw.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Microseconds to the last byte.
    pub(crate) latency: Histogram<u64>,
    /// Microseconds to the head of the answer.
    pub(crate) first_byte: Histogram<u64>,
}

impl Outcome {
    pub(crate) fn new() -> Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, 120_000_000, 3).context("histogram");
        Ok(Self {
            requests: 0,
            bytes: 0,
            elapsed: Duration::ZERO,
            latency: histogram()?,
            first_byte: histogram()?,
        })
    }

    pub(crate) fn record(&mut self, latency: Duration, first_byte: Duration, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency
            .saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        self.first_byte
            .saturating_record(u64::try_from(first_byte.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency.add(&other.latency)?;
        self.first_byte.add(&other.first_byte)?;
        Ok(())
    }
}

/// Run the load on a thread of its own. Any answer but a success ends it with an error.
pub(crate) async fn run(load: Load) -> Result<Outcome> {
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(callers(load))
    });
    thread.await.context("the load's thread")?
}

async fn callers(load: Load) -> Result<Outcome> {
    let load = Arc::new(load);
    let due = Arc::new(AtomicU64::new(0));
    let mut connections = Vec::new();
    for _ in 0..load.callers {
        connections.push(Connection::open(load.address).await.context("connecting")?);
    }
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, connection) in (0_u64..).zip(connections) {
        tasks.push(tokio::spawn(caller(
            Arc::clone(&load),
            Arc::clone(&due),
            connection,
            number,
            began,
        )));
    }
    let mut outcome = Outcome::new()?;
    for task in tasks {
        outcome.merge(&task.await.context("a caller")??)?;
    }
    outcome.elapsed = began.elapsed();
    Ok(outcome)
}

async fn caller(
    load: Arc<Load>,
    due: Arc<AtomicU64>,
    mut connection: Connection,
    number: u64,
    began: Instant,
) -> Result<Outcome> {
    let mut outcome = Outcome::new()?;
    let mut random = Random::new(number);
    let mut buffer = Vec::new();
    loop {
        let from = match load.pace {
            Pace::Closed => Instant::now(),
            Pace::Open { per_second } => {
                wait_until_due(began, due.fetch_add(1, Ordering::Relaxed), per_second).await
            }
        };
        if from.duration_since(began) >= load.duration {
            return Ok(outcome);
        }
        load.requests.write(load.workload, &mut random, &mut buffer);
        let answer = timeout(ANSWER_TIMEOUT, connection.call(&buffer))
            .await
            .context("no answer in time")??;
        if answer.status != 200 {
            bail!("answered {} in place of 200", answer.status);
        }
        outcome.record(
            from.elapsed(),
            answer.began.duration_since(from),
            answer.bytes,
        );
    }
}

/// The moment from which the `index`-th request counts. A caller that comes late counts from when the request was due;
/// one that waits counts from when it woke, for the timer's millisecond is not the server's.
async fn wait_until_due(began: Instant, index: u64, per_second: u32) -> Instant {
    let due = began + Duration::from_secs_f64(index as f64 / f64::from(per_second));
    if due <= Instant::now() {
        return due;
    }
    tokio::time::sleep_until(due.into()).await;
    Instant::now()
}
