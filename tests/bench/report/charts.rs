//! The charts of the docs: throughput beside the floor's, processor time, and how latencies are spread.

use anyhow::Result;

use super::{Case, Report, table::amount, targets};
use crate::{
    chart::{Axis, Bars, Lines, Scale, Series},
    role::Role,
    sample::{Figure, Sample, ratio},
    workload::Workload,
};

/// Who is drawn, in this order.
const DRAWN: [(Role, &str); 6] = [
    (Role::Floor, "bare driver, fewer connections"),
    (Role::Hello, "axum without a database"),
    (Role::Streamed, "axum by hand"),
    (Role::Origin, "selkie origin"),
    (Role::PassThrough, "pass-through before it"),
    (Role::Edge, "selkie edge before it"),
];

/// Names of files and what they hold; none that would be empty.
pub(super) fn all(report: &Report) -> Result<Vec<(&'static str, String)>> {
    let mut files = Vec::new();
    if let Some(bars) = throughput(report) {
        files.push(("throughput.svg", bars.svg()?));
    }
    if let Some(lines) = latency(report) {
        files.push(("latency.svg", lines.svg()?));
    }
    Ok(files)
}

/// Requests a second of each workload, divided by the floor's.
fn throughput(report: &Report) -> Option<Bars> {
    let rate: Figure = |sample| Some(sample.requests_per_second);
    let closed = |workload| Case {
        workload,
        rate: None,
    };
    // The storm has no floor of its own: MariaDB has no room for so many connections.
    let floor = |workload| match workload {
        Workload::Storm => report.floor(closed(Workload::W1)),
        other => report.floor(closed(other)),
    };
    let workloads: Vec<Workload> = Workload::ALL
        .into_iter()
        .filter(|workload| !floor(*workload).is_empty())
        .filter(|workload| report.cases().contains(&closed(*workload)))
        .collect();
    let series = DRAWN.map(|(role, name)| {
        let value = |workload: &Workload| {
            let ours = report.rounds(closed(*workload), role);
            ratio(ours, floor(*workload), rate)
        };
        Series {
            name: name.to_owned(),
            values: workloads.iter().map(value).collect(),
        }
    });
    let series: Vec<Series<Option<f64>>> = series
        .into_iter()
        .filter(|series| series.values.iter().any(Option::is_some))
        .collect();
    if series.is_empty() {
        return None;
    }
    Some(Bars {
        title: "Throughput; the bare driver's with as many connections as callers is 1".to_owned(),
        y: Axis {
            label: "requests/s, × the bare driver's".to_owned(),
            scale: Scale::Linear,
        },
        groups: workloads
            .iter()
            .map(|workload| workload.short_title().to_owned())
            .collect(),
        series,
    })
}

/// One record by id at half load: what one in so many requests takes at least.
fn latency(report: &Report) -> Option<Lines> {
    let case = targets::open(report, Workload::W1)?;
    let points = |median: &Sample| {
        vec![
            (2.0, median.p50),
            (10.0, median.p90),
            (100.0, median.p99),
            (1_000.0, median.p999),
            (10_000.0, median.p9999),
        ]
    };
    let series = report.entries_of(case).filter_map(|entry| {
        Some(Series {
            name: entry.contender.clone(),
            values: points(&Sample::median(&entry.samples)?),
        })
    });
    Some(Lines {
        title: format!(
            "One record by id, {} requests a second sent to each",
            amount(f64::from(case.rate?))
        ),
        x: Axis {
            label: "one request in … takes longer".to_owned(),
            scale: Scale::Logarithmic,
        },
        y: Axis {
            label: "milliseconds".to_owned(),
            scale: Scale::Logarithmic,
        },
        series: series.collect(),
    })
}
