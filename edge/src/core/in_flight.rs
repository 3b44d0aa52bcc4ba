//! Decides which requests may be sent to an origin, and which wait. Each request to an origin occupies a slot. Each
//! class of callers has slots of its own, so that no class can starve another. The groups of a class share its slots
//! fairly, and so do the members of a group with the group's slots.
//!
//! A member may use all slots while nobody else needs any. Otherwise, the next free slot goes to the waiting group with
//! the fewest slots, and there to the waiting member with the fewest. Since requests may occupy slots for long, some
//! are reserved for groups and members that use few.

use super::caller::{Caller, Class};
use super::groups::{Groups, Member, Used};
use shared::error::{ErrorCode, Problem};
use shared::limits::{
    EDGE_CHANGES_MAX_COUNT, EDGE_HEALTH_CHECKS_IN_FLIGHT_MAX_COUNT, EDGE_PUBLIC_REQUESTS_MAX_COUNT,
    EDGE_QUEUE_WAIT_MAX_MS, EDGE_REQUESTS_MAX_COUNT, EDGE_UNVERIFIED_CHANGES_MAX_COUNT,
    EDGE_UNVERIFIED_REQUESTS_MAX_COUNT,
};
use std::cell::RefCell;

/// Maximum milliseconds for which a request occupies a slot. The runtime can abandon a request without dropping its
/// future; without this limit, its slot would never be free again. A side effect is that longer uploads occupy no slot.
const HELD_MAX_MS: u64 = 120_000;

/// Milliseconds after which a waiting request that no longer calls [`Slot::is_granted`] counts as abandoned by the
/// runtime. Waiting requests call it at least ten times a second.
const SILENT_MAX_MS: u64 = 2 * EDGE_QUEUE_WAIT_MAX_MS;

/// Besides the slots that any member may use, a class has one reserved slot for every five of them.
const RESERVED_SHARE: usize = 5;

/// A group that has less than 1/50 of the slots of its class may use reserved slots. In other groups, a member that has
/// less than that may use the first half of the reserved slots.
const FEW_SHARE: usize = 50;

/// The requests of this isolate that were sent to an origin, and those that wait for a slot.
#[derive(Debug)]
pub struct InFlight {
    pools: RefCell<[Pool; Class::ALL.len()]>,
}

/// The requests of one class.
#[derive(Debug)]
struct Pool {
    /// Maximum number of requests in flight, besides those with reserved slots; also that of waiting requests.
    whole: usize,
    groups: Groups<Usage>,
    /// Sorted by number, in the order of arrival.
    entries: Vec<Entry>,
    last: u64,
    total: Usage,
    /// The number of requests with reserved slots.
    reserved: usize,
    /// When [`Pool::sweep`] last looked for abandoned requests, in ms since 1970.
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
    member: Member,
    state: State,
    has_reserved: bool,
    /// When the request arrived, in ms since 1970.
    began: u64,
    /// When the request last called [`Slot::is_granted`], in ms since 1970.
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// The request has got a slot, but has not called [`Slot::is_granted`] since.
    Granted,
    InFlight,
    /// The request lost its place in the full queue to a request of another caller.
    Displaced,
}

/// A request's place in the queue, later its slot. Dropping this value frees the place or slot.
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
    /// Adds a request to the queue at `now`, in ms since 1970. [`Slot::is_granted`] tells when the request has a slot.
    pub fn begin(&self, caller: &Caller, now: u64) -> Slot<'_> {
        let class = caller.class();
        let number = self.pools.borrow_mut()[class as usize].begin(caller, now);
        Slot { in_flight: self, class, number }
    }
}

impl Slot<'_> {
    /// Returns whether the request may be sent. If not, call this again within 100 ms. Fails with `overloaded` if the
    /// request has waited for too long or too many requests wait; with `rate_limited` instead if the request's group or
    /// member uses its share while others wait.
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
    /// The request's group has its share, this many slots, while other groups wait.
    GroupShare(usize),
    /// The request's member has its share, this many slots, while other members of the group wait.
    MemberShare(usize),
    /// All slots, this many, were in use for too long, or as many requests wait already.
    Capacity(usize),
}

impl Refused {
    fn problem(self, class: Class) -> Problem {
        let (share, name) = match self {
            Self::GroupShare(share) => (share, class.group_name()),
            Self::MemberShare(share) => (share, "this key or user"),
            Self::Capacity(whole) => {
                let message =
                    format!("This edge lets at most {whole} such requests wait for an origin, and others were first.");
                return Problem::new(ErrorCode::Overloaded, message);
            }
        };
        let message = format!("{share} requests of {name} wait for an origin, and others wait for their turn.");
        Problem::new(ErrorCode::RateLimited, message).with_hint("Send fewer requests at once.")
    }
}

impl Pool {
    fn new(class: Class) -> Self {
        let whole = match class {
            Class::Verified => EDGE_REQUESTS_MAX_COUNT,
            Class::Unverified => EDGE_UNVERIFIED_REQUESTS_MAX_COUNT,
            Class::Public => EDGE_PUBLIC_REQUESTS_MAX_COUNT,
            Class::Health => EDGE_HEALTH_CHECKS_IN_FLIGHT_MAX_COUNT,
            Class::Changes => EDGE_CHANGES_MAX_COUNT,
            Class::UnverifiedChanges => EDGE_UNVERIFIED_CHANGES_MAX_COUNT,
        };
        let (groups, total) = (Groups::default(), Usage::default());
        Self { whole, groups, entries: Vec::new(), last: 0, total, reserved: 0, swept: 0 }
    }

