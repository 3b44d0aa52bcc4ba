//! Single-flight: of several concurrent requests for the same response, one (the lead) asks the origin, and the others
//! wait.
//!
//! The platform forbids that requests share I/O objects, so each waiting request polls with timers of its own.

use shared::fingerprint::Fingerprint;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use uuid::Uuid;

/// Maximum milliseconds for which requests wait for the lead: as long as a statement may run by default. After that,
/// the platform has probably cancelled the lead, which it does without notice.
const LEAD_MAX_MS: u64 = 30_000;

/// Maximum milliseconds for which a request leads that fetches a long response to cache it. No request waits for it.
const LONG_LEAD_MAX_MS: u64 = 150_000;

/// Milliseconds after a response that could not be cached (too long, or an error) during which requests for the same
/// entry don't wait for each other. Also the milliseconds between a failed revalidation of an entry and the next one.
const BACK_OFF_MS: u64 = 10_000;

/// Maximum number of keys with a flight or a recent outcome, about 100 bytes each. A further key drops all recent
/// outcomes.
const ENTRIES_MAX_COUNT: usize = 1_024;

/// Maximum number of concurrent leads. Each may hold 1 MiB of an isolate's 128 MB.
const LEADS_MAX_COUNT: usize = 32;

/// The first pause between two polls of a waiting request. Each further pause is 1.5 times as long, at most
/// [`PAUSE_MAX_MS`].
const PAUSE_MIN_MS: u64 = 5;
const PAUSE_MAX_MS: u64 = 100;

/// A logical time, which tells whether a cache lookup was before or after the end of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// What a request does after a cache lookup found no fresh entry.
#[derive(Debug)]
pub enum Flight {
    /// This request leads: ask the origin on behalf of all waiting requests, then end the [`Lead`] with the outcome.
    Lead(Lead),
    /// Wait while another request asks the origin.
    Wait,
    /// Look up the entry again: another request has stored or confirmed it in the meantime.
    LookAgain,
    /// Ask the origin for this request only.
    Alone,
}

/// Proof that a request asks the origin on behalf of others. When dropped, waiting requests look up the entry again.
#[derive(Debug)]
pub struct Lead {
    single_flight: Rc<RefCell<SingleFlight>>,
    key: Fingerprint,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum FlightState {
    InFlight { number: u64, key_id: Option<Uuid>, waited_until_ms: u64, until_ms: u64 },
    Stored { at: Moment },
    NotStored { until_ms: u64 },
    Unanswered { until_ms: u64 },
}

/// The flights and the recent outcomes of flights, by [`Lookup::version`](super::Lookup).
#[derive(Debug, Default)]
pub(super) struct SingleFlight {
    entries: HashMap<Fingerprint, FlightState>,
    /// The logical time: the number of flights that have started, plus the number of flights that ended with a stored
    /// entry.
    count: u64,
}

impl SingleFlight {
    pub(super) fn moment(&self) -> Moment {
        Moment(self.count)
    }

    /// Returns whether a flight of this key exists for which other requests may wait.
    pub(super) fn is_shared(&self, key: Fingerprint, now_ms: u64) -> bool {
        matches!(self.entries.get(&key), Some(FlightState::InFlight { waited_until_ms, .. }) if now_ms < *waited_until_ms)
    }

    /// Returns whether the origin recently failed to confirm this entry.
    pub(super) fn is_backing_off(&self, key: Fingerprint, now_ms: u64) -> bool {
        matches!(self.entries.get(&key), Some(FlightState::Unanswered { until_ms }) if now_ms < *until_ms)
    }

    /// Joins or starts the flight of a key. `accepted` says whether the caller's API key, `key_id`, may get a response
    /// that was fetched with another API key.
    pub(super) fn join(
        this: &Rc<RefCell<Self>>,
        key: Fingerprint,
        key_id: Option<Uuid>,
        accepted: bool,
        looked: Moment,
        now_ms: u64,
    ) -> Flight {
        let single_flight = Rc::clone(this);
        let mut this = this.borrow_mut();
        match this.entries.get(&key) {
            Some(FlightState::InFlight { key_id: leading, until_ms, .. }) if now_ms < *until_ms => {
                let may_wait = this.is_shared(key, now_ms) && (accepted || *leading == key_id);
                return if may_wait { Flight::Wait } else { Flight::Alone };
            }
            Some(FlightState::Stored { at }) if *at > looked => return Flight::LookAgain,
            Some(FlightState::NotStored { until_ms } | FlightState::Unanswered { until_ms }) if now_ms < *until_ms => {
                return Flight::Alone;
            }
            _ => {}
        }
        if !this.has_room(key, now_ms) || this.leads(now_ms) >= LEADS_MAX_COUNT {
            return Flight::Alone;
        }
        this.count += 1;
        let (number, until_ms) = (this.count, now_ms + LEAD_MAX_MS);
        this.entries.insert(key, FlightState::InFlight { number, key_id, waited_until_ms: until_ms, until_ms });
        Flight::Lead(Lead { single_flight, key, number })
    }

    fn leads(&self, now_ms: u64) -> usize {
        self.entries.values().filter(|entry| entry.is_led(now_ms)).count()
    }

    fn has_room(&mut self, key: Fingerprint, now_ms: u64) -> bool {
        if self.entries.len() >= ENTRIES_MAX_COUNT && !self.entries.contains_key(&key) {
            self.entries.retain(|_, entry| entry.is_led(now_ms));
            return self.entries.len() < ENTRIES_MAX_COUNT;
        }
        true
    }

    /// Replaces the entry of the lead `number`, or removes it if `state` is `None`. Does nothing if another request
    /// leads now.
    fn set_state(&mut self, key: Fingerprint, number: u64, state: Option<FlightState>) {
        match self.entries.get(&key) {
            Some(FlightState::InFlight { number: current, .. }) if *current == number => {}
            _ => return,
        }
        match state {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(&key),
        };
    }
}

impl FlightState {
    fn is_led(&self, now_ms: u64) -> bool {
        matches!(self, Self::InFlight { until_ms, .. } if now_ms < *until_ms)
    }
}

impl Lead {
    /// Ends the flight: the entry was stored or confirmed, so that later lookups find it.
    pub fn stored(self) {
        let at = {
            let mut single_flight = self.single_flight.borrow_mut();
            single_flight.count += 1;
            single_flight.moment()
        };
        self.set_state(Some(FlightState::Stored { at }));
    }

    /// Ends the flight: the response can't be cached.
    pub fn not_stored(self, now_ms: u64) {
        self.set_state(Some(FlightState::NotStored { until_ms: now_ms + BACK_OFF_MS }));
    }

    /// Ends the flight: the origin could not confirm the entry.
    pub fn unanswered(self, now_ms: u64) {
        self.set_state(Some(FlightState::Unanswered { until_ms: now_ms + BACK_OFF_MS }));
    }

    /// Makes the waiting requests ask the origin themselves, since the response is long. The flight continues.
    pub fn release_waiting(&self, now_ms: u64) {
        let until_ms = now_ms + LONG_LEAD_MAX_MS;
        self.set_state(Some(FlightState::InFlight { number: self.number, key_id: None, waited_until_ms: 0, until_ms }));
    }

    fn set_state(&self, state: Option<FlightState>) {
        self.single_flight.borrow_mut().set_state(self.key, self.number, state);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.set_state(None);
    }
}

/// Returns the pauses between the polls of a waiting request, 30 s at most in total.
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
