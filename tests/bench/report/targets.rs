//! Selkie's performance targets, as ratios within one run, and whether they are met.

use serde::Serialize;

use self::Bound::{AtLeast, AtMost};
use super::{Case, Report, table::megabytes};
use crate::{
    role::Role,
    sample::{Figure, Sample, ratio},
    workload::Workload,
};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) bound: Bound,
    /// The measured figure; `None` if it was not measured.
    pub(super) value: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    pub(crate) fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {bound}"),
            Self::AtMost(bound) => format!("≤ {bound}"),
        }
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

impl Target {
    pub(super) fn verdict(&self) -> &'static str {
        match self.value {
            None => "not measured",
            Some(value) if self.bound.holds(value) => "met",
            Some(_) => "missed",
        }
    }

    pub(super) fn measured(&self) -> String {
        self.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
    }

    pub(super) fn plain(&self) -> String {
        format!("{:<13} {:>8} {:<7}  {}", self.verdict(), self.measured(), self.bound.text(), self.name)
    }

    pub(super) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Returns all targets, measured or not.
pub(super) fn all(report: &Report) -> Vec<Target> {
    [by_id(report), others(report), many_callers(report)].concat()
}

const RATE: Figure = |sample| Some(sample.requests_per_second);

const fn closed(workload: Workload) -> Case {
    Case { workload, rate: None }
}

const fn target(name: &'static str, bound: Bound, value: Option<f64>) -> Target {
    Target { name, bound, value }
}

fn by_id(report: &Report) -> Vec<Target> {
    let p99: Figure = |sample| Some(sample.p99);
    let (w1, lone) = (closed(Workload::W1), closed(Workload::Lone));
    let ours = |case| report.rounds(case, Role::Origin);
    let by_hand = |case| report.rounds(case, Role::Streamed);
    let of_floor = |case, figure| report.against_floor(case, ours(case), figure);
    vec![
        target("one by id: requests/s, × floor", AtLeast(1.2), of_floor(w1, RATE)),
        target(
            "one by id: processor time of the server, × hand-written",
            AtMost(1.0),
            ratio(ours(w1), by_hand(w1), |sample| sample.server_micros),
        ),
        target(
            "one by id, at half load: p99, × floor",
            AtMost(2.0),
            open(report, Workload::W1).and_then(|case| of_floor(case, p99)),
        ),
        target("one by id: p99, × floor", AtMost(2.0), of_floor(w1, p99)),
        target("one by id: longest of all rounds, ms", AtMost(25.0), worst(ours(w1), |sample| Some(sample.max))),
        target(
            "one by id, one caller: p50 above the hand-written, µs",
            AtMost(60.0),
            added_micros(ours(lone), by_hand(lone)),
        ),
    ]
}

fn others(report: &Report) -> Vec<Target> {
    let ours = |workload| report.rounds(closed(workload), Role::Origin);
    let of_floor = |workload| report.against_floor(closed(workload), ours(workload), RATE);
    let total: Figure = |sample| Some(sample.server_micros? + sample.database_micros?);
    let all_rows = ours(Workload::W4);
    let by_hand = report.rounds(closed(Workload::W4), Role::Streamed);
    vec![
        target("twenty filtered: requests/s, × floor", AtLeast(0.68), of_floor(Workload::W2)),
        target(
            "twenty with author and 5 latest replies each: processor time, × the twenty alone",
            AtMost(2.2),
            ratio(ours(Workload::Related), ours(Workload::Stories), total),
        ),
        target("insert one: requests/s, × floor", AtLeast(0.85), of_floor(Workload::W3)),
        target("100,000 rows: time, × hand-written", AtMost(1.0), ratio(all_rows, by_hand, |sample| Some(sample.p50))),
        target("100,000 rows: growth, MB", AtMost(16.0), worst(all_rows, |sample| sample.grown_bytes.map(megabytes))),
    ]
}

fn many_callers(report: &Report) -> Vec<Target> {
    let w1 = |role| report.rounds(closed(Workload::W1), role);
    let storm = report.rounds(closed(Workload::Storm), Role::Origin);
    vec![
        target(
            "1,000 connections: requests/s, × those of the usual number",
            AtLeast(0.85),
            ratio(storm, w1(Role::Origin), RATE),
        ),
        target("1,000 connections: memory, MB", AtMost(120.0), worst(storm, |sample| sample.peak_bytes.map(megabytes))),
        target(
            "one by id through the edge: requests/s, × pass-through",
            AtLeast(0.75),
            ratio(w1(Role::Edge), w1(Role::PassThrough), RATE),
        ),
    ]
}

/// Returns the case of a fixed rate in which origins were measured; `None` if there is none.
pub(super) fn open(report: &Report, workload: Workload) -> Option<Case> {
    report.cases().into_iter().find(|case| {
        let is_it = case.workload == workload && case.rate.is_some();
        is_it && !report.rounds(*case, Role::Origin).is_empty()
    })
}

/// Returns the largest value of all rounds, for figures with a maximum; `None` if the figure was not measured.
fn worst(samples: &[Sample], figure: Figure) -> Option<f64> {
    samples.iter().filter_map(figure).max_by(f64::total_cmp)
}

fn added_micros(ours: &[Sample], theirs: &[Sample]) -> Option<f64> {
    let (ours, theirs) = (Sample::median(ours)?, Sample::median(theirs)?);
    Some((ours.p50 - theirs.p50) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::{Bound, Target};

    #[test]
    fn a_target_is_met_at_its_bound() {
        let verdict = |bound, value| {
            let name = "one";
            Target { name, bound, value }.verdict()
        };
        assert_eq!(verdict(Bound::AtLeast(0.75), Some(0.75)), "met");
        assert_eq!(verdict(Bound::AtLeast(0.75), Some(0.74)), "missed");
        assert_eq!(verdict(Bound::AtMost(25.0), Some(25.1)), "missed");
        assert_eq!(verdict(Bound::AtMost(25.0), None), "not measured");
    }
}
