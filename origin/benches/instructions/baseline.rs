//! The figures to compare with: a text file, one operation a line, which reads well in a diff.

use anyhow::{Context as _, Result};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// More than so many hundredths on top is a regression: allocators, hashes' random keys and other versions of
/// the C library move figures by less.
pub(crate) const TOLERATED_PERCENT: f64 = 10.0;
/// A figure that moved by less stays as it is in the file: a diff shows what changed.
const SAME_PERCENT: f64 = 1.0;

const EXPLANATION: &str = "\
# Instructions of one operation, as valgrind counts them. make bench-check compares with these figures,
# make bench-check ACCEPT=1 renews them. They belong to the compiler and the machine of the next line.
";

/// The file.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    belongs_to: String,
    figures: Vec<(String, u64)>,
}

impl Baseline {
    /// The committed file, if there is one.
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

    /// Whether figures of this compiler and machine may be compared with it; else why not.
    pub(crate) fn fits(&self) -> Result<Result<(), String>> {
        let here = compiler_and_machine()?;
        Ok(match here == self.belongs_to {
            true => Ok(()),
            false => Err(format!("the baseline is of {}, and this is {here}.", self.belongs_to)),
        })
    }

    /// The figure of an operation, if it has one.
    pub(crate) fn of(&self, name: &str) -> Option<u64> {
        let found = self.figures.iter().find(|(known, _)| known == name);
        found.map(|(_, figure)| *figure)
    }

    /// Writes these figures.
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

/// A figure beside the one of the baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    before: Option<u64>,
    now: u64,
}

impl Change {
    pub(crate) fn of(before: Option<u64>, now: u64) -> Self {
        Self { before, now }
    }

    /// Also where there is nothing to compare with: a new operation's figure is to be committed.
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

/// What decides about the figures beside the code: the compiler, and what the processor can do.
fn compiler_and_machine() -> Result<String> {
    let output = Command::new("rustc").arg("--version").current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let version = String::from_utf8(output.stdout)?;
    // `rustc 1.95.0 (…)`
    let version: Vec<&str> = version.split_whitespace().take(2).collect();
    Ok(format!("{}, {}-{}{}", version.join(" "), std::env::consts::ARCH, std::env::consts::OS, extensions()))
}

/// Libraries choose their way by these.
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
