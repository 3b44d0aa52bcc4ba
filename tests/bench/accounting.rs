//! Reads a process's processor time and memory from `/proc`.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};

/// `USER_HZ`: the unit of `/proc/<pid>/stat` on every architecture that Linux runs on today. The scheduler keeps the
/// sums in nanoseconds, so rounding to 10 ms hardly matters over a run of seconds.
const TICKS_PER_SECOND: u32 = 100;

/// Returns the user and system time of all threads of a process, running or ended.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let stat = read(pid, "stat")?;
    // The second field is the command's name in parentheses and may contain spaces, so count from its end.
    let after_name = stat.rsplit_once(')').context("stat without a name")?.1;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let field = |index: usize| fields.get(index).and_then(|text| text.parse::<u32>().ok()).context("short stat");
    // Fields 14 and 15 of proc(5). The first two fields were removed, so their indexes here are 11 and 12.
    Ok(Duration::from_secs(1) * (field(11)? + field(12)?) / TICKS_PER_SECOND)
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    kilobytes(&read(pid, "smaps_rollup")?, "Rss:")
}

/// Returns the highest resident memory of a process since its start or the last [`forget_peak`], in bytes.
pub(crate) fn peak(pid: u32) -> Result<u64> {
    kilobytes(&read(pid, "status")?, "VmHWM:")
}

pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").with_context(|| format!("resetting the peak of {pid}"))
}

fn read(pid: u32, file: &str) -> Result<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}")).with_context(|| format!("reading {file} of process {pid}"))
}

fn kilobytes(text: &str, label: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label)).with_context(|| format!("no {label}"))?;
    let number = line.trim().trim_end_matches("kB").trim().parse::<u64>()?;
    Ok(number * 1024)
}
