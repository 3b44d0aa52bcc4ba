//! Decides which requests may be sent to an origin, and which wait. A class of callers has slots of its own, so that no
//! class can starve another; the groups of a class share its slots fairly.
//!
//! A group may use all slots while no other group needs them. Otherwise, the next free slot goes to the waiting group
//! that has the fewest. Some slots are reserved for groups that use few, since requests may hold theirs for long.

use super::caller::{Caller, Class};
use super::groups::Groups;
use shared::error::{ErrorCode, Problem};
use shared::limits::{
    EDGE_HEALTH_REQUESTS_MAX_COUNT, EDGE_PUBLIC_REQUESTS_MAX_COUNT, EDGE_QUEUE_WAIT_MAX_MS, EDGE_REQUESTS_MAX_COUNT,
    EDGE_UNVERIFIED_REQUESTS_MAX_COUNT,
};
use std::cell::RefCell;

/// Milliseconds after which a request no longer occupies its slot. The runtime can abandon a request without dropping
/// its future: without this limit, it would occupy the slot for ever. A side effect is that longer uploads occupy none.
const HELD_MAX_MS: u64 = 120_000;

/// Milliseconds without a question from a waiting request, which asks at least ten times a second, after which it counts
/// as abandoned by the runtime.
const SILENT_MAX_MS: u64 = 2 * EDGE_QUEUE_WAIT_MAX_MS;

/// Of the slots of a class, as many more are reserved: one for each five that any group may use.
const RESERVED_SHARE: usize = 5;

/// A group that has fewer slots than this fraction of its class may use reserved ones.
const FEW_SHARE: usize = 50;

/// The requests of this isolate that wait for an origin, or until they may be sent to one.
#[derive(Debug)]
pub struct InFlight {
    pools: RefCell<[Pool; Class::ALL.len()]>,
}

/// The requests of one class.
#[derive(Debug)]
struct Pool {
    /// The maximum of requests in flight that any group may have, and of waiting requests.
    whole: usize,
    groups: Groups<Usage>,
    /// In the order of their numbers, which is that of their arrival.
    entries: Vec<Entry>,
    last: u64,
    total: Usage,
    /// In ms since 1970: when abandoned requests were last looked for.
    swept: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    in_flight: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    group: usize,
    state: State,
    /// In ms since 1970: when the request arrived.
    began: u64,
    /// In ms since 1970: when the request asked last.
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// The request has a slot, but has not asked since.
    Granted,
    InFlight,
    /// Others need the entry's place in the queue.
    Displaced,
}

/// A place in the queue, and then a slot. Dropping it ends either.
#[derive(Debug)]
pub struct Slot<'a> {
    in_flight: &'a InFlight,
    class: Class,
    number: u64,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { pools: RefCell::new(Class::ALL.map(Pool::new)) }
    }
}

impl InFlight {
    /// Lets a request wait for a slot from `now` on, in ms since 1970. [`Slot::is_granted`] says whether it has one.
    pub fn begin(&self, caller: &Caller, now: u64) -> Slot<'_> {
        let class = caller.class();
        let number = self.pools.borrow_mut()[class as usize].begin(caller.group(), now);
        Slot { in_flight: self, class, number }
    }
}

impl Slot<'_> {
    /// Returns whether the request may be sent. If not, ask again within a tenth of a second.
    ///
    /// # Errors
    /// `overloaded` if the request has waited for too long, or too many wait; `rate_limited` instead if its group uses
    /// its share and others wait.
    pub fn is_granted(&self, now: u64) -> Result<bool, Problem> {
        self.in_flight.pools.borrow_mut()[self.class as usize]
            .is_granted(self.number, now)
            .map_err(|refused| refused.problem(self.class))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.in_flight.pools.borrow_mut()[self.class as usize].end(self.number);
    }
}

/// Why a request gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// Its group has this many slots, its share, while other groups wait.
    ShareUsed(usize),
    /// This many slots were in use for too long, or as many requests wait already.
    AllUsed(usize),
}

impl Refused {
    fn problem(self, class: Class) -> Problem {
        match self {
            Self::ShareUsed(share) => Problem::new(
                ErrorCode::RateLimited,
                format!(
                    "{share} requests of {} wait for an origin, and others wait for their turn.",
                    class.group_name()
                ),
            )
            .with_hint("Send fewer requests at once."),
            Self::AllUsed(whole) => Problem::new(
                ErrorCode::Overloaded,
                format!("This edge lets at most {whole} such requests wait for an origin, and others were first."),
            ),
        }
    }
}

