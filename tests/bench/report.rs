//! All measurements in order: collects, judges, prints and saves them. Knows nothing of how they were made.

mod table;
mod targets;

use std::{fs, io::Write, path::Path};

use anyhow::{Context as _, Result};
use serde::Serialize;

pub(crate) use self::targets::Bound;
use self::{table::Table, targets::Target};
use crate::{
    arguments::Compare,
    machine::Machine,
    role::Role,
    sample::{Figure, Sample, ratio},
    workload::Workload,
};

/// A workload in a closed loop or at a fixed rate. Each contender is measured with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) workload: Workload,
    /// Requests per second of an open loop; `None` for a closed loop.
    pub(crate) rate: Option<u32>,
}

impl Case {
    pub(crate) fn title(self) -> String {
        let title = self.workload.title();
        match self.rate {
            None => title.to_owned(),
            Some(rate) => {
                let rate = table::amount(f64::from(rate));
                format!("{title}, {rate} a second to each")
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    case: Case,
    role: Role,
    contender: String,
    samples: Vec<Sample>,
    /// The reason why a round has no sample.
    failure: Option<String>,
}

/// An entry as it is saved in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Saved<'a> {
    workload: &'static str,
    rate: Option<u32>,
    role: Role,
    contender: &'a str,
    failure: Option<&'a str>,
    median: Option<Sample>,
    rounds: &'a [Sample],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Setting {
    seconds: u64,
    connections: u16,
    rounds: u16,
    pool: u16,
    machine: Machine,
}

#[derive(Debug)]
pub(crate) struct Report {
    setting: Setting,
    /// Resident memory of each server before its first request, in bytes.
    idle: Vec<(String, u64)>,
    entries: Vec<Entry>,
}

impl Report {
    pub(crate) fn new(compare: &Compare, machine: Machine) -> Self {
        let setting = Setting {
            seconds: compare.seconds,
            connections: compare.connections,
            rounds: compare.rounds,
            pool: compare.pool,
            machine,
        };
        Self { setting, idle: Vec::new(), entries: Vec::new() }
    }

    pub(crate) fn idle(&mut self, contender: &str, bytes: Option<u64>) {
        self.idle.extend(bytes.map(|bytes| (contender.to_owned(), bytes)));
    }

    pub(crate) fn add(&mut self, case: Case, role: Role, contender: &str, sample: Sample) {
        self.entry(case, role, contender).samples.push(sample);
    }

    pub(crate) fn fail(&mut self, case: Case, role: Role, contender: &str, error: String) {
        self.entry(case, role, contender).failure = Some(error);
    }

    fn entry(&mut self, case: Case, role: Role, contender: &str) -> &mut Entry {
        let is_it = |entry: &Entry| entry.case == case && entry.contender == contender;
        let at = self.entries.iter().position(is_it).unwrap_or_else(|| {
            self.entries.push(Entry {
                case,
                role,
                contender: contender.to_owned(),
                samples: Vec::new(),
                failure: None,
            });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.entries.iter().any(|entry| entry.failure.is_some())
    }

    /// Returns the median of a contender's rounds; `None` if the contender was not measured.
    pub(crate) fn median(&self, case: Case, contender: &str) -> Option<Sample> {
        let of = |entry: &&Entry| entry.case == case && entry.contender == contender;
        Sample::median(&self.entries.iter().find(of)?.samples)
    }

    fn rounds(&self, case: Case, role: Role) -> &[Sample] {
        let of = |entry: &&Entry| entry.case == case && entry.role == role;
        let entry = self.entries.iter().find(of);
        entry.map_or(&[], |entry| &entry.samples)
    }

    /// Returns the rounds of the floor with as many connections as callers; if it was not measured, the rounds of the
    /// other floor.
    fn floor(&self, case: Case) -> &[Sample] {
        match self.rounds(case, Role::WideFloor) {
            [] => self.rounds(case, Role::Floor),
            rounds => rounds,
        }
    }

    fn against_floor(&self, case: Case, ours: &[Sample], figure: Figure) -> Option<f64> {
        ratio(ours, self.floor(case), figure)
    }

    /// Returns each case once, in the order of measurement.
    fn cases(&self) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        for entry in &self.entries {
            if !cases.contains(&entry.case) {
                cases.push(entry.case);
            }
        }
        cases
    }

    fn entries_of(&self, case: Case) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.case == case)
    }

    fn preamble(&self) -> String {
        let Setting { seconds, connections, rounds, pool, machine } = &self.setting;
        format!(
            "{rounds} rounds of {seconds} s, medians; {connections} connections, {pool} to MariaDB. {}: {}, {} cores, \
             Linux {}, MariaDB {}.",
            machine.date, machine.processor, machine.cores, machine.kernel, machine.mariadb
        )
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{}", self.preamble())?;
        writeln!(out, "µs are processor time for one request; × floor and × axum are ratios of req/s")?;
        for (contender, bytes) in &self.idle {
            let megabytes = table::megabytes(*bytes);
            writeln!(out, "  {contender:<24} {megabytes:>8.1} MB resident at start")?;
        }
        for case in self.cases() {
            write!(out, "\n{}", Table::of(self, case).plain())?;
        }
        for entry in &self.entries {
            if let Some(failure) = &entry.failure {
                let title = entry.case.title();
                writeln!(out, "\nFAILED: {}, {title}: {failure}", entry.contender)?;
            }
        }
        writeln!(out, "\nTargets")?;
        for target in targets::all(self) {
            writeln!(out, "  {}", target.plain())?;
        }
        Ok(())
    }

    /// Writes `bench.json`, and what was printed as `requests.txt`, into `directory`.
    pub(crate) fn save(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        fs::write(directory.join("bench.json"), self.json()?)?;
        self.print(&mut fs::File::create(directory.join("requests.txt"))?)
    }

    /// Returns JSON with one line per entry, so that a diff shows what changed.
    fn json(&self) -> Result<String> {
        let entries = self.entries.iter().map(|entry| {
            serde_json::to_string(&Saved {
                workload: entry.case.workload.title(),
                rate: entry.case.rate,
                role: entry.role,
                contender: &entry.contender,
                failure: entry.failure.as_deref(),
                median: Sample::median(&entry.samples),
                rounds: &entry.samples,
            })
        });
        let targets = targets::all(self);
        let targets = targets.iter().map(Target::json);
        Ok(format!(
            "{{\n\"setting\": {},\n\"idleBytes\": {},\n\"targets\": [\n{}\n],\n\"entries\": [\n{}\n]\n}}\n",
            serde_json::to_string(&self.setting)?,
            serde_json::to_string(&self.idle)?,
            targets.collect::<serde_json::Result<Vec<_>>>()?.join(",\n"),
            entries.collect::<serde_json::Result<Vec<_>>>()?.join(",\n"),
        ))
    }
}
