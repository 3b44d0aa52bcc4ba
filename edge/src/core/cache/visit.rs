//! Decides how often one request looks up a cache entry, and whether the request then waits, asks the origin on behalf
//! of others, or is forwarded for itself alone. Must not use the platform's cache or a clock.

use super::{Cache, Flight, Lookup, Moment};
use crate::core::incoming_request::IncomingRequest;

/// Maximum lookups by one request: the first, a second after another request has stored the response, and one more.
const LOOKUPS_MAX_COUNT: u32 = 3;

#[derive(Debug)]
pub struct Visit<'a> {
    cache: &'a Cache,
    lookup: &'a Lookup,
    is_shared: bool,
    lookups: u32,
    has_waited: bool,
}

impl<'a> Visit<'a> {
    pub fn new(cache: &'a Cache, lookup: &'a Lookup, incoming: &IncomingRequest) -> Self {
        Self { cache, lookup, is_shared: lookup.is_shared(incoming), lookups: 0, has_waited: false }
    }

    /// Begins a lookup, and returns its logical time; `None` if the request must be forwarded for itself alone.
    pub fn look_up(&mut self) -> Option<Moment> {
        self.lookups += 1;
        (self.lookups <= LOOKUPS_MAX_COUNT).then(|| self.cache.moment())
    }

    /// Decides what the request does after a lookup, begun at `looked`, that found no entry or an expired one.
    pub fn missed(&mut self, looked: Moment, is_expired: bool, now_ms: u64) -> Flight {
        if !is_expired && (self.has_waited || !self.is_shared) {
            return Flight::Alone;
        }
        let flight = self.cache.join(self.lookup, looked, now_ms);
        self.has_waited |= matches!(flight, Flight::Wait);
        flight
    }
}
