//! The comparison: start the contenders, see that each gives the right answer, then measure them in turn.

mod subject;

use std::{io::Write as _, time::Duration};

use anyhow::{Context as _, Result, bail};
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::time::Instant;

use self::subject::{Kind, Subject};
use crate::{
    accounting,
    arguments::Compare,
    data, floor,
    load::{self, Load, Outcome, Pace},
    mariadb::{self, MariaDb},
    report::{Report, Sample},
    workload::Workload,
};

/// Plans, caches and connections are made in this time, before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// Nothing here runs longer, whatever was asked for.
const RUN_LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Run the whole comparison and print it.
pub(crate) async fn run(compare: Compare) -> Result<()> {
    tokio::time::timeout(RUN_LIMIT, measure_all(&compare))
        .await
        .context("the comparison took too long")?
}

async fn measure_all(compare: &Compare) -> Result<()> {
    say("starting MariaDB and filling its tables")?;
    let mariadb = MariaDb::start().await?;
    let options = mariadb::options(&mariadb.socket(), Some(data::DATABASE));
    let mut administrator = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
    data::fill(&mut administrator).await?;
    let subjects = subject::start(compare, &mariadb, &options).await?;
    let workloads = if compare.only.is_empty() {
        Workload::ALL.to_vec()
    } else {
        compare.only.clone()
    };
    let mut report = Report::new(compare);
    for subject in &subjects {
        report.idle(&subject.name, subject.idle_bytes);
    }
    for workload in workloads {
        for subject in &subjects {
            check(subject, workload)
                .await
                .with_context(|| format!("{}: {}", subject.name, workload.title()))?;
        }
        for round in 1..=compare.rounds {
            for subject in &subjects {
                say(&format!(
                    "{}, round {round}: {}",
                    workload.title(),
                    subject.name
                ))?;
                administrator.query_drop(data::EMPTY_INBOX).await?;
                let sample = measure(compare, &mariadb, subject, workload)
                    .await
                    .with_context(|| format!("{}: {}", subject.name, workload.title()))?;
                report.add(workload, &subject.name, sample);
            }
        }
    }
    report.print(&mut std::io::stdout().lock())?;
    if let Some(path) = &compare.json {
        report.write_json(path)?;
    }
    Ok(())
}

/// An answer that is wrong may be as fast as it likes.
async fn check(subject: &Subject, workload: Workload) -> Result<()> {
    let Kind::Server { door, .. } = &subject.kind else {
        return Ok(());
    };
    let (status, body) = subject::ask(door, workload).await?;
    let excerpt = || String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    if status != 200 {
        bail!("answered {status}: {}", excerpt());
    }
    let answer: Answer = serde_json::from_slice(&body).with_context(excerpt)?;
    let rows = answer.payload.as_array().map(|rows| rows.len() as u64);
    if !answer.success || rows != workload.rows() {
        bail!(
            "{rows:?} rows in place of {:?}: {}",
            workload.rows(),
            excerpt()
        );
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Answer {
    success: bool,
    payload: serde_json::Value,
}

async fn measure(
    compare: &Compare,
    mariadb: &MariaDb,
    subject: &Subject,
    workload: Workload,
) -> Result<Sample> {
    drive(compare, subject, workload, WARM_UP).await?;
    let server = subject.pid;
    if let Some(pid) = server {
        accounting::forget_peak(pid)?;
    }
    let before = Cpu::now(mariadb, subject)?;
    let began = Instant::now();
    let outcome = drive(
        compare,
        subject,
        workload,
        Duration::from_secs(compare.seconds),
    )
    .await?;
    let elapsed = began.elapsed();
    let after = Cpu::now(mariadb, subject)?;
    let mut sample = Sample::of(&outcome, elapsed)?;
    let micros = |after: Duration, before: Duration| {
        after.saturating_sub(before).as_secs_f64() * 1e6 / outcome.requests.max(1) as f64
    };
    // An installation that was not started here has a MariaDB of its own.
    if let (Some(server_after), Some(server_before)) = (after.server, before.server) {
        sample.server_micros = Some(micros(server_after, server_before));
        sample.database_micros = Some(micros(after.database, before.database));
    }
    if let Kind::Server { .. } = subject.kind {
        sample.load_micros = Some(micros(after.load, before.load));
    }
    if let (Some(pid), Some(idle)) = (server, subject.idle_bytes) {
        let peak = accounting::peak(pid)?;
        sample.peak_bytes = Some(peak);
        sample.grown_bytes = Some(peak.saturating_sub(idle));
    }
    Ok(sample)
}

/// Processor time used so far.
struct Cpu {
    server: Option<Duration>,
    database: Duration,
    load: Duration,
}

impl Cpu {
    fn now(mariadb: &MariaDb, subject: &Subject) -> Result<Self> {
        Ok(Self {
            server: subject.pid.map(accounting::cpu).transpose()?,
            database: accounting::cpu(mariadb.pid())?,
            load: accounting::cpu(std::process::id())?,
        })
    }
}

async fn drive(
    compare: &Compare,
    subject: &Subject,
    workload: Workload,
    duration: Duration,
) -> Result<Outcome> {
    match &subject.kind {
        Kind::Floor {
            options,
            connections,
        } => {
            let connections = workload.callers(*connections);
            floor::run(options, workload, connections, duration).await
        }
        Kind::Server { door, .. } => {
            let load = Load {
                address: door.address,
                requests: door.requests.clone(),
                workload,
                callers: workload.callers(compare.connections),
                pace: compare
                    .rate
                    .map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
                duration,
            };
            load::run(load).await
        }
    }
}

/// Progress, where it does not mix with the result.
fn say(line: &str) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{line}")?;
    Ok(())
}
