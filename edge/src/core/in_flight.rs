//! Decides which requests may be sent to an origin, and which wait. A class of callers has slots of its own, so that no
//! class can starve another; the groups of a class share its slots fairly, and the members of a group share the slots of
//! their group.
//!
//! A member may use all slots while nobody else needs them. Otherwise, the next free slot goes to the waiting group that
//! has the fewest, and within the group to the waiting member that has the fewest. Some slots are reserved for groups and
//! members that use few, since requests may hold theirs for long.

use super::caller::{Caller, Class};
use super::groups::{Groups, Member, Used};
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

/// Of the slots of a class, as many more are reserved: one for each five that any member may use.
const RESERVED_SHARE: usize = 5;

/// A group that has fewer slots than this fraction of its class may use reserved ones. A member of any group that has
/// fewer may use the first half of them.
const FEW_SHARE: usize = 50;

/// The requests of this isolate that wait for an origin, or until they may be sent to one.
#[derive(Debug)]
pub struct InFlight {
    pools: RefCell<[Pool; Class::ALL.len()]>,
}

/// The requests of one class.
#[derive(Debug)]
struct Pool {
    /// The maximum of requests in flight that any member may have, and of waiting requests.
    whole: usize,
    groups: Groups<Usage>,
    /// In the order of their numbers, which is that of their arrival.
    entries: Vec<Entry>,
    last: u64,
    total: Usage,
    /// The number of requests with reserved slots.
    reserved: usize,
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
    member: Member,
    state: State,
    has_reserved: bool,
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
        let number = self.pools.borrow_mut()[class as usize].begin(caller, now);
        Slot { in_flight: self, class, number }
    }
}

impl Slot<'_> {
    /// Returns whether the request may be sent. If not, ask again within a tenth of a second. Fails with `overloaded` if the
    /// request has waited for too long, or too many wait; with `rate_limited` instead if its group or member uses its share
    /// and others wait.
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
    GroupShare(usize),
    /// Its member has this many slots, its share, while other members of the group wait.
    MemberShare(usize),
    /// This many slots were in use for too long, or as many requests wait already.
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
            Class::Health => EDGE_HEALTH_REQUESTS_MAX_COUNT,
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
                // If this frees a slot for the request, the next question finds it.
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
        // Slots for which nobody waits replace reserved ones.
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

    /// Returns whether a slot is free for a group and a member that have so many in flight.
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

    /// Takes the newest request of the member with the most waiting requests, in the group with the most, out of the
    /// queue.
    fn displace(&mut self) {
        let waiting = |entry: &Entry| self.groups.used(entry.member).map(|usage| usage.waiting);
        // Of equal ones, the last is the newest.
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

    /// Sets the state of an entry, and returns its member.
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
