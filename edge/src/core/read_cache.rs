//! The cache of reads: which reads are cached, under which key, how long, for whom.
//!
//! A caller with a read key may send `Cache-Control: max-age=N` with a read of records, to accept an answer that is N
//! seconds old. Knows neither the cache nor a clock.

mod accepted;
mod single_flight;
#[cfg(test)]
mod tests;

pub use single_flight::{Lead, Moment, Turn, pauses};

use super::incoming_request::{BodyLength, IncomingRequest};
use crate::config::Config;
use accepted::Accepted;
use shared::error::Problem;
use shared::fingerprint::Fingerprint;
use shared::key::{Access, Principal};
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::operation::read::{Answer, Read, ReadOne};
use shared::operation::{BodyUse, Operation, Pending};
use shared::policy::Action;
use single_flight::SingleFlight;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use uuid::Uuid;

/// Most bytes of a cached answer. It is in memory as a whole on its way into the cache, and an isolate has 128 MiB for
/// all its requests.
pub const CACHED_MAX_BYTES: u64 = 1024 * 1024;

/// The header of a cached answer with the millisecond since 1970 in which its origin was asked.
pub const ASKED_AT: &str = "selkie-asked-at";

/// What a browser must find unchanged to use an answer again: also `Cache-Control`, since a request without it wants a
/// fresh answer.
const VARY: &str = "Accept, Authorization, Cache-Control";

/// The host of cache keys, which are URLs: nobody can request one of this host.
const CACHE_HOST: &str = "https://reads.selkie.invalid/";

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedAge {
    fresh_seconds: u32,
    /// Beyond that: while another one is fetched.
    stale_seconds: u32,
}

/// A cached answer's age against what its caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The answer is young enough.
    Fresh,
    /// The answer may be given while another one is fetched.
    Stale,
    /// The answer is too old.
    Expired,
}

impl AcceptedAge {
    /// Reads a request's `Cache-Control`; at most `most` seconds are granted altogether. None if it asks for the origin's own
    /// answer (browsers do on a reload), or is malformed.
    #[must_use]
    pub fn read(cache_control: &str, most: u32) -> Option<Self> {
        let (mut fresh, mut stale) = (None::<u32>, 0);
        for directive in cache_control.split(',') {
            let (name, value) = match directive.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim().trim_matches('"')),
                None => (directive.trim(), ""),
            };
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("no-cache") || is("no-store") {
                return None;
            }
            if is("max-age") {
                let asked = seconds(value)?;
                // Of two, the one that promises less.
                fresh = Some(fresh.map_or(asked, |other| other.min(asked)));
            } else if is("stale-while-revalidate") {
                stale = seconds(value)?;
            }
        }
        let fresh_seconds = fresh?.min(most);
        (fresh_seconds > 0).then_some(Self { fresh_seconds, stale_seconds: stale.min(most - fresh_seconds) })
    }

    /// Judges an answer by its age.
    #[must_use]
    pub fn judge(self, age_ms: u64) -> Freshness {
        let fresh_ms = u64::from(self.fresh_seconds) * 1000;
        let stale_ms = u64::from(self.stale_seconds) * 1000;
        if age_ms <= fresh_ms {
            Freshness::Fresh
        } else if age_ms <= fresh_ms + stale_ms {
            Freshness::Stale
        } else {
            Freshness::Expired
        }
    }

    /// Returns the headers of an answer of that age: a browser, too, may use it for as long as its caller accepts.
    #[must_use]
    pub fn headers(self, age_ms: u64) -> [(&'static str, Cow<'static, str>); 3] {
        let mut kept = format!("private, max-age={}", self.fresh_seconds);
        if self.stale_seconds > 0 {
            kept.push_str(", stale-while-revalidate=");
            kept.push_str(&self.stale_seconds.to_string());
        }
        [("age", (age_ms / 1000).to_string().into()), ("cache-control", kept.into()), ("vary", VARY.into())]
    }
}

/// Whole seconds; more than fit are many.
fn seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}

/// Returns the milliseconds since an answer's origin was asked, by its [`ASKED_AT`]; none if that is missing or malformed.
/// Clocks may differ: no age is negative.
#[must_use]
pub fn age_ms(asked_at: Option<&str>, now_ms: u64) -> Option<u64> {
    let asked_at: u64 = asked_at?.parse().ok()?;
    Some(now_ms.saturating_sub(asked_at))
}

/// Whether an answer of the origin may be cached: a success, whole, short and not compressed.
#[must_use]
pub fn is_kept(status: u16, content_length: Option<u64>, content_encoding: Option<&str>) -> bool {
    status == 200 && content_length.is_some_and(|bytes| bytes <= CACHED_MAX_BYTES) && content_encoding.is_none()
}

/// A read that may be answered from the cache, before its body, if it has one.
#[derive(Debug)]
pub struct CacheableRead {
    cache: Rc<ReadCache>,
    principal: Principal,
    pending: Pending,
    accepted_age: AcceptedAge,
}

/// A parsed read: its cache key, whose key asks, and how old the answer may be.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// The cache key.
    pub key: Fingerprint,
    /// The id of the caller's key.
    pub key_id: Uuid,
    /// How old the answer may be.
    pub accepted_age: AcceptedAge,
}

