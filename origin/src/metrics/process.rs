//! Metrics of the process, under the standard names of Prometheus, most of them from `/proc`.

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;

pub(super) fn register(registry: &mut Registry) {
    if let Some(most) = getrlimit(Resource::Nofile).current {
        registry.register("process_max_fds", "Maximum open file descriptors", ConstGauge::new(most));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        registry.register("process_open_fds", "Open file descriptors", ConstGauge::new(open.count() as u64));
    }
    let Some(stat) = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Stat::parse(&text)) else {
        return;
    };
    let ticks = clock_ticks_per_second() as f64;
    let cpu = (stat.user_ticks + stat.system_ticks) as f64 / ticks;
    registry.register("process_cpu_seconds", "Processor time, user and system", ConstCounter::new(cpu));
    let memory = stat.resident_pages * page_size() as u64;
    registry.register("process_resident_memory_bytes", "Memory in use", ConstGauge::new(memory));
    registry.register("process_threads", "Threads", ConstGauge::new(stat.threads));
    if let Some(booted) = fs::read_to_string("/proc/stat").ok().and_then(|text| booted_at(&text)) {
        let started = booted as f64 + stat.started_ticks as f64 / ticks;
        let help = "Start of the process, in seconds since 1970";
        registry.register("process_start_time_seconds", help, ConstGauge::new(started));
    }
}

/// Fields of `/proc/self/stat`, see `man 5 proc`.
struct Stat {
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
    /// The start of the process, in clock ticks since the start of the machine.
    started_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field, the program's name in brackets, may contain spaces and brackets.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // `number` counts from 1, as the manual does. The first field after the name is number 3.
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self {
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            threads: field(20)?,
            started_ticks: field(22)?,
            resident_pages: field(24)?,
        })
    }
}

/// Returns the start of the machine, in seconds since 1970.
fn booted_at(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_any_name_is_read() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 11 12 0 0 20 0 5 0 9000 1000 77 18446744073709551615";
        let stat = Stat::parse(stat).unwrap();
        let Stat { user_ticks, system_ticks, threads, started_ticks, resident_pages } = stat;
        assert_eq!([user_ticks, system_ticks, threads, started_ticks, resident_pages], [11, 12, 5, 9000, 77]);
        assert!(Stat::parse("7 (a S 1").is_none());
        assert_eq!(booted_at("cpu 1\nbtime 1700000000\nctxt 1"), Some(1_700_000_000));
    }
}
