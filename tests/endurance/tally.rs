//! What the callers were told, and how long nothing succeeded. Judges nothing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Number of messages of one kind that are kept; all are counted.
const KEPT_MAX: usize = 20;

/// What all callers of a run share.
#[derive(Debug)]
pub(crate) struct Tally(Mutex<Inside>);

#[derive(Debug)]
struct Inside {
    told: Told,
    /// What is going on: the last fault.
    now: String,
    last: [Instant; 2],
    /// By fault: the longest time without a success, and without a successful write.
    longest: BTreeMap<String, [Duration; 2]>,
}

/// What callers were told.
#[derive(Debug, Default, Clone)]
pub(crate) struct Told {
    /// Acknowledged inserts: caller, number, id.
    pub(crate) inserts: Vec<(u32, u32, u64)>,
    /// Acknowledged batches: caller, number.
    pub(crate) batches: Vec<(u32, u32)>,
    /// Acknowledged uploads: path of the file, its bytes' checksum.
    pub(crate) uploads: Vec<(String, [u8; 32])>,
    /// By caller: acknowledged additions, and repeated ones that may have been made twice.
    pub(crate) additions: BTreeMap<u32, (u64, u64)>,
    /// By caller: the version of its counter that was acknowledged last.
    pub(crate) versions: BTreeMap<u32, u64>,
    pub(crate) reads: u64,
    /// Reads with a position.
    pub(crate) positioned: u64,
    pub(crate) requests: u64,
    /// Steps of a mixed load that ended as they must, by name.
    pub(crate) steps: BTreeMap<&'static str, u64>,
    pub(crate) retries: u64,
    /// Number of retries by reason: the code of the error response, or what went wrong with the connection.
    pub(crate) reasons: BTreeMap<String, u64>,
    pub(crate) refused: Messages,
    pub(crate) stale: Messages,
    pub(crate) wrong: Messages,
    /// Reads without a position that were older than an earlier read of the same caller.
    pub(crate) reordered: u64,
}

/// Counts all messages, and keeps the text of the first [`KEPT_MAX`].
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

/// What a success was for.
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

    /// Changes what was told.
    pub(crate) fn tell<T>(&self, change: impl FnOnce(&mut Told) -> T) -> T {
        change(&mut self.inside().told)
    }

    /// Notes the success of a request.
    pub(crate) fn success(&self, purpose: Purpose) {
        let mut inside = self.inside();
        inside.told.requests += 1;
        inside.note(purpose == Purpose::Write);
    }

    /// Names the fault that explains what comes now.
    pub(crate) fn begin(&self, fault: &str) {
        let mut inside = self.inside();
        inside.now = fault.to_owned();
        // A silence is the last fault's until here.
        inside.last = [Instant::now(); 2];
    }

    /// Returns by fault the longest time without a success, and without a successful write.
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
