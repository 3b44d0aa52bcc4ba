//! Compares the cost of a thumbnail with npm's sharp: the same pictures, size and quality, one thread each, in turn.
//!
//! Each measurement is a process of its own, so that its peak of memory can be read. Its processor time is measured
//! after one thumbnail that is not counted.
#![allow(clippy::print_stdout, reason = "a program whose product is what it prints")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use clap::{Parser, Subcommand, value_parser};
use origin::media::image::{Limits, examine};
use origin::media::sniff::sniff;
use serde::{Deserialize, Serialize};

const SHARP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/thumbnails/sharp.mjs");

const PICTURES: [&str; 4] = ["12-mp.jpg", "3-mp.jpg", "12-mp-progressive.jpg", "3-mp.png"];

/// Measure thumbnails against sharp.
#[derive(Debug, Parser)]
#[command(name = "bench-thumbnails")]
struct Arguments {
    #[command(subcommand)]
    command: Option<Step>,
    /// How often each side is measured; medians are printed.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u16).range(1..=50))]
    rounds: u16,
    /// Thumbnails of one measurement.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Picture files to measure with, instead of the four that are made.
    #[arg(long, value_delimiter = ',')]
    pictures: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Step {
    Ours { file: PathBuf, count: u32 },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Measured {
    cpu_ms: f64,
    peak_mb: f64,
    bytes: usize,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(Step::Ours { file, count }) = arguments.command {
        println!("{}", serde_json::to_string(&ours(&file, count)?)?);
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let pictures = if arguments.pictures.is_empty() {
        println!("making the pictures …");
        run(node().arg("make").arg(folder.path()))?;
        PICTURES.map(|name| folder.path().join(name)).to_vec()
    } else {
        arguments.pictures
    };
    println!(
        "thumbnails within 256 × 256, JPEG of quality 80, one thread; medians of {} rounds of {}",
        arguments.rounds, arguments.count
    );
    println!("| picture | size KB | selkie CPU ms | sharp CPU ms | ratio | selkie peak MB | sharp peak MB | bytes |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let this = std::env::current_exe()?;
    for picture in pictures {
        let count = arguments.count.to_string();
        let (mut selkie, mut sharp) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            selkie.push(measure(Command::new(&this).arg("ours").arg(&picture).arg(&count))?);
            sharp.push(measure(node().arg("run").arg(&picture).arg(&count))?);
        }
        let (ours, theirs) = (median(&mut selkie), median(&mut sharp));
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {} / {} |",
            picture.file_name().unwrap_or_default().display(),
            std::fs::metadata(&picture)?.len() / 1024,
            ours.cpu_ms,
            theirs.cpu_ms,
            ours.cpu_ms / theirs.cpu_ms,
            ours.peak_mb,
            theirs.peak_mb,
            ours.bytes,
            theirs.bytes,
        );
    }
    Ok(())
}

fn node() -> Command {
    let mut command = Command::new("node");
    command.arg(SHARP);
    command
}

fn ours(file: &Path, count: u32) -> anyhow::Result<Measured> {
    let head = std::fs::read(file)?;
    let format = sniff(&head).and_then(|sniffed| sniffed.image).context("no picture")?;
    drop(head);
    let once = || -> anyhow::Result<usize> {
        let picture = examine(file, format, &Limits::default())?;
        Ok(picture.thumbnail.context("no thumbnail")?.bytes.len())
    };
    let mut bytes = once()?;
    let before = cpu_ns()?;
    for _ in 0..count {
        bytes = once()?;
    }
    let cpu_ms = (cpu_ns()? - before) as f64 / 1e6 / f64::from(count);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak_kb: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .context("no VmHWM")?;
    Ok(Measured { cpu_ms, peak_mb: peak_kb / 1024.0, bytes })
}

/// Returns the processor time of this thread, the only one, in nanoseconds.
fn cpu_ns() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().context("an empty schedstat")?;
    Ok(first.parse()?)
}

fn measure(command: &mut Command) -> anyhow::Result<Measured> {
    Ok(serde_json::from_slice(&run(command)?)?)
}

fn run(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("{command:?} did not start"))?;
    anyhow::ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

fn median(measured: &mut [Measured]) -> Measured {
    measured.sort_by(|one, other| one.cpu_ms.total_cmp(&other.cpu_ms));
    measured[measured.len() / 2]
}
