//! The instruction counts to compare with: a text file with one operation per line, which reads well in a diff.

use anyhow::{Context as _, Result};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// More than this increase is a regression: memory allocators, random keys of hash tables and versions of the C library
/// change counts by less.
pub(crate) const TOLERATED_PERCENT: f64 = 10.0;
/// A count that changed by less stays unchanged in the file, so that a diff shows only real changes.
const SAME_PERCENT: f64 = 1.0;

const EXPLANATION: &str = "\
# Instructions of one operation, as valgrind counts them. make bench-check compares with these figures,
# make bench-check ACCEPT=1 renews them. They belong to the compiler and the machine of the next line.
";

/// The content of `baseline.txt`: the compiler and machine, and the count of each operation.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    belongs_to: String,
    figures: Vec<(String, u64)>,
}

impl Baseline {
    /// Reads `baseline.txt`; `None` if it doesn't exist.
    pub(crate) fn read() -> Result<Option<Self>> {
        let text = match fs::read_to_string(path()) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("the baseline can't be read"),
        };
        let mut baseline = Self::default();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                comment.clone_into(&mut baseline.belongs_to);
            } else if let Some((figure, name)) = line.trim_start().split_once("  ") {
                let figure = figure.parse().with_context(|| format!("no figure: {line}"))?;
                baseline.figures.push((name.to_owned(), figure));
            }
        }
        Ok(Some(baseline))
    }

    /// Returns whether the baseline is of this compiler and machine; the inner `Err` says why not.
    pub(crate) fn fits(&self) -> Result<Result<(), String>> {
        let here = compiler_and_machine()?;
        Ok(match here == self.belongs_to {
            true => Ok(()),
            false => Err(format!("the baseline is of {}, and this is {here}.", self.belongs_to)),
        })
    }

    /// Returns the baseline's count of an operation; `None` if it has none.
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        let found = self.figures.iter().find(|(known, _)| known == name);
        found.map(|(_, figure)| *figure)
    }

    pub(crate) fn accept(&mut self, counts: Vec<(String, u64)>) -> Result<()> {
        let fits = self.fits()?.is_ok();
        self.belongs_to = compiler_and_machine()?;
        let mut text = format!("{EXPLANATION}# {}\n", self.belongs_to);
        for (name, count) in counts {
            let known = self.of(&name).filter(|_| fits);
            let same = known.filter(|known| percent(*known, count).abs() < SAME_PERCENT);
            writeln!(text, "{:>14}  {name}", same.unwrap_or(count))?;
        }
        fs::write(path(), text).context("the baseline can't be written")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    before: Option<u64>,
    now: u64,
}

impl Change {
    pub(crate) fn of(before: Option<u64>, now: u64) -> Self {
        Self { before, now }
    }

    /// Returns whether the count rose by more than [`TOLERATED_PERCENT`]. Also `true` if the baseline has no count yet.
    pub(crate) fn is_too_much(self) -> bool {
        self.before.is_none_or(|before| percent(before, self.now) > TOLERATED_PERCENT)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(before) => write!(f, "{before:>14} {:>14} {:>+7.1}%", self.now, percent(before, self.now)),
            None => write!(f, "{:>14} {:>14} {:>8}", "-", self.now, "new"),
        }
    }
}

fn percent(before: u64, now: u64) -> f64 {
    (now as f64 / before.max(1) as f64 - 1.0) * 100.0
}

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "benches/instructions/baseline.txt"].iter().collect()
}

fn compiler_and_machine() -> Result<String> {
    let output = Command::new("rustc").arg("--version").current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let version = String::from_utf8(output.stdout)?;
    // `rustc 1.95.0 (…)`
    let version: Vec<&str> = version.split_whitespace().take(2).collect();
    Ok(format!("{}, {}-{}{}", version.join(" "), std::env::consts::ARCH, std::env::consts::OS, extensions()))
}

#[cfg(target_arch = "x86_64")]
fn extensions() -> &'static str {
    match std::arch::is_x86_feature_detected!("avx2") {
        true => " with AVX2",
        false => "",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn extensions() -> &'static str {
    ""
}
