//! Compares the instructions that each stage of a request takes with the baseline. `make bench-check` runs it.
//!
//! Times vary on a machine with other load; counts of instructions don't. Valgrind's callgrind counts each operation in
//! a process of its own, which runs this program again. `baseline.txt` has the figures to compare with
//! (CONTRIBUTING.md, Tests).
#![allow(clippy::expect_used, reason = "what is measured here is known to be right")]

mod baseline;
mod operations;
#[path = "../material/pictures.rs"]
mod pictures;
#[path = "../material/requests.rs"]
mod requests;

use anyhow::{Context as _, Result, bail};
use baseline::{Baseline, Change};
use operations::{Operation, operations};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Runs `work` repeatedly. Callgrind counts this function and all that it calls; [`count`] names it in an argument.
#[inline(never)]
fn counted_by_callgrind(work: &mut dyn FnMut(), times: u32) {
    for _ in 0..times {
        black_box(&mut *work)();
    }
}

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--run", name] => run(name),
        ["--accept"] => accept(),
        [] => check(),
        _ => bail!("only --accept is known here, not {}", arguments.join(" ")),
    }
}

fn run(name: &str) -> Result<ExitCode> {
    let found = operations().into_iter().find(|operation| operation.name == name);
    let Operation { times, prepare, .. } = found.context("no operation of that name")?;
    let mut work = prepare();
    // The first run fills tables and caches, and isn't counted.
    work();
    counted_by_callgrind(&mut work, times);
    Ok(ExitCode::SUCCESS)
}

fn accept() -> Result<ExitCode> {
    let mut baseline = Baseline::read()?.unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let mut counts = Vec::new();
    for operation in operations() {
        let count = count(&operation)?;
        writeln!(out, "{count:>14}  {}", operation.name)?;
        counts.push((operation.name, count));
    }
    baseline.accept(counts)?;
    writeln!(out, "The baseline holds these figures now, where they moved by more than a hundredth.")?;
    Ok(ExitCode::SUCCESS)
}

fn check() -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let Some(baseline) = Baseline::read()? else {
        bail!("there is no baseline: make bench-check ACCEPT=1 writes one");
    };
    if let Err(other) = baseline.fits()? {
        writeln!(out, "Nothing is checked: {other}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut slower = Vec::new();
    writeln!(out, "{:>14} {:>14} {:>8}", "baseline", "now", "")?;
    for operation in operations() {
        let count = count(&operation)?;
        let change = Change::of(baseline.of(&operation.name), count);
        writeln!(out, "{change}  {}", operation.name)?;
        if change.is_too_much() {
            slower.push((operation.name, change));
        }
    }
    if slower.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "\nThese take over {} % more instructions than the baseline says:", baseline::TOLERATED_PERCENT)?;
    for (name, change) in slower {
        writeln!(out, "{change}  {name}")?;
    }
    writeln!(out, "If that is what it must cost, take it over and commit it: make bench-check ACCEPT=1")?;
    Ok(ExitCode::FAILURE)
}

fn count(operation: &Operation) -> Result<u64> {
    let folder = Folder::new()?;
    let profile = folder.0.join("profile");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*counted_by_callgrind*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe()?)
        .args(["--run", &operation.name])
        // The environment and the current directory must not affect the count.
        .env_clear()
        .current_dir(&folder.0)
        .output()
        .context("valgrind can't be run: tools/setup.sh count installs it")?;
    if !output.status.success() {
        bail!("{}: {}", operation.name, String::from_utf8_lossy(&output.stderr));
    }
    Ok(total(&profile)? / u64::from(operation.times))
}

fn total(profile: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(profile)?;
    let sum = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let sum = sum.context("callgrind wrote no sum")?.trim().parse()?;
    match sum {
        0 => bail!("callgrind saw nothing of the operation"),
        sum => Ok(sum),
    }
}

/// A directory, removed on drop, that is the current directory of a counted operation, so that the operation's files
/// have the same relative names in each run.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("selkie-instructions-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error is ignored: the directory is among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
