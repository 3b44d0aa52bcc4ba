//! Measures what the edge adds to a request: the same bodies from the same origin, through the edge and through a
//! worker of ten lines that only forwards. Both run in the same kind of workerd and in turn, so that variations of the
//! machine affect both.
//!
//! The origin is first a minimal origin in this process, which costs the least processor time, then Selkie's origin.

mod callers;
mod origin;
mod outcome;
pub(crate) mod worker;

use std::{
    io::Write as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, value_parser};
use mysql_async::Conn;

use self::{
    callers::Requests,
    outcome::{Download, Report, Sample},
    worker::{Kind, Setting, Worker},
};
use crate::{
    accounting, data,
    http::Connection,
    mariadb::{self, MariaDb},
    selkie,
};

/// Time before a measurement in which code is compiled and connections are opened.
const WARM_UP: Duration = Duration::from_secs(2);

/// More keys than the edge caches (two generations of 2,048), so that each is evicted before it is used again.
const KEYS: usize = 8_192;

/// Path of a record in the database of the benchmark.
const RECORD_PATH: &str = "/api/v1/crud/default_bench/posts/4711";

#[derive(Debug, Args)]
pub(crate) struct Edge {
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// How often either worker is measured; medians are printed.
    #[arg(long, default_value_t = 9, value_parser = value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// Connections of the load, beside measurements with a single one.
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u16).range(1..=256))]
    connections: u16,
    /// MB of the large answer.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    megabytes: u64,
    /// Origins to measure with (both, if none is named).
    #[arg(long, value_delimiter = ',')]
    origins: Vec<Origin>,
    /// Measure only requests with a key that is known, over many connections.
    #[arg(long)]
    briefly: bool,
    /// Let the edge write its line for every request, which the other worker does not.
    #[arg(long)]
    log: bool,
    /// Also write every measurement and the medians to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Edge {
    const fn log_requests(&self) -> &'static str {
        if self.log { "on" } else { "off" }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Origin {
    Fixed,
    Selkie,
}

struct Measure {
    title: &'static str,
    keys: Vec<String>,
    callers: u16,
}

const WARM: &str = "a key that is known";
const LONE: &str = "a key that is known, one caller";
const COLD: &str = "a new key every time";

pub(crate) async fn run(asked: &Edge) -> Result<()> {
    let wanted = |origin| asked.origins.is_empty() || asked.origins.contains(&origin);
    let mut report = Report::new(asked.seconds, asked.rounds, asked.connections);
    if wanted(Origin::Fixed) {
        fixed(asked, &mut report).await?;
    }
    if wanted(Origin::Selkie) {
        own(asked, &mut report).await?;
    }
    report.judge();
    report.print(&mut std::io::stdout().lock())?;
    if let Some(path) = &asked.json {
        report.write_json(path)?;
    }
    Ok(())
}

async fn fixed(asked: &Edge, report: &mut Report) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let (jwks, keys) = callers::keys(KEYS, now)?;
    let directory = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
    let setting = Setting {
        origin: origin::start(asked.megabytes * 1_000_000)?,
        jwks,
        log_requests: asked.log_requests(),
        directory: directory.path().to_owned(),
    };
    let warm = keys[..1].to_vec();
    let workers = start(&setting, &warm, report).await?;
    measure(asked, "fixed", &workers, warm.clone(), report).await?;
    if asked.briefly {
        return Ok(());
    }
    let cold = Measure { title: COLD, keys, callers: asked.connections };
    alternate(asked, "fixed", &workers, &cold, report).await?;
    let large = Requests::new(origin::LARGE_PATH, &warm);
    for _ in 0..asked.rounds {
        for worker in &workers {
            let download = download(worker, large.any()).await?;
            report.add_download(worker.kind, download);
        }
    }
    Ok(())
}

async fn own(asked: &Edge, report: &mut Report) -> Result<()> {
    let mariadb = MariaDb::start().await?;
    let mut administrator = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
    data::fill(&mut administrator).await?;
    let binary = selkie::binary(None)?.context("no selkie beside this program")?;
    let (_started, endpoint) = selkie::start(&binary, &mariadb).await?;
    let setting = Setting {
        origin: endpoint.address,
        jwks: selkie::jwks(&binary, &mariadb, &endpoint).await?,
        log_requests: asked.log_requests(),
        directory: mariadb.directory().to_owned(),
    };
    let keys = vec![endpoint.requests.key.clone()];
    let workers = start(&setting, &keys, report).await?;
    measure(asked, "selkie", &workers, keys, report).await
}

async fn start(setting: &Setting, keys: &[String], report: &mut Report) -> Result<Vec<Worker>> {
    let request = Requests::new(RECORD_PATH, keys);
    let mut workers = Vec::new();
    for kind in Kind::BOTH {
        let worker = Worker::start(kind, setting, request.any()).await?;
        report.add_start(kind, worker.first_answer, accounting::resident(worker.pid())?);
        workers.push(worker);
    }
    Ok(workers)
}

async fn measure(
    asked: &Edge,
    origin: &'static str,
    workers: &[Worker],
    keys: Vec<String>,
    report: &mut Report,
) -> Result<()> {
    let lone = Measure { title: LONE, keys: keys.clone(), callers: 1 };
    let warm = Measure { title: WARM, keys, callers: asked.connections };
    alternate(asked, origin, workers, &warm, report).await?;
    if asked.briefly {
        return Ok(());
    }
    alternate(asked, origin, workers, &lone, report).await
}

/// Measures both workers in turn, for each round; which of them is first alternates.
async fn alternate(
    asked: &Edge,
    origin: &'static str,
    workers: &[Worker],
    measure: &Measure,
    report: &mut Report,
) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{origin} origin, {}", measure.title)?;
    // Each worker has its own sequence of keys, so that neither skips keys that the other used.
    let mut turns: Vec<(&Worker, Arc<Requests>)> =
        workers.iter().map(|worker| (worker, Requests::new(RECORD_PATH, &measure.keys))).collect();
    for (worker, requests) in &turns {
        callers::drive(worker.address, Arc::clone(requests), measure.callers, WARM_UP)
            .await
            .with_context(|| worker.kind.title())?;
    }
    for _ in 0..asked.rounds {
        for (worker, requests) in &turns {
            let cpu = accounting::cpu(worker.pid())?;
            let outcome = callers::drive(
                worker.address,
                Arc::clone(requests),
                measure.callers,
                Duration::from_secs(asked.seconds),
            )
            .await
            .with_context(|| worker.kind.title())?;
            let cpu = accounting::cpu(worker.pid())?.saturating_sub(cpu);
            let sample = Sample::of(&outcome, cpu);
            report.add(origin, measure.title, worker.kind, sample);
        }
        turns.reverse();
    }
    Ok(())
}

async fn download(worker: &Worker, request: &[u8]) -> Result<Download> {
    let pid = worker.pid();
    let before = accounting::resident(pid)?;
    accounting::forget_peak(pid)?;
    let (cpu, began) = (accounting::cpu(pid)?, Instant::now());
    let answer = Connection::open(worker.address).await?.call(request).await?;
    let elapsed = began.elapsed();
    anyhow::ensure!(answer.status == 200, "answered {}", answer.status);
    let cpu = accounting::cpu(pid)?.saturating_sub(cpu);
    let grown = accounting::peak(pid)?.saturating_sub(before);
    Ok(Download::new(answer.bytes, elapsed, cpu, grown))
}
