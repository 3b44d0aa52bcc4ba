//! The comparison: starts the contenders, checks their answers, then measures them in turn: first in a closed loop, for
//! throughput, then all at the same rate, for latency.

mod measure;
mod rate;
mod subject;

use std::{io::Write as _, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use mysql_async::{Conn, prelude::Queryable as _};

use self::subject::{Kind, Subject, Subjects};
use crate::{
    arguments::Compare,
    data,
    machine::Machine,
    mariadb::{self, MariaDb},
    process,
    report::{Case, Report},
    request::Dialect,
    role::League,
    workload::{STORM_CALLERS, Workload},
};

/// Maximum time of a run, whatever the arguments.
const RUN_LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Workloads whose latency is also measured at a fixed rate: workloads with many callers and small answers.
const OPEN: [Workload; 3] = [Workload::W1, Workload::W2, Workload::W3];

pub(crate) async fn run(compare: Compare) -> Result<()> {
    tokio::time::timeout(RUN_LIMIT, measure_all(&compare)).await.context("the comparison took too long")?
}

async fn measure_all(compare: &Compare) -> Result<()> {
    // Each caller needs a socket, here and in each server, which inherits the limit.
    process::allow_open_files(u64::from(STORM_CALLERS) * 4)?;
    say("starting MariaDB and filling its tables")?;
    let mariadb = MariaDb::start().await?;
    let options = mariadb::options(&mariadb.socket(), Some(data::DATABASE));
    let mut administrator = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
    data::fill(&mut administrator).await?;
    let machine = Machine::of(&mut administrator).await?;
    let subjects = Subjects::start(compare, &mariadb, &options).await?;
    let mut comparison = Comparison {
        report: Report::new(compare, machine),
        compare,
        mariadb: &mariadb,
        administrator,
        subjects: &subjects.measured,
    };
    comparison.run().await?;
    let report = comparison.report;
    report.print(&mut std::io::stdout().lock())?;
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    let directory = compare.save.as_deref().unwrap_or(&default);
    report.save(directory)?;
    say(&format!("saved in {}", directory.display()))?;
    if report.has_failures() {
        bail!("not every measurement succeeded: see above");
    }
    Ok(())
}

struct Comparison<'a> {
    compare: &'a Compare,
    mariadb: &'a MariaDb,
    administrator: Conn,
    subjects: &'a [Subject],
    report: Report,
}

impl<'a> Comparison<'a> {
    async fn run(&mut self) -> Result<()> {
        let workloads = if self.compare.only.is_empty() { Workload::ALL.to_vec() } else { self.compare.only.clone() };
        for subject in self.subjects {
            self.report.idle(&subject.name, subject.idle_bytes);
        }
        // All answers are checked before the first measurement, so that a wrong answer is reported early.
        for &workload in &workloads {
            for subject in self.taking_part(workload) {
                check(subject, workload).await.with_context(|| format!("{}: {}", subject.name, workload.title()))?;
            }
        }
        for &workload in &workloads {
            let case = Case { workload, rate: self.compare.rate };
            self.alternate(case, self.taking_part(workload)).await?;
        }
        if self.compare.closed || self.compare.rate.is_some() {
            return Ok(());
        }
        for workload in OPEN.into_iter().filter(|open| workloads.contains(open)) {
            for league in League::BOTH {
                self.open(workload, league).await?;
            }
        }
        Ok(())
    }

    fn taking_part(&self, workload: Workload) -> Vec<&'a Subject> {
        self.subjects.iter().filter(|subject| subject.role.takes_part(workload)).collect()
    }

    /// Measures all contenders of a league at one rate, which the slowest of them can keep up with.
    async fn open(&mut self, workload: Workload, league: League) -> Result<()> {
        let mut members = self.taking_part(workload);
        members.retain(|subject| subject.role.league() == Some(league));
        let closed = Case { workload, rate: None };
        let reached: Vec<f64> = members
            .iter()
            .filter_map(|subject| self.report.median(closed, &subject.name))
            .map(|median| median.requests_per_second)
            .collect();
        let Some(rate) = rate::carried_by_all(&reached) else {
            return Ok(());
        };
        let case = Case { workload, rate: Some(rate) };
        self.alternate(case, members).await
    }

    /// Measures the contenders in turn, for each round.
    async fn alternate(&mut self, case: Case, subjects: Vec<&Subject>) -> Result<()> {
        for round in 1..=self.compare.rounds {
            for subject in &subjects {
                say(&format!("{}, round {round}: {}", case.title(), subject.name))?;
                self.administrator.query_drop(data::EMPTY_INBOX).await?;
                let measured = measure::measure(self.compare, self.mariadb, subject, case, round).await;
                match measured {
                    Ok(sample) => self.report.add(case, subject.role, &subject.name, sample),
                    Err(error) => {
                        let text = format!("{error:#}");
                        self.report.fail(case, subject.role, &subject.name, text);
                    }
                }
            }
        }
        Ok(())
    }
}

async fn check(subject: &Subject, workload: Workload) -> Result<()> {
    let Kind::Server(endpoint) = &subject.kind else {
        return Ok(());
    };
    let (status, body) = subject::ask(endpoint, workload).await?;
    let excerpt = || String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    if status != 200 {
        bail!("answered {status}: {}", excerpt());
    }
    let mut answer: serde_json::Value = serde_json::from_slice(&body).with_context(excerpt)?;
    let (succeeded, payload) = match endpoint.requests.dialect {
        // For xmysql, a record is a list of one row, and an insert returns no rows.
        Dialect::Xmysql => (true, if workload.rows().is_some() { answer } else { serde_json::Value::Null }),
        Dialect::Selkie | Dialect::Handwritten => (answer["success"] == true, answer["payload"].take()),
    };
    let rows = payload.as_array().map(|rows| rows.len() as u64);
    if !succeeded || rows != workload.rows() {
        bail!("{rows:?} rows in place of {:?}: {}", workload.rows(), excerpt());
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{line}")?;
    Ok(())
}
