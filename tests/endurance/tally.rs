//! Records the answers that callers got, and the longest times without a success. Does not judge
//! them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of messages of one kind whose text is kept.
const KEPT_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct Tally(Mutex<Inside>);

#[derive(Debug)]
struct Inside {
    told: Told,
    /// Title of the latest fault. Times without a success are attributed to it.
    now: String,
    last: [Instant; 2],
    /// For each fault: the longest time without a success, and without a successful write.
    longest: BTreeMap<String, [Duration; 2]>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Told {
    pub(crate) inserts: Vec<(u32, u32, u64)>,
    pub(crate) batches: Vec<(u32, u32)>,
    /// Acknowledged uploads: path of the file, its bytes' checksum.
    pub(crate) uploads: Vec<(String, [u8; 32])>,
    /// By caller: number of acknowledged additions, and number of failed attempts, each of which
    /// may have added as well.
    pub(crate) additions: BTreeMap<u32, (u64, u64)>,
    pub(crate) versions: BTreeMap<u32, u64>,
    pub(crate) reads: u64,
    pub(crate) positioned: u64,
    pub(crate) requests: u64,
    pub(crate) steps: BTreeMap<&'static str, u64>,
    pub(crate) retries: u64,
    /// Number of retries by reason: the code of the error response, or what went wrong with the connection.
    pub(crate) reasons: BTreeMap<String, u64>,
    pub(crate) refused: Messages,
    pub(crate) stale: Messages,
    pub(crate) wrong: Messages,
    /// Number of reads without a position that lacked the caller's last acknowledged insert.
    pub(crate) reordered: u64,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Messages {
    pub(crate) count: u64,
    pub(crate) first: Vec<String>,
}

impl Messages {
    pub(crate) fn add(&mut self, message: String) {
        self.count += 1;
        if self.first.len() < KEPT_MAX {
            self.first.push(message);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let inside = Inside {
            told: Told::default(),
            now: "none".to_owned(),
            last: [Instant::now(); 2],
            longest: BTreeMap::new(),
        };
        Self(Mutex::new(inside))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell<T>(&self, change: impl FnOnce(&mut Told) -> T) -> T {
        change(&mut self.inside().told)
    }

    pub(crate) fn success(&self, purpose: Purpose) {
        let mut inside = self.inside();
        inside.told.requests += 1;
        inside.note(purpose == Purpose::Write);
    }

    /// Begins the time of a fault: times without a success are attributed to it from now on.
    pub(crate) fn begin(&self, fault: &str) {
        let mut inside = self.inside();
        inside.now = fault.to_owned();
        // A time without a success that began before this fault is not attributed to it.
        inside.last = [Instant::now(); 2];
    }

    /// Returns, for each fault, the longest time without a success, and without a successful write.
    pub(crate) fn longest(&self) -> BTreeMap<String, [Duration; 2]> {
        self.inside().longest.clone()
    }
}

impl Inside {
    fn note(&mut self, write: bool) {
        let now = Instant::now();
        let longest = self.longest.entry(self.now.clone()).or_default();
        for (index, last) in self.last.iter_mut().enumerate().take(if write { 2 } else { 1 }) {
            longest[index] = longest[index].max(now.duration_since(*last));
            *last = now;
        }
    }
}
