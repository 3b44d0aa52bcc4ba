//! Coalesces long polls for changes: of several that wait for the same page with the same key, one (the lead) asks an
//! origin, and the others get the lead's answer. Must not know how a request waits, or what an answer consists of.
//!
//! Unlike `cache::single_flight`, nothing is stored: the answer is handed to those who wait and then dropped, so that it
//! works without the platform's cache.

use super::headers::Headers;
use shared::fingerprint::Fingerprint;
use shared::key::Principal;
use shared::limits::{CHANGES_WAIT_MAX, EDGE_CHANGES_MAX_COUNT};
use shared::operation::Operation;
use shared::operation::changes::ChangesForm;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum milliseconds for which requests wait for the lead: the longest wait at an origin, and 5 s for the way. After
/// that, the platform has probably cancelled the lead, which it does without notice.
const LEAD_MAX_MS: u64 = CHANGES_WAIT_MAX.as_millis() as u64 + 5_000;

/// Maximum bytes of an answer that is held in memory for others.
const SHARED_MAX_BYTES: u64 = 1024 * 1024;

/// Maximum bytes of all copies of one answer, since the runtime copies it for each response. Those who joined last ask
/// again, one of them for the others.
const COPIES_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Wakes a request that waits for the lead.
pub type Wake = Box<dyn Fn()>;

/// Long polls that wait for the same page: the same API key and parsed request. Callers with other keys never share an
/// answer: the edge knows neither the claims of role keys nor which keys are revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PollKey(Fingerprint);

impl PollKey {
    /// Returns `None` for a request that is not a long poll: without a token, without a wait, or for an event stream. Also
    /// for users' tokens, since tokens of one user may have different claims.
    pub fn of(principal: &Principal, operation: &Operation) -> Option<Self> {
        let Operation::Changes(call) = operation else {
            return None;
        };
        let waits = call.since.is_some() && !call.wait.is_zero() && call.form != ChangesForm::Events;
        let key = principal.api_key_id().filter(|_| waits)?;
        Some(Self(Fingerprint::of(&(principal.project(), key, call))))
    }
}

/// Returns the length of an origin's answer; `None` if those who wait must not get it.
pub fn shareable_bytes(status: u16, headers: &Headers) -> Option<u64> {
    let bytes = headers.get("content-length").and_then(|text| text.parse().ok());
    let is_plain = status == 200 && headers.get("content-encoding").is_none();
    bytes.filter(|bytes| is_plain && *bytes <= SHARED_MAX_BYTES)
}

/// The long polls of an isolate that wait for an origin. `A` is an answer.
pub struct Polls<A> {
    flights: RefCell<HashMap<PollKey, Rc<Flight<A>>>>,
}

struct Flight<A> {
    /// When nobody waits for the lead any more, in ms since 1970.
    until_ms: u64,
    ended: RefCell<Option<Ended<A>>>,
    /// The number of the last request that gets the answer.
    last_answered: Cell<u64>,
    waiting: RefCell<Vec<(u64, Wake)>>,
    last_joined: Cell<u64>,
}

/// How a flight ended for those who waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended<A> {
    Answered(A),
    /// The answer is not for others: each asks an origin itself.
    Unshared,
    /// The lead's client has disconnected, the platform has cancelled the lead, or there were too many for its answer:
    /// another one leads.
    Abandoned,
}

/// What a long poll does.
pub enum Turn<A> {
    /// Ask an origin, then call [`Lead::answered`] or [`Lead::unshared`].
    Lead(Lead<A>),
    /// Wait until [`Waiting::ended`] returns a value.
    Wait(Waiting<A>),
    /// Ask an origin for this request only.
    Alone,
}

/// Proof that a request asks an origin on behalf of others. When dropped, one of them leads.
pub struct Lead<A> {
    polls: Rc<Polls<A>>,
    key: PollKey,
    flight: Rc<Flight<A>>,
}

/// A request that waits for the lead.
pub struct Waiting<A> {
    flight: Rc<Flight<A>>,
    number: u64,
}

impl<A> Default for Polls<A> {
    fn default() -> Self {
        Self { flights: RefCell::default() }
    }
}

impl<A> Polls<A> {
    /// Joins or starts a flight.
    pub fn join(this: &Rc<Self>, key: PollKey, now_ms: u64) -> Turn<A> {
        let mut flights = this.flights.borrow_mut();
        if let Some(flight) = flights.get(&key).filter(|flight| now_ms < flight.until_ms) {
            let number = flight.last_joined.get() + 1;
            flight.last_joined.set(number);
            return Turn::Wait(Waiting { flight: Rc::clone(flight), number });
        }
        if flights.len() >= EDGE_CHANGES_MAX_COUNT {
            flights.retain(|_, flight| now_ms < flight.until_ms);
            if flights.len() >= EDGE_CHANGES_MAX_COUNT {
                return Turn::Alone;
            }
        }
        let (until_ms, ended, waiting) = (now_ms + LEAD_MAX_MS, RefCell::new(None), RefCell::default());
        let (last_answered, last_joined) = (Cell::new(0), Cell::new(0));
        let flight = Rc::new(Flight { until_ms, ended, last_answered, waiting, last_joined });
        flights.insert(key, Rc::clone(&flight));
        Turn::Lead(Lead { polls: Rc::clone(this), key, flight })
    }
}

impl<A> Lead<A> {
    /// Ends the flight with an answer of this length for those who wait.
    pub fn answered(self, answer: A, bytes: u64) {
        self.flight.last_answered.set(COPIES_MAX_BYTES / bytes.max(1));
        *self.flight.ended.borrow_mut() = Some(Ended::Answered(answer));
    }

    /// Ends the flight: the answer is not for others.
    pub fn unshared(self) {
        *self.flight.ended.borrow_mut() = Some(Ended::Unshared);
    }
}

impl<A> Drop for Lead<A> {
    fn drop(&mut self) {
        self.flight.ended.borrow_mut().get_or_insert(Ended::Abandoned);
        let mut flights = self.polls.flights.borrow_mut();
        if flights.get(&self.key).is_some_and(|flight| Rc::ptr_eq(flight, &self.flight)) {
            flights.remove(&self.key);
        }
        drop(flights);
        for (_, wake) in self.flight.waiting.take() {
            wake();
        }
    }
}

impl<A: Clone> Waiting<A> {
    /// Returns how the flight ended; `None` if it has not. After that, or after [`LEAD_MAX_MS`], don't wait any longer.
    pub fn ended(&self, now_ms: u64) -> Option<Ended<A>> {
        match &*self.flight.ended.borrow() {
            Some(Ended::Answered(_)) if self.number > self.flight.last_answered.get() => Some(Ended::Abandoned),
            Some(ended) => Some(ended.clone()),
            None => (now_ms >= self.flight.until_ms).then_some(Ended::Abandoned),
        }
    }
}

impl<A> Waiting<A> {
    /// Calls `wake` once when the flight ends, unless this value is dropped before.
    pub fn wake_by(&self, wake: Wake) {
        self.flight.waiting.borrow_mut().push((self.number, wake));
    }
}

impl<A> Drop for Waiting<A> {
    fn drop(&mut self) {
        self.flight.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests;
