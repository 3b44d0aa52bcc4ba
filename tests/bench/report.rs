//! What was measured, as a table with ratios and as JSON. Knows nothing of how it was measured.

use std::{fs::File, io::Write, path::Path, time::Duration};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{arguments::Compare, load::Outcome, workload::Workload};

/// One measurement of one contender.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sample {
    pub(crate) requests_per_second: f64,
    pub(crate) megabytes_per_second: f64,
    /// Processor time of the server for one request.
    pub(crate) server_micros: Option<f64>,
    /// Processor time of MariaDB for one request.
    pub(crate) database_micros: Option<f64>,
    /// Processor time of the load itself for one request; none for the floor, where it is the server's.
    pub(crate) load_micros: Option<f64>,
    /// Milliseconds to the last byte.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    /// Milliseconds to the head of the answer, the middle one.
    pub(crate) first_byte: f64,
    /// Highest resident memory of the server.
    pub(crate) peak_bytes: Option<u64>,
    /// How much that is above what it held before its first request.
    pub(crate) grown_bytes: Option<u64>,
}

impl Sample {
    /// All that the callers saw; the kernel's figures are still missing.
    pub(crate) fn of(outcome: &Outcome, elapsed: Duration) -> Result<Self> {
        let seconds = outcome
            .elapsed
            .max(Duration::from_millis(1))
            .min(elapsed)
            .as_secs_f64();
        let at = |histogram: &Histogram<u64>, quantile| {
            histogram.value_at_quantile(quantile) as f64 / 1e3
        };
        Ok(Self {
            requests_per_second: outcome.requests as f64 / seconds,
            megabytes_per_second: outcome.bytes as f64 / 1e6 / seconds,
            server_micros: None,
            database_micros: None,
            load_micros: None,
            p50: at(&outcome.latency, 0.5),
            p99: at(&outcome.latency, 0.99),
            p999: at(&outcome.latency, 0.999),
            max: outcome.latency.max() as f64 / 1e3,
            first_byte: at(&outcome.first_byte, 0.5),
            peak_bytes: None,
            grown_bytes: None,
        })
    }

    /// Each figure's median by itself.
    fn median(samples: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            middle(samples.iter().map(figure).collect()).unwrap_or(f64::NAN)
        };
        let maybe =
            |figure: fn(&Self) -> Option<f64>| middle(samples.iter().filter_map(figure).collect());
        let bytes = |figure: fn(&Self) -> Option<u64>| {
            let mut values: Vec<u64> = samples.iter().filter_map(figure).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        Self {
            requests_per_second: of(|sample| sample.requests_per_second),
            megabytes_per_second: of(|sample| sample.megabytes_per_second),
            server_micros: maybe(|sample| sample.server_micros),
            database_micros: maybe(|sample| sample.database_micros),
            load_micros: maybe(|sample| sample.load_micros),
            p50: of(|sample| sample.p50),
            p99: of(|sample| sample.p99),
            p999: of(|sample| sample.p999),
            max: of(|sample| sample.max),
            first_byte: of(|sample| sample.first_byte),
            peak_bytes: bytes(|sample| sample.peak_bytes),
            grown_bytes: bytes(|sample| sample.grown_bytes),
        }
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    workload: &'static str,
    contender: String,
    median: Option<Sample>,
    samples: Vec<Sample>,
}

#[derive(Debug, Serialize)]
struct Idle {
    contender: String,
    bytes: u64,
}

/// Everything that was measured, in order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    seconds: u64,
    connections: u16,
    rounds: u16,
    pool: u16,
    rate: Option<u32>,
    /// Resident memory of each server before its first request.
    idle: Vec<Idle>,
    entries: Vec<Entry>,
}