impl Pool {
    fn new(class: Class) -> Self {
        let whole = match class {
            Class::Verified => EDGE_REQUESTS_MAX_COUNT,
            Class::Unverified => EDGE_UNVERIFIED_REQUESTS_MAX_COUNT,
            Class::Public => EDGE_PUBLIC_REQUESTS_MAX_COUNT,
            Class::Health => EDGE_HEALTH_REQUESTS_MAX_COUNT,
        };
        let (groups, total) = (Groups::default(), Usage::default());
        Self { whole, groups, entries: Vec::new(), last: 0, total, swept: 0 }
    }

    fn begin(&mut self, group: &str, now: u64) -> u64 {
        if self.total.in_flight >= self.whole {
            self.sweep(now);
        }
        let group = self.groups.index(group);
        self.last += 1;
        self.entries.push(Entry { number: self.last, group, state: State::Waiting, began: now, asked: now });
        self.count(group, |usage| usage.waiting += 1);
        self.grant();
        if self.total.waiting > self.whole {
            self.displace();
        }
        self.last
    }

    fn is_granted(&mut self, number: u64, now: u64) -> Result<bool, Refused> {
        let Some(index) = self.index_of(number) else {
            return Err(Refused::AllUsed(self.whole));
        };
        let entry = &mut self.entries[index];
        entry.asked = now;
        let (group, began) = (entry.group, entry.began);
        match entry.state {
            State::Granted | State::InFlight => {
                entry.state = State::InFlight;
                Ok(true)
            }
            State::Waiting if now < began + EDGE_QUEUE_WAIT_MAX_MS => {
                // If this frees a slot for the request, the next question finds it.
                self.sweep(now);
                Ok(false)
            }
            State::Waiting | State::Displaced => Err(self.refusal(group)),
        }
    }

    fn refusal(&mut self, group: usize) -> Refused {
        let mine = *self.groups.of(group);
        let others_wait = self.total.waiting > mine.waiting;
        let groups = self.groups.used().filter(|usage| **usage != Usage::default()).count();
        match others_wait && mine.in_flight >= self.whole / groups.max(1) {
            true => Refused::ShareUsed(mine.in_flight),
            false => Refused::AllUsed(self.whole),
        }
    }

    fn end(&mut self, number: u64) {
        if let Some(index) = self.index_of(number) {
            self.remove(index);
            self.grant();
        }
    }

    /// Gives free slots to waiting requests.
    fn grant(&mut self) {
        while self.total.waiting > 0 {
            let mut next: Option<(usize, usize)> = None;
            for (index, entry) in self.entries.iter().enumerate() {
                if entry.state != State::Waiting {
                    continue;
                }
                let used = self.groups.of(entry.group).in_flight;
                let is_free = match used < (self.whole / FEW_SHARE).max(1) {
                    true => self.total.in_flight < self.whole + self.whole / RESERVED_SHARE,
                    false => self.total.in_flight < self.whole,
                };
                if is_free && next.is_none_or(|(_, fewest)| used < fewest) {
                    next = Some((index, used));
                }
            }
            let Some((index, _)) = next else {
                return;
            };
            let group = self.set(index, State::Granted);
            self.count(group, |usage| {
                usage.waiting -= 1;
                usage.in_flight += 1;
            });
        }
    }

    /// Takes the newest request of the group with the most waiting requests out of the queue.
    fn displace(&mut self) {
        let most = self.groups.used().map(|usage| usage.waiting).max().unwrap_or_default();
        let groups = &mut self.groups;
        let is_newest = |entry: &Entry| entry.state == State::Waiting && groups.of(entry.group).waiting == most;
        if let Some(index) = self.entries.iter().rposition(is_newest) {
            let group = self.set(index, State::Displaced);
            self.count(group, |usage| usage.waiting -= 1);
        }
    }

    /// Removes abandoned requests, at most once a second.
    fn sweep(&mut self, now: u64) {
        if now < self.swept + 1_000 {
            return;
        }
        self.swept = now;
        for index in (0..self.entries.len()).rev() {
            let entry = &self.entries[index];
            let most = if entry.state == State::InFlight { HELD_MAX_MS } else { SILENT_MAX_MS };
            if entry.asked + most <= now {
                self.remove(index);
            }
        }
        self.grant();
    }

    fn remove(&mut self, index: usize) {
        let entry = self.entries.remove(index);
        self.count(entry.group, |usage| match entry.state {
            State::Waiting => usage.waiting -= 1,
            State::Granted | State::InFlight => usage.in_flight -= 1,
            State::Displaced => {}
        });
    }

    /// Sets the state of an entry, and returns its group.
    fn set(&mut self, index: usize, state: State) -> usize {
        let entry = &mut self.entries[index];
        entry.state = state;
        entry.group
    }

    fn count(&mut self, group: usize, change: impl Fn(&mut Usage)) {
        change(self.groups.of(group));
        change(&mut self.total);
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

#[cfg(test)]
mod tests;
