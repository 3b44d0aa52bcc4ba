//! The load: a number of callers, each with its own connection, for a fixed time.
//!
//! All callers share one thread: it can send more than 100,000 requests per second, and leaves the other processors to
//! the server. Four fifths of its cost are the kernel's, for a send and a receive per request.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::timeout};

pub(crate) use crate::pace::Pace;
use crate::{
    http::Connection,
    pace::Clock,
    request::Requests,
    workload::{Random, Workload},
};

/// Time after the end of a load after which a missing answer is an error; longer than any answer should take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum latency that is recorded, in microseconds; a longer latency is recorded as this maximum.
const LATENCY_MAX_MICROS: u64 = 120_000_000;

#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
    pub(crate) workload: Workload,
    pub(crate) callers: u16,
    pub(crate) pace: Pace,
    pub(crate) duration: Duration,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    /// Microseconds to the last byte.
    pub(crate) latency: Histogram<u64>,
    pub(crate) first_byte: Histogram<u64>,
}

impl Outcome {
    pub(crate) fn new() -> Result<Self> {
        // The histogram grows as needed: for the full range it would take 400 kB per caller.
        let histogram = || Histogram::new(3).context("histogram");
        Ok(Self { requests: 0, bytes: 0, elapsed: Duration::ZERO, latency: histogram()?, first_byte: histogram()? })
    }

    pub(crate) fn record(&mut self, latency: Duration, first_byte: Duration, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        let micros = |time: Duration| {
            u64::try_from(time.as_micros()).map_or(LATENCY_MAX_MICROS, |micros| micros.min(LATENCY_MAX_MICROS))
        };
        // Recording can't fail: `micros` returns no value beyond the histogram's maximum.
        let _ = self.latency.record(micros(latency));
        let _ = self.first_byte.record(micros(first_byte));
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency.add(&other.latency)?;
        self.first_byte.add(&other.first_byte)?;
        Ok(())
    }
}

/// Runs the load on its own thread. Any answer but a success is an error.
pub(crate) async fn run(load: Load) -> Result<Outcome> {
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            // One timeout for all callers: a timer per request would take a tenth of the load's time.
            timeout(load.duration + ANSWER_TIMEOUT, callers(load)).await.context("no answer in time")?
        })
    });
    thread.await.context("the load's thread")?
}

struct Common {
    load: Load,
    clock: Clock,
    /// Shared by all callers, which are on one thread: one outcome each would not stay in the processor's caches.
    outcome: Mutex<Outcome>,
}

impl Common {
    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn callers(load: Load) -> Result<Outcome> {
    let mut connections = Vec::new();
    let mut opening = JoinSet::new();
    for _ in 0..load.callers {
        opening.spawn(Connection::open(load.address));
    }
    while let Some(opened) = opening.join_next().await {
        connections.push(opened?.context("connecting")?);
    }
    let common =
        Arc::new(Common { clock: Clock::start(load.pace, load.duration)?, outcome: Mutex::new(Outcome::new()?), load });
    let mut callers = JoinSet::new();
    for (number, connection) in (0_u64..).zip(connections) {
        callers.spawn(caller(Arc::clone(&common), connection, number));
    }
    while let Some(ended) = callers.join_next().await {
        ended.context("a caller")??;
    }
    let elapsed = common.clock.elapsed();
    let mut outcome = common.outcome();
    outcome.elapsed = elapsed;
    Ok(std::mem::replace(&mut *outcome, Outcome::new()?))
}

async fn caller(common: Arc<Common>, mut connection: Connection, number: u64) -> Result<()> {
    let mut random = Random::new(number);
    let mut buffer = Vec::new();
    let load = &common.load;
    while let Some(from) = common.clock.next().await? {
        load.requests.write(load.workload, &mut random, &mut buffer);
        let answer = connection.call(&buffer).await?;
        if answer.status != 200 {
            bail!("answered {} in place of 200", answer.status);
        }
        let first_byte = answer.began.duration_since(from);
        let latency = answer.ended.duration_since(from);
        common.outcome().record(latency, first_byte, answer.bytes);
    }
    Ok(())
}