    fn begin(&mut self, caller: &Caller, now: u64) -> u64 {
        if self.total.in_flight >= self.whole {
            self.sweep(now);
        }
        let member = self.groups.member(caller.group(), caller.member());
        self.last += 1;
        let (number, state) = (self.last, State::Waiting);
        self.entries.push(Entry { number, member, state, has_reserved: false, began: now, asked: now });
        self.count(member, |usage| usage.waiting += 1);
        self.grant();
        if self.total.waiting > self.whole {
            self.displace();
        }
        self.last
    }

    fn is_granted(&mut self, number: u64, now: u64) -> Result<bool, Refused> {
        let Some(index) = self.index_of(number) else {
            return Err(Refused::Capacity(self.whole));
        };
        let entry = &mut self.entries[index];
        entry.asked = now;
        let (member, began) = (entry.member, entry.began);
        match entry.state {
            State::Granted | State::InFlight => {
                entry.state = State::InFlight;
                Ok(true)
            }
            State::Waiting if now < began + EDGE_QUEUE_WAIT_MAX_MS => {
                // If this frees a slot for the request, its next call returns true.
                self.sweep(now);
                Ok(false)
            }
            State::Waiting | State::Displaced => Err(self.refusal(member)),
        }
    }

    fn refusal(&self, member: Member) -> Refused {
        let (used, count) = (self.groups.used(member), self.groups.count(member));
        let share = self.whole / count.by_group.max(1);
        let share_used = |mine: Usage, all: Usage, share| all.waiting > mine.waiting && mine.in_flight >= share;
        if share_used(used.by_group, self.total, share) {
            Refused::GroupShare(used.by_group.in_flight)
        } else if share_used(used.by_member, used.by_group, share / count.by_member.max(1)) {
            Refused::MemberShare(used.by_member.in_flight)
        } else {
            Refused::Capacity(self.whole)
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
        while self.total.waiting > 0
            && let Some(index) = self.next()
        {
            let is_reserved = self.common() == 0;
            self.entries[index].has_reserved = is_reserved;
            self.reserved += usize::from(is_reserved);
            let member = self.set(index, State::Granted);
            self.count(member, |usage| {
                usage.waiting -= 1;
                usage.in_flight += 1;
            });
        }
        // If unreserved slots are free, requests with reserved slots get them, so that reserved slots become free.
        let common = self.common();
        for entry in self.entries.iter_mut().filter(|entry| entry.has_reserved).take(common) {
            entry.has_reserved = false;
            self.reserved -= 1;
        }
    }

    /// Returns the number of free slots that are not reserved.
    fn common(&self) -> usize {
        self.whole - (self.total.in_flight - self.reserved)
    }

    /// Returns the index of the waiting request that gets the next slot, if one is free for it.
    fn next(&self) -> Option<usize> {
        let in_flight = |entry: &Entry| self.groups.used(entry.member).map(|usage| usage.in_flight);
        let waiting = self.waiting().map(|(index, entry)| (index, in_flight(entry)));
        let next = waiting.filter(|(_, used)| self.is_free(*used)).min_by_key(|(_, used)| *used);
        next.map(|(index, _)| index)
    }

    /// Returns whether a slot is free for a member, given the requests that its group and the member have in flight.
    fn is_free(&self, in_flight: Used<usize>) -> bool {
        let reserved = self.whole / RESERVED_SHARE;
        let has_few = in_flight.map(|count| count < (self.whole / FEW_SHARE).max(1));
        let reserved_max = match has_few {
            Used { by_group: true, .. } => reserved,
            Used { by_member: true, .. } => reserved / 2,
            _ => 0,
        };
        self.common() > 0 || self.reserved < reserved_max
    }

    /// Removes a request from the queue: the newest of the member with the most waiting requests, in the group with the
    /// most.
    fn displace(&mut self) {
        let waiting = |entry: &Entry| self.groups.used(entry.member).map(|usage| usage.waiting);
        // `max_by_key` returns the last of equal entries, which is the newest.
        if let Some((index, _)) = self.waiting().max_by_key(|(_, entry)| waiting(entry)) {
            let member = self.set(index, State::Displaced);
            self.count(member, |usage| usage.waiting -= 1);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.state == State::Waiting)
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
        self.reserved -= usize::from(entry.has_reserved);
        self.count(entry.member, |usage| match entry.state {
            State::Waiting => usage.waiting -= 1,
            State::Granted | State::InFlight => usage.in_flight -= 1,
            State::Displaced => {}
        });
    }

    /// Sets an entry's state. Returns the member for which the entry counts.
    fn set(&mut self, index: usize, state: State) -> Member {
        let entry = &mut self.entries[index];
        entry.state = state;
        entry.member
    }

    fn count(&mut self, member: Member, change: impl Fn(&mut Usage)) {
        self.groups.change(member, &change);
        change(&mut self.total);
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

#[cfg(test)]
mod tests;