impl Report {
    pub(crate) fn new(compare: &Compare) -> Self {
        Self {
            seconds: compare.seconds,
            connections: compare.connections,
            rounds: compare.rounds,
            pool: compare.pool,
            rate: compare.rate,
            idle: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn idle(&mut self, contender: &str, bytes: Option<u64>) {
        self.idle.extend(bytes.map(|bytes| Idle {
            contender: contender.to_owned(),
            bytes,
        }));
    }

    pub(crate) fn add(&mut self, workload: Workload, contender: &str, sample: Sample) {
        let title = workload.title();
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.workload == title && entry.contender == contender);
        if let Some(entry) = known {
            entry.samples.push(sample);
            entry.median = Some(Sample::median(&entry.samples));
        } else {
            self.entries.push(Entry {
                workload: title,
                contender: contender.to_owned(),
                median: Some(sample.clone()),
                samples: vec![sample],
            });
        }
    }

    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let mut file = File::create(path)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        writeln!(file)?;
        Ok(())
    }

    /// One table a workload, and how each contender stands to the hand-written servers.
    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        let pace = self.rate.map_or_else(
            || "closed loop".to_owned(),
            |rate| format!("open loop, {rate}/s"),
        );
        writeln!(
            out,
            "{} rounds of {} s, medians; {} connections, {pace}; µs are processor time for one request",
            self.rounds, self.seconds, self.connections
        )?;
        for idle in &self.idle {
            writeln!(
                out,
                "  {:<24} {:>8.1} MB resident at start",
                idle.contender,
                megabytes(idle.bytes)
            )?;
        }
        let mut titles: Vec<&str> = self.entries.iter().map(|entry| entry.workload).collect();
        titles.dedup();
        for title in titles {
            let rows: Vec<(&str, &Sample)> = self
                .entries
                .iter()
                .filter(|entry| entry.workload == title)
                .filter_map(|entry| Some((entry.contender.as_str(), entry.median.as_ref()?)))
                .collect();
            print_table(out, title, &rows)?;
            print_ratios(out, &rows)?;
        }
        Ok(())
    }
}

fn print_table(out: &mut impl Write, title: &str, rows: &[(&str, &Sample)]) -> Result<()> {
    writeln!(out, "\n{title}")?;
    writeln!(
        out,
        "  {:<24} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "",
        "req/s",
        "MB/s",
        "server µs",
        "db µs",
        "load µs",
        "p50 ms",
        "p99",
        "p99.9",
        "max",
        "1st byte",
        "peak MB"
    )?;
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    for (name, sample) in rows {
        let peak = match (sample.peak_bytes, sample.grown_bytes) {
            (Some(peak), Some(grown)) => {
                format!("{:.1} (+{:.1})", megabytes(peak), megabytes(grown))
            }
            _ => "-".to_owned(),
        };
        writeln!(
            out,
            "  {name:<24} {:>9.1} {:>8.1} {:>9} {:>8} {:>8} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>9.2} {peak:>8}",
            sample.requests_per_second,
            sample.megabytes_per_second,
            number(sample.server_micros),
            number(sample.database_micros),
            number(sample.load_micros),
            sample.p50,
            sample.p99,
            sample.p999,
            sample.max,
            sample.first_byte,
        )?;
    }
    Ok(())
}

/// Selkie's figures divided by each of the others'.
fn print_ratios(out: &mut impl Write, rows: &[(&str, &Sample)]) -> Result<()> {
    for (name, ours) in rows.iter().filter(|(name, _)| name.contains("selkie")) {
        for (other, theirs) in rows.iter().filter(|(other, _)| other != name) {
            let ratio = |ours: Option<f64>, theirs: Option<f64>| match (ours, theirs) {
                (Some(ours), Some(theirs)) if theirs > 0.0 => format!("{:.2}", ours / theirs),
                _ => "-".to_owned(),
            };
            writeln!(
                out,
                "  {name} / {other}: requests ×{}, server µs ×{}, db µs ×{}, p99 ×{}",
                ratio(
                    Some(ours.requests_per_second),
                    Some(theirs.requests_per_second)
                ),
                ratio(ours.server_micros, theirs.server_micros),
                ratio(ours.database_micros, theirs.database_micros),
                ratio(Some(ours.p99), Some(theirs.p99)),
            )?;
        }
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
