//! Sends each request of a list only once, to measure the cost of first requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tokio::time::timeout;

use super::ground::Subject;
use crate::http::Connection;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The times of requests that were each sent once.
#[derive(Debug)]
pub(super) struct Firsts {
    pub(super) times: Vec<f64>,
    pub(super) failed: u64,
    elapsed: Duration,
}

impl Firsts {
    pub(super) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the median time in milliseconds; `None` if no request succeeded.
    pub(super) fn middle(&self) -> Option<f64> {
        self.times.get(self.times.len() / 2).copied()
    }

    pub(super) fn longest(&self) -> Option<f64> {
        self.times.last().copied()
    }
}

/// Sends requests 0 to `count`, each once, by several callers.
pub(super) async fn each_once(
    subject: &Subject,
    callers: u64,
    count: u64,
    write: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> Result<Firsts> {
    let (next, write) = (Arc::new(AtomicU64::new(0)), Arc::new(write));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..callers.min(count) {
        let mut connection = Connection::open(subject.endpoint.address).await?;
        let (next, write) = (Arc::clone(&next), Arc::clone(&write));
        tasks.push(tokio::spawn(async move {
            let (mut times, mut failed, mut buffer) = (Vec::new(), 0, Vec::new());
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return Ok::<_, anyhow::Error>((times, failed));
                }
                write(index, &mut buffer);
                let from = Instant::now();
                let answer = timeout(ANSWER_TIMEOUT, connection.call(&buffer)).await.context("no answer in time")??;
                match answer.status {
                    200 => times.push(from.elapsed().as_secs_f64() * 1e3),
                    _ => failed += 1,
                }
            }
        }));
    }
    let (mut times, mut failed) = (Vec::new(), 0);
    for task in tasks {
        let (seen, missed) = task.await.context("a caller")??;
        times.extend(seen);
        failed += missed;
    }
    let elapsed = began.elapsed();
    times.sort_by(f64::total_cmp);
    Ok(Firsts { times, failed, elapsed })
}
