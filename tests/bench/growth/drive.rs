//! Callers, each with its own connection, that repeat the requests of a curve. Unlike the comparison's load, failed
//! answers are counted, since a curve continues beyond the first failures.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tokio::time::timeout;

use super::ground::Subject;
use crate::{accounting, http::Connection, load::Outcome, mariadb::MariaDb, workload::Random};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of answers for which a single caller waits even if they take longer than the measurement.
const ANSWERS_MIN: u64 = 3;

pub(super) type Write = dyn Fn(&mut Random, &mut Vec<u8>) + Send + Sync;

#[derive(Debug)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    /// Number of failed answers by status; status 0 is a broken connection.
    pub(super) failures: BTreeMap<u16, u64>,
    server: Duration,
    database: Duration,
    /// Highest resident memory of the server, in bytes.
    peak_bytes: u64,
}

/// Sends requests from concurrent callers for a duration.
pub(super) async fn drive(
    mariadb: &MariaDb,
    subject: &Subject,
    callers: u64,
    duration: Duration,
    write: Arc<Write>,
) -> Result<Seen> {
    let (address, server) = (subject.endpoint.address, subject.process.pid());
    let database = mariadb.pid();
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..callers {
                let connection = Connection::open(address).await.context("connecting")?;
                connections.push(connection);
            }
            accounting::forget_peak(server)?;
            let before = (accounting::cpu(server)?, accounting::cpu(database)?);
            let (outcome, failures) = all(connections, duration, write).await?;
            Ok(Seen {
                outcome,
                failures,
                server: accounting::cpu(server)?.saturating_sub(before.0),
                database: accounting::cpu(database)?.saturating_sub(before.1),
                peak_bytes: accounting::peak(server)?,
            })
        })
    });
    thread.await.context("the load's thread")?
}

pub(super) async fn repeat(
    mariadb: &MariaDb,
    subject: &Subject,
    callers: u64,
    duration: Duration,
    request: Vec<u8>,
) -> Result<Seen> {
    let write = Arc::new(move |_: &mut Random, buffer: &mut Vec<u8>| buffer.clone_from(&request));
    drive(mariadb, subject, callers, duration, write).await
}

impl Seen {
    pub(super) fn per_second(&self) -> Option<f64> {
        Some(self.outcome.requests as f64 / self.outcome.elapsed.as_secs_f64())
    }

    pub(super) fn megabytes_per_second(&self) -> Option<f64> {
        Some(self.outcome.bytes as f64 / 1e6 / self.outcome.elapsed.as_secs_f64())
    }

    /// Returns the milliseconds within which this share of the answers was complete.
    pub(super) fn within(&self, quantile: f64) -> Option<f64> {
        Some(self.outcome.latency.value_at_quantile(quantile) as f64 / 1e3)
    }

    /// Returns the median milliseconds to an answer's head.
    pub(super) fn first_byte(&self) -> Option<f64> {
        Some(self.outcome.first_byte.value_at_quantile(0.5) as f64 / 1e3)
    }

    pub(super) fn longest(&self) -> Option<f64> {
        Some(self.outcome.latency.max() as f64 / 1e3)
    }

    /// Returns the server's processor time per answer, in microseconds.
    pub(super) fn server_micros(&self) -> Option<f64> {
        self.each(self.server)
    }

    /// Returns MariaDB's processor time per answer, in microseconds.
    pub(super) fn database_micros(&self) -> Option<f64> {
        self.each(self.database)
    }

    fn each(&self, time: Duration) -> Option<f64> {
        let answers = self.outcome.requests + self.failed();
        (answers > 0).then(|| time.as_secs_f64() * 1e6 / answers as f64)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(super) fn require_success(&self) -> Result<()> {
        if self.failures.is_empty() {
            return Ok(());
        }
        bail!("answers by status: {:?}", self.failures)
    }

    pub(super) fn failures(&self) -> Option<f64> {
        Some(self.failed() as f64)
    }

    pub(super) fn peak(&self) -> Option<f64> {
        Some(self.peak_bytes as f64 / 1e6)
    }
}

type Counted = (Outcome, BTreeMap<u16, u64>);

async fn all(connections: Vec<Connection>, duration: Duration, write: Arc<Write>) -> Result<Counted> {
    let least = if connections.len() == 1 { ANSWERS_MIN } else { 1 };
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, connection) in (0_u64..).zip(connections) {
        let until = began + duration;
        let caller = caller(connection, number, (until, least), Arc::clone(&write));
        tasks.push(tokio::spawn(caller));
    }
    let mut outcome = Outcome::new()?;
    let mut failures = BTreeMap::new();
    for task in tasks {
        let (seen, failed) = task.await.context("a caller")??;
        outcome.merge(&seen)?;
        for (status, count) in failed {
            *failures.entry(status).or_insert(0) += count;
        }
    }
    outcome.elapsed = began.elapsed();
    Ok((outcome, failures))
}

async fn caller(
    mut connection: Connection,
    number: u64,
    (until, least): (Instant, u64),
    write: Arc<Write>,
) -> Result<Counted> {
    let mut outcome = Outcome::new()?;
    let mut failures = BTreeMap::new();
    let mut random = Random::new(number);
    let mut buffer = Vec::new();
    for asked in 0.. {
        let from = Instant::now();
        if from >= until && asked >= least {
            return Ok((outcome, failures));
        }
        write(&mut random, &mut buffer);
        let answer = timeout(ANSWER_TIMEOUT, connection.call(&buffer)).await.context("no answer in time")?;
        match answer {
            Ok(answer) if answer.status == 200 => {
                let first_byte = answer.began.duration_since(from);
                outcome.record(from.elapsed(), first_byte, answer.bytes);
            }
            Ok(answer) => *failures.entry(answer.status).or_insert(0) += 1,
            Err(_) => {
                *failures.entry(0).or_insert(0) += 1;
                return Ok((outcome, failures));
            }
        }
    }
    Ok((outcome, failures))
}
