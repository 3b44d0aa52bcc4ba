//! One fetch for many: of those who look for the same at once, one asks the origin, and the others wait.
//!
//! Requests of an isolate share nothing that belongs to one of them, since the platform forbids it: who waits looks
//! here from time to time, by timers of its own.

use super::Lookup;
use shared::fingerprint::Fingerprint;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use uuid::Uuid;

/// Milliseconds for which one that fetches is waited for: as long as a statement may run. One that takes longer was
/// cut off by the platform, which tells nobody.
const LEAD_MAX_MS: u64 = 30_000;

/// Milliseconds for which nobody waits for an answer that can't be cached (too long, no success): else every caller would wait
/// for one answer and then ask for another.
const NOT_KEPT_MS: u64 = 10_000;

/// Reads that are fetched, or were lately: about 100 bytes each. Of more, each is fetched by itself.
const TURNS_MAX_COUNT: usize = 1_024;

/// Reads that are fetched at once by those for whom others wait: each holds its answer whole, up to
/// [`CACHED_MAX_BYTES`](super::CACHED_MAX_BYTES), of an isolate's 128 MB. Beyond, each passes as it comes.
const LEADS_MAX_COUNT: usize = 32;

/// The first pause of who waits, and the longest, in milliseconds. Each is half as long again as the one before.
const PAUSE_MIN_MS: u64 = 5;
const PAUSE_MAX_MS: u64 = 100;

/// A moment among the ends of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// What somebody is to do who found nothing.
#[derive(Debug)]
pub enum Turn {
    /// Ask the origin for all that wait: cache the answer, or report that it can't be cached.
    Lead(Lead),
    /// Wait while somebody else fetches it.
    Wait,
    /// Look again: another request cached the answer since.
    LookAgain,
    /// Ask the origin, for nobody else.
    Alone,
}

/// The lead of the request that asks the origin. Dropping it ends it, and those that wait ask by themselves.
#[derive(Debug)]
pub struct Lead {
    turns: Rc<RefCell<SingleFlight>>,
    key: Fingerprint,
    number: u64,
}

#[derive(Debug)]
enum Entry {
    UnderWay { number: u64, key_id: Uuid, since_ms: u64 },
    Kept { at: Moment },
    NotKept { at_ms: u64 },
}

/// Who fetches what.
#[derive(Debug, Default)]
pub(super) struct SingleFlight {
    entries: HashMap<Fingerprint, Entry>,
    /// Counts turns and their ends.
    count: u64,
}

impl SingleFlight {
    pub(super) fn moment(&self) -> Moment {
        Moment(self.count)
    }

    pub(super) fn is_under_way(&self, key: Fingerprint, now_ms: u64) -> bool {
        match self.entries.get(&key) {
            Some(Entry::UnderWay { since_ms, .. }) => is_recent(*since_ms, now_ms, LEAD_MAX_MS),
            _ => false,
        }
    }

    /// `accepted` tells whether the caller's key may have what another one fetches.
    pub(super) fn take(
        turns: &Rc<RefCell<Self>>,
        lookup: &Lookup,
        accepted: bool,
        looked: Moment,
        now_ms: u64,
    ) -> Turn {
        let mut this = turns.borrow_mut();
        match this.entries.get(&lookup.key) {
            Some(Entry::UnderWay { key_id, .. }) if this.is_under_way(lookup.key, now_ms) => {
                return match accepted || *key_id == lookup.key_id {
                    true => Turn::Wait,
                    false => Turn::Alone,
                };
            }
            Some(Entry::Kept { at }) if *at > looked => return Turn::LookAgain,
            Some(Entry::NotKept { at_ms }) if is_recent(*at_ms, now_ms, NOT_KEPT_MS) => {
                return Turn::Alone;
            }
            _ => {}
        }
        if !this.has_room(lookup.key, now_ms) || this.leads(now_ms) >= LEADS_MAX_COUNT {
            return Turn::Alone;
        }
        this.count += 1;
        let number = this.count;
        let entry = Entry::UnderWay { number, key_id: lookup.key_id, since_ms: now_ms };
        this.entries.insert(lookup.key, entry);
        Turn::Lead(Lead { turns: Rc::clone(turns), key: lookup.key, number })
    }

    fn leads(&self, now_ms: u64) -> usize {
        let entries = self.entries.values();
        let is_led = |entry: &&Entry| match entry {
            Entry::UnderWay { since_ms, .. } => is_recent(*since_ms, now_ms, LEAD_MAX_MS),
            Entry::Kept { .. } | Entry::NotKept { .. } => false,
        };
        entries.filter(is_led).count()
    }

    fn has_room(&mut self, key: Fingerprint, now_ms: u64) -> bool {
        if self.entries.len() >= TURNS_MAX_COUNT && !self.entries.contains_key(&key) {
            self.entries.retain(|_, entry| match entry {
                Entry::UnderWay { since_ms, .. } => is_recent(*since_ms, now_ms, LEAD_MAX_MS),
                Entry::Kept { .. } | Entry::NotKept { .. } => false,
            });
            return self.entries.len() < TURNS_MAX_COUNT;
        }
        true
    }

    /// Ends a turn, unless somebody else took it over.
    fn end(&mut self, key: Fingerprint, number: u64, outcome: Option<Entry>) {
        match self.entries.get(&key) {
            Some(Entry::UnderWay { number: theirs, .. }) if *theirs == number => {}
            _ => return,
        }
        match outcome {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(&key),
        };
    }
}

impl Lead {
    /// Ends the lead: the answer is cached, and lookups from now on find it.
    pub fn kept(self) {
        let mut turns = self.turns.borrow_mut();
        turns.count += 1;
        let at = turns.moment();
        turns.end(self.key, self.number, Some(Entry::Kept { at }));
    }

    /// Ends the lead: the answer can't be cached.
    pub fn not_kept(self, now_ms: u64) {
        let outcome = Entry::NotKept { at_ms: now_ms };
        let mut turns = self.turns.borrow_mut();
        turns.end(self.key, self.number, Some(outcome));
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.turns.borrow_mut().end(self.key, self.number, None);
    }
}

fn is_recent(since_ms: u64, now_ms: u64, most_ms: u64) -> bool {
    now_ms.saturating_sub(since_ms) < most_ms
}

/// The pauses of who waits, until it waits no more.
pub fn pauses() -> impl Iterator<Item = Duration> {
    let (mut pause, mut waited) = (PAUSE_MIN_MS, 0);
    std::iter::from_fn(move || {
        let this = pause;
        pause = (pause + pause / 2).min(PAUSE_MAX_MS);
        waited += this;
        (waited <= LEAD_MAX_MS).then(|| Duration::from_millis(this))
    })
}

#[cfg(test)]
mod tests;
