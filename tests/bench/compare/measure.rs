//! One measurement of one contender: warm-up, load, and the processes' use of time and memory meanwhile.

use std::time::Duration;

use anyhow::Result;

use super::subject::{Kind, Subject};
use crate::{
    accounting,
    arguments::Compare,
    floor,
    load::{self, Load, Outcome},
    mariadb::MariaDb,
    pace::Pace,
    report::Case,
    role::Role,
    sample::{Sample, micros_each},
};

/// Time before the first measurement in which statements, caches and connections are prepared.
const WARM_UP: Duration = Duration::from_secs(1);
/// Time before later rounds, in which only processors and connections must be warmed up.
const WARM_UP_AGAIN: Duration = Duration::from_millis(300);

pub(super) async fn measure(
    compare: &Compare,
    mariadb: &MariaDb,
    subject: &Subject,
    case: Case,
    round: u16,
) -> Result<Sample> {
    let warm_up = if round == 1 { WARM_UP } else { WARM_UP_AGAIN };
    drive(compare, subject, case, warm_up).await?;
    if let Some(pid) = subject.called() {
        accounting::forget_peak(pid)?;
    }
    let before = Cpu::now(mariadb, subject)?;
    let duration = Duration::from_secs(compare.seconds);
    let outcome = drive(compare, subject, case, duration).await?;
    let used = Cpu::now(mariadb, subject)?.since(&before);
    let each = |time| micros_each(time, outcome.requests);
    let mut sample = Sample::of(&outcome);
    sample.server_micros = used.server.map(each);
    sample.worker_micros = used.worker.map(each);
    // An installation that was not started here has its own MariaDB, whose processor time is not measured.
    let asks_ours = subject.server.is_some() && subject.role != Role::Hello;
    sample.database_micros = asks_ours.then(|| each(used.database));
    if let Kind::Server(_) = subject.kind {
        sample.load_micros = Some(each(used.load));
    }
    if let (Some(pid), Some(idle)) = (subject.called(), subject.idle_bytes) {
        let peak = accounting::peak(pid)?;
        sample.peak_bytes = Some(peak);
        sample.grown_bytes = Some(peak.saturating_sub(idle));
    }
    Ok(sample)
}

struct Cpu {
    server: Option<Duration>,
    worker: Option<Duration>,
    database: Duration,
    load: Duration,
}

impl Cpu {
    fn now(mariadb: &MariaDb, subject: &Subject) -> Result<Self> {
        Ok(Self {
            server: subject.server.map(accounting::cpu).transpose()?,
            worker: subject.worker.map(accounting::cpu).transpose()?,
            database: accounting::cpu(mariadb.pid())?,
            load: accounting::cpu(std::process::id())?,
        })
    }

    fn since(&self, before: &Self) -> Self {
        let of = |after: Option<Duration>, before: Option<Duration>| Some(after?.saturating_sub(before?));
        Self {
            server: of(self.server, before.server),
            worker: of(self.worker, before.worker),
            database: self.database.saturating_sub(before.database),
            load: self.load.saturating_sub(before.load),
        }
    }
}

async fn drive(compare: &Compare, subject: &Subject, case: Case, duration: Duration) -> Result<Outcome> {
    let workload = case.workload;
    let pace = case.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second });
    match &subject.kind {
        Kind::Floor { options, connections } => {
            let connections = workload.callers(*connections);
            floor::run(options, workload, connections, pace, duration).await
        }
        Kind::Server(endpoint) => {
            let load = Load {
                address: endpoint.address,
                requests: endpoint.requests.clone(),
                workload,
                callers: workload.callers(compare.connections),
                pace,
                duration,
            };
            load::run(load).await
        }
    }
}
