//! The measurements of both workers, as a table with their differences and as JSON.

use std::{fs::File, io::Write, path::Path, time::Duration};

use anyhow::Result;
use serde::Serialize;

use super::{COLD, WARM, worker::Kind};
use crate::load::Outcome;

/// Targets: the time that the edge may add, and the share of the pass-through's speed that it must reach.
const WARM_MAX_MICROS: f64 = 150.0;
const COLD_MAX_MICROS: f64 = 600.0;
const P50_MAX_MS: f64 = 0.5;
const LARGE_MIN_SHARE: f64 = 0.95;
/// Maximum growth of memory by a large answer: a few pieces in flight, not the whole answer.
const LARGE_MAX_GROWTH_MB: f64 = 16.0;

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sample {
    requests_per_second: f64,
    /// Processor time of workerd per request, in microseconds.
    cpu_micros: f64,
    /// Median milliseconds to the last byte.
    p50: f64,
    p99: f64,
}

impl Sample {
    pub(super) fn of(outcome: &Outcome, cpu: Duration) -> Self {
        let at = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            requests_per_second: outcome.requests as f64 / outcome.elapsed.as_secs_f64(),
            cpu_micros: cpu.as_secs_f64() * 1e6 / outcome.requests.max(1) as f64,
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Download {
    megabytes_per_second: f64,
    cpu_ms: f64,
    grown_megabytes: f64,
}

impl Download {
    pub(super) fn new(bytes: u64, elapsed: Duration, cpu: Duration, grown: u64) -> Self {
        Self {
            megabytes_per_second: bytes as f64 / 1e6 / elapsed.as_secs_f64(),
            cpu_ms: cpu.as_secs_f64() * 1e3,
            grown_megabytes: grown as f64 / 1e6,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    origin: &'static str,
    load: &'static str,
    pass_through: Vec<Sample>,
    edge: Vec<Sample>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    worker: Kind,
    first_answer_ms: f64,
    resident_megabytes: f64,
}

#[derive(Debug, Serialize)]
struct Bar {
    name: String,
    value: f64,
    bound: f64,
    holds: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    seconds: u64,
    rounds: u16,
    connections: u16,
    starts: Vec<Start>,
    entries: Vec<Entry>,
    downloads: [Vec<Download>; 2],
    bars: Vec<Bar>,
}

impl Report {
    pub(super) fn new(seconds: u64, rounds: u16, connections: u16) -> Self {
        Self {
            seconds,
            rounds,
            connections,
            starts: Vec::new(),
            entries: Vec::new(),
            downloads: [Vec::new(), Vec::new()],
            bars: Vec::new(),
        }
    }

    pub(super) fn add_start(&mut self, worker: Kind, first_answer: Duration, resident: u64) {
        self.starts.push(Start {
            worker,
            first_answer_ms: first_answer.as_secs_f64() * 1e3,
            resident_megabytes: resident as f64 / 1e6,
        });
    }

    pub(super) fn add(&mut self, origin: &'static str, load: &'static str, worker: Kind, sample: Sample) {
        let is_it = |entry: &Entry| entry.origin == origin && entry.load == load;
        let at = self.entries.iter().position(is_it);
        let at = at.unwrap_or_else(|| {
            self.entries.push(Entry { origin, load, pass_through: Vec::new(), edge: Vec::new() });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        match worker {
            Kind::PassThrough => entry.pass_through.push(sample),
            Kind::Edge => entry.edge.push(sample),
        }
    }

    pub(super) fn add_download(&mut self, worker: Kind, download: Download) {
        self.downloads[usize::from(worker == Kind::Edge)].push(download);
    }

    /// Checks which targets are met; the last step before printing or writing.
    pub(super) fn judge(&mut self) {
        let mut bars = Vec::new();
        let mut below = |name: String, value: f64, bound: f64| {
            let holds = value < bound;
            bars.push(Bar { name, value, bound, holds });
        };
        for entry in &self.entries {
            let bound = match entry.load {
                WARM => WARM_MAX_MICROS,
                COLD => COLD_MAX_MICROS,
                _ => continue,
            };
            let name = |what| format!("{what} ({}, {} origin)", entry.load, entry.origin);
            below(name("added µs of processor"), entry.added(|s| s.cpu_micros), bound);
            if entry.load == WARM {
                below(name("added p50 in ms"), entry.added(|s| s.p50), P50_MAX_MS);
            }
        }
        let [through, edge] = &self.downloads;
        if !edge.is_empty() {
            let speed = |downloads: &[Download]| median(downloads, |d| d.megabytes_per_second);
            let slowness = speed(through) / speed(edge);
            below("time of a large answer, ×".into(), slowness, 1.0 / LARGE_MIN_SHARE);
            let grown = median(edge, |d| d.grown_megabytes);
            below("MB of growth for it".into(), grown, LARGE_MAX_GROWTH_MB);
        }
        self.bars = bars;
    }

    pub(super) fn write_json(&self, path: &Path) -> Result<()> {
        let mut file = File::create(path)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        writeln!(file)?;
        Ok(())
    }

    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "{} rounds of {} s for either, medians; {} connections but where one caller is named; µs are workerd's \
             processor time for one request",
            self.rounds, self.seconds, self.connections
        )?;
        for start in &self.starts {
            writeln!(
                out,
                "  {:<14} first answer {:.0} ms after its start, then {:.1} MB resident",
                start.worker.title(),
                start.first_answer_ms,
                start.resident_megabytes
            )?;
        }
        for entry in &self.entries {
            entry.print(out)?;
        }
        self.print_downloads(out)?;
        writeln!(out)?;
        for bar in &self.bars {
            let verdict = if bar.holds { "holds" } else { "FAILS" };
            writeln!(out, "  {verdict}: {} {:.2}, below {:.2}", bar.name, bar.value, bar.bound)?;
        }
        Ok(())
    }

    fn print_downloads(&self, out: &mut impl Write) -> Result<()> {
        if self.downloads[0].is_empty() {
            return Ok(());
        }
        writeln!(out, "\nA large answer")?;
        for (kind, downloads) in Kind::BOTH.into_iter().zip(&self.downloads) {
            let of = |figure: fn(&Download) -> f64| median(downloads, figure);
            writeln!(
                out,
                "  {:<14} {:>7.0} MB/s, {:>6.0} ms of processor, memory grows by {:.1} MB",
                kind.title(),
                of(|d| d.megabytes_per_second),
                of(|d| d.cpu_ms),
                of(|d| d.grown_megabytes),
            )?;
        }
        Ok(())
    }
}

impl Entry {
    fn added(&self, figure: fn(&Sample) -> f64) -> f64 {
        let pairs = self.edge.iter().zip(&self.pass_through);
        let differences: Vec<f64> = pairs.map(|(edge, through)| figure(edge) - figure(through)).collect();
        median(&differences, |difference| *difference)
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\n{}, {} origin", self.load, self.origin)?;
        writeln!(out, "  {:<14} {:>9} {:>9} {:>8} {:>8}", "", "req/s", "µs", "p50 ms", "p99")?;
        let mut row = |name: &str, of: &dyn Fn(fn(&Sample) -> f64) -> f64| {
            writeln!(
                out,
                "  {name:<14} {:>9.0} {:>9.1} {:>8.3} {:>8.3}",
                of(|s| s.requests_per_second),
                of(|s| s.cpu_micros),
                of(|s| s.p50),
                of(|s| s.p99)
            )
        };
        let through = |figure: fn(&Sample) -> f64| median(&self.pass_through, figure);
        let edge = |figure: fn(&Sample) -> f64| median(&self.edge, figure);
        row(Kind::PassThrough.title(), &through)?;
        row(Kind::Edge.title(), &edge)?;
        row("added", &|figure| self.added(figure))?;
        let share = edge(|s| s.requests_per_second) / through(|s| s.requests_per_second);
        writeln!(out, "  the edge's throughput is ×{share:.2}")?;
        Ok(())
    }
}

fn median<T>(samples: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