impl Lookup {
    /// Returns the cache key as the Cache API's URL.
    #[must_use]
    pub fn url(&self) -> String {
        [CACHE_HOST, &self.key.to_hex()].concat()
    }
}

impl CacheableRead {
    /// Creates the read of a caller.
    pub(super) fn new(
        cache: &Rc<ReadCache>,
        principal: &Principal,
        pending: Pending,
        accepted_age: AcceptedAge,
    ) -> Self {
        Self { cache: Rc::clone(cache), principal: principal.clone(), pending, accepted_age }
    }

    /// Returns the cache.
    #[must_use]
    pub fn cache(&self) -> &Rc<ReadCache> {
        &self.cache
    }

    /// Whether its options come in a body.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.pending.body() == BodyUse::Json
    }

    /// Parses the read; none if it asks for something else than records.
    ///
    /// # Errors
    /// Whatever the shared parsers refuse.
    pub fn finish(self, body: &[u8]) -> Result<Option<Lookup>, Problem> {
        let operation = self.pending.finish(body)?;
        let what = match &operation {
            Operation::Read(read) if read.answer == Answer::Records => What::Many(read),
            Operation::ReadOne(read) if read.answer == Answer::Records => What::One(read),
            _ => return Ok(None),
        };
        let (project, access) = (self.principal.project(), self.principal.access());
        Ok(Some(Lookup {
            key: Fingerprint::of(&(self.cache.installation, project, access, what)),
            key_id: self.principal.key_id(),
            accepted_age: self.accepted_age,
        }))
    }
}

/// What is read; the form of the answer is part of it.
#[derive(Hash)]
enum What<'a> {
    Many(&'a Read),
    One(&'a ReadOne),
}

/// What an isolate knows of the cache: the keys that the origin accepted lately, and the reads in flight.
#[derive(Debug)]
pub struct ReadCache {
    most_seconds: u32,
    installation: Fingerprint,
    accepted: RefCell<Accepted>,
    single_flight: Rc<RefCell<SingleFlight>>,
}

impl ReadCache {
    /// Creates an isolate's cache, if the configuration allows one.
    pub(super) fn new(config: &Config) -> Option<Self> {
        // Workers of one zone share a cache; only the keys tell their installations apart, and the version what
        // a fingerprint is made of.
        let installation = (env!("CARGO_PKG_VERSION"), config.keys.fingerprint());
        (config.read_cache_max_seconds > 0).then(|| Self {
            most_seconds: config.read_cache_max_seconds,
            installation: Fingerprint::of(&installation),
            accepted: RefCell::default(),
            single_flight: Rc::default(),
        })
    }

    /// Returns how old the answer to a request may be; none if it can't come from the cache: only reads of records with a
    /// read key can.
    pub(super) fn accepted_age(
        &self,
        call: &IncomingRequest,
        principal: &Principal,
        pending: &Pending,
    ) -> Option<AcceptedAge> {
        let reads = match (pending.action(), call.body) {
            // Of a list, HEAD asks for less than is kept.
            (Action::Read | Action::ReadOne, _) => call.method == "GET",
            (Action::Query, BodyLength::Known(bytes)) => bytes <= EDGE_CHECKED_BODY_MAX_BYTES as u64,
            _ => false,
        };
        let header = call.cache_control.as_deref()?;
        let may = reads && principal.access() == Access::Read;
        may.then(|| AcceptedAge::read(header, self.most_seconds)).flatten()
    }

    /// Returns the headers of a cached answer whose origin was asked at that time.
    #[must_use]
    pub fn kept_headers(&self, asked_ms: u64) -> [(&'static str, String); 2] {
        // Another caller may be content with an older one than whose answer it was.
        let lifetime = format!("max-age={}", self.most_seconds);
        [("cache-control", lifetime), (ASKED_AT, asked_ms.to_string())]
    }

    /// Whether a key gets cached answers: the edge knows nothing of revocation, so the origin must have accepted the key
    /// within the last [minute](accepted::ACCEPTED_SECONDS).
    #[must_use]
    pub fn is_accepted(&self, key_id: Uuid, now_ms: u64) -> bool {
        self.accepted.borrow().holds(key_id, now_ms / 1000)
    }

    /// Records by an answer's status whether the origin, asked at that time, accepted a key.
    pub fn learn(&self, key_id: Uuid, status: u16, asked_ms: u64) {
        match status {
            200..=399 => self.accepted.borrow_mut().insert(key_id, asked_ms / 1000),
            401 => self.accepted.borrow_mut().remove(key_id),
            _ => {}
        }
    }

    /// Returns the moment before a lookup.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.single_flight.borrow().moment()
    }

    /// Decides which request fetches what a lookup at that moment did not find.
    #[must_use]
    pub fn turn(&self, lookup: &Lookup, looked: Moment, now_ms: u64) -> Turn {
        let accepted = self.is_accepted(lookup.key_id, now_ms);
        SingleFlight::take(&self.single_flight, lookup, accepted, looked, now_ms)
    }

    /// Whether a request still fetches it.
    #[must_use]
    pub fn is_under_way(&self, lookup: &Lookup, now_ms: u64) -> bool {
        self.single_flight.borrow().is_under_way(lookup.key, now_ms)
    }
}
