//! Samples memory, descriptors, threads and database connections during a soak, and checks that
//! they do not grow.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::time::{sleep, timeout};

use crate::{faults::CONNECTIONS, say};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(3);
/// Timeout of the query for the number of connections.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum number of samples in the printed table.
const ROWS: usize = 24;
/// Allowed growth: the later figure may be this factor times the earlier one, plus this number of
/// MB, descriptors, threads or connections.
const GROWTH_MAX: (f64, f64) = (1.1, 8.0);
/// Allowed growth of the JavaScript heap, which has about 1 MB after a collection.
const HEAP_GROWTH_MAX: (f64, f64) = (1.1, 1.0);

/// The names of the figures, with their allowed growth.
const FIGURES: [(&str, (f64, f64)); 8] = [
    ("origin: MB", GROWTH_MAX),
    ("origin: descriptors", GROWTH_MAX),
    ("origin: threads", GROWTH_MAX),
    ("workerd: MB", GROWTH_MAX),
    ("workerd: MB of JavaScript heap after a full collection", HEAP_GROWTH_MAX),
    ("workerd: descriptors", GROWTH_MAX),
    ("workerd: threads", GROWTH_MAX),
    ("connections of MariaDB", GROWTH_MAX),
];

/// The figures at one moment. A figure is `None` if it can't be read, as while MariaDB is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    at: Duration,
    figures: [Option<f64>; FIGURES.len()],
}

/// Samples the processes with the ids `origin` and `edge`, and the connections of the database at
/// this URL, until `end`.
pub(crate) async fn watch(origin: u32, edge: u32, database: String, end: Instant) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while Instant::now() < end {
        let (at, [a, b, c], [d, e, f]) = (began.elapsed(), used_by(origin), used_by(edge));
        let connections = timeout(ANSWER_MAX, connections(&database)).await.ok().and_then(Result::ok);
        samples.push(Sample { at, figures: [a, b, c, d, collected(edge), e, f, connections] });
        sleep(INTERVAL.min(end.saturating_duration_since(Instant::now()))).await;
    }
    samples
}

/// Returns a process's resident memory in megabytes, and its numbers of descriptors and threads.
/// Each is `None` if the process has ended.
fn used_by(process: u32) -> [Option<f64>; 3] {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let number = |label: &str| -> Option<f64> {
        let rest = status.lines().find_map(|line| line.strip_prefix(label))?;
        rest.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok().map(|all| all.count() as f64);
    [number("VmRSS:").map(|kilobytes| kilobytes * 1024.0 / 1e6), descriptors, number("Threads:")]
}

/// Returns the size of the JavaScript heap in megabytes after the last full garbage collection of the workerd with this
/// process id, which V8 prints to standard output, a file: `… Mark-Compact 8.9 (11.0) -> 0.8 (11.0) MB, …`.
fn collected(workerd: u32) -> Option<f64> {
    let log = fs::read_to_string(format!("/proc/{workerd}/fd/1")).ok()?;
    let line = log.lines().rfind(|line| line.contains("Mark-Compact"))?;
    line.split_once("-> ")?.1.split(' ').next()?.parse().ok()
}

async fn connections(database: &str) -> Result<f64> {
    let mut connection = Conn::from_url(database).await?;
    let count: Option<u32> = connection.query_first(format!("SELECT COUNT(*) {CONNECTIONS}")).await?;
    connection.disconnect().await?;
    Ok(count.context("no count")?.into())
}

/// Prints up to [`ROWS`] samples, and for each figure whether it grows. Returns `true` if no figure
/// grows by more than its bound and none is missing.
pub(crate) fn print(samples: &[Sample]) -> Result<bool> {
    say(&format!("\n| s | {} |", FIGURES.map(|(name, _)| name).join(" | ")))?;
    say(&format!("| ---: |{}", " ---: |".repeat(FIGURES.len())))?;
    let text = |figure: &Option<f64>| figure.map_or_else(String::new, |figure| format!("{figure:.1}"));
    for sample in samples.iter().step_by(samples.len().div_ceil(ROWS).max(1)) {
        let figures: Vec<String> = sample.figures.iter().map(text).collect();
        say(&format!("| {} | {} |", sample.at.as_secs(), figures.join(" | ")))?;
    }
    say("\nmedians of the second and of the last sixth of the time:")?;
    let mut flat = true;
    for (index, (name, growth_max)) in FIGURES.iter().enumerate() {
        let figures: Vec<Option<f64>> = samples.iter().map(|sample| sample.figures[index]).collect();
        let verdict = match sixths(&figures) {
            None => {
                flat = false;
                "was not there to be measured".to_owned()
            }
            Some((early, late)) => {
                let most = early * growth_max.0 + growth_max.1;
                flat &= late <= most;
                let word = if late <= most { "within its bound" } else { "GROWS" };
                format!("{early:.1}, then {late:.1}, where {most:.1} is the most: {word}")
            }
        };
        say(&format!("  {name}: {verdict}"))?;
    }
    Ok(flat)
}

/// Returns the medians of the second and of the last sixth of the figures; `None` if either sixth
/// has no figure.
fn sixths(figures: &[Option<f64>]) -> Option<(f64, f64)> {
    let sixth = figures.len() / 6;
    let median = |part: &[Option<f64>]| {
        let mut there: Vec<f64> = part.iter().copied().flatten().collect();
        there.sort_by(f64::total_cmp);
        there.get(there.len() / 2).copied()
    };
    Some((median(figures.get(sixth..2 * sixth)?)?, median(&figures[figures.len() - sixth..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sixth_and_moments_without_a_figure_do_not_count() {
        let figures: Vec<Option<f64>> = (0_u32..12)
            .map(|number| match number {
                0 | 1 => Some(1_000.0),
                3 => None,
                _ => Some(number.into()),
            })
            .collect();
        assert_eq!(sixths(&figures), Some((2.0, 11.0)));
        assert_eq!(sixths(&[None; 12]), None);
        assert_eq!(sixths(&[]), None);
    }

    #[test]
    fn a_figure_that_grows_or_is_missing_is_told() {
        let samples = |figure: fn(u32) -> Option<f64>| -> Vec<Sample> {
            let sample = |at: u32| Sample { at: Duration::from_secs(at.into()), figures: [figure(at); FIGURES.len()] };
            (0..60).map(sample).collect()
        };
        assert!(print(&samples(|_| Some(100.0))).unwrap());
        assert!(print(&samples(|at| Some(100.0 + f64::from(at) / 10.0))).unwrap());
        assert!(!print(&samples(|at| Some(100.0 + f64::from(at)))).unwrap());
        assert!(!print(&samples(|at| (at < 50).then_some(100.0))).unwrap());
    }
}
