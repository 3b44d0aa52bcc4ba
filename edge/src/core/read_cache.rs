//! Records that are kept for callers who ask for it: which reads, under which key, how long, for whom.
//!
//! A caller with a read key may say `Cache-Control: max-age=N` on a read of records, and is then content with an
//! answer that is N seconds old. Knows neither the cache nor a clock.

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

/// Bytes of an answer that is kept. It is held whole on its way into the cache, and an isolate has 128 MiB for
/// all its requests.
pub const KEPT_MAX_BYTES: u64 = 1024 * 1024;

/// Tells in which millisecond since 1970 a kept answer's origin was asked.
pub const ASKED_AT: &str = "selkie-asked-at";

/// What a browser must find unchanged to use an answer again by itself: also the wish, since a call without one
/// is to be answered afresh.
const VARY: &str = "Accept, Authorization, Cache-Control";

/// Where the Cache API keeps answers: it names them by URLs, and nobody can ask for one of this host.
const KEPT_AT: &str = "https://reads.selkie.invalid/";

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    fresh_seconds: u32,
    /// Beyond that: while another one is fetched.
    stale_seconds: u32,
}

/// How a kept answer of some age suits a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suits {
    /// It is what was asked for.
    Yes,
    /// It may be given while another one is fetched.
    Meanwhile,
    /// It is too old.
    No,
}

impl Wish {
    /// Reads a request's `Cache-Control`; no more than `most` seconds are granted altogether. None for one that
    /// wants the origin's own answer (browsers say so on a reload), and for one that can't be read.
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
        (fresh_seconds > 0).then_some(Self {
            fresh_seconds,
            stale_seconds: stale.min(most - fresh_seconds),
        })
    }

    /// Judges an answer by its age.
    #[must_use]
    pub fn judge(self, age_ms: u64) -> Suits {
        let fresh_ms = u64::from(self.fresh_seconds) * 1000;
        let stale_ms = u64::from(self.stale_seconds) * 1000;
        if age_ms <= fresh_ms {
            Suits::Yes
        } else if age_ms <= fresh_ms + stale_ms {
            Suits::Meanwhile
        } else {
            Suits::No
        }
    }

    /// The headers that an answer of that age has: a browser, too, may use it for as long as was wished.
    #[must_use]
    pub fn headers(self, age_ms: u64) -> [(&'static str, Cow<'static, str>); 3] {
        let mut kept = format!("private, max-age={}", self.fresh_seconds);
        if self.stale_seconds > 0 {
            kept.push_str(", stale-while-revalidate=");
            kept.push_str(&self.stale_seconds.to_string());
        }
        [
            ("age", (age_ms / 1000).to_string().into()),
            ("cache-control", kept.into()),
            ("vary", VARY.into()),
        ]
    }
}

/// Whole seconds; more than fit are many.
fn seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}

/// The milliseconds since an answer's origin was asked, as [`ASKED_AT`] tells; none if it doesn't. Two machines
/// may disagree about the time: no answer is from the future.
#[must_use]
pub fn age_ms(asked_at: Option<&str>, now_ms: u64) -> Option<u64> {
    let asked_at: u64 = asked_at?.parse().ok()?;
    Some(now_ms.saturating_sub(asked_at))
}

/// Whether an answer of the origin may be kept: a success, whole, short, in a form that is sent as it is.
#[must_use]
pub fn is_kept(status: u16, content_length: Option<u64>, content_encoding: Option<&str>) -> bool {
    status == 200
        && content_length.is_some_and(|bytes| bytes <= KEPT_MAX_BYTES)
        && content_encoding.is_none()
}

/// A read that may be answered from the cache, before its body, if it has one.
#[derive(Debug)]
pub struct Question {
    cache: Rc<ReadCache>,
    principal: Principal,
    pending: Pending,
    wish: Wish,
}

/// A read that is completely known: what is looked for, for whom, and how old it may be.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// What of the cache.
    pub key: Fingerprint,
    /// Whose key asks.
    pub key_id: Uuid,
    /// How old.
    pub wish: Wish,
}

impl Lookup {
    /// The URL under which the cache keeps it.
    #[must_use]
    pub fn url(&self) -> String {
        [KEPT_AT, &self.key.to_hex()].concat()
    }
}

impl Question {
    /// A request that is answered so, on behalf of who asks.
    pub(super) fn new(
        cache: &Rc<ReadCache>,
        principal: &Principal,
        pending: Pending,
        wish: Wish,
    ) -> Self {
        Self {
            cache: Rc::clone(cache),
            principal: principal.clone(),
            pending,
            wish,
        }
    }

    /// Where it is looked for.
    #[must_use]
    pub fn cache(&self) -> &Rc<ReadCache> {
        &self.cache
    }

    /// Whether its options come in a body.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.pending.body() == BodyUse::Json
    }

    /// What is looked for; nothing, if it turns out to ask for something else than records.
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
            wish: self.wish,
        }))
    }
}

/// What is read; the form of the answer is part of it.
#[derive(Hash)]
enum What<'a> {
    Many(&'a Read),
    One(&'a ReadOne),
}

/// An isolate's part of the cache: who may have from it, and who fetches what.
#[derive(Debug)]
pub struct ReadCache {
    most_seconds: u32,
    installation: Fingerprint,
    accepted: RefCell<Accepted>,
    turns: Rc<RefCell<SingleFlight>>,
}

impl ReadCache {
    /// An isolate's cache, if the configuration allows one.
    pub(super) fn new(config: &Config) -> Option<Self> {
        // Workers of one zone share a cache; only the keys tell their installations apart, and the version what
        // a fingerprint is made of.
        let installation = (env!("CARGO_PKG_VERSION"), config.keys.fingerprint());
        (config.read_cache_max_seconds > 0).then(|| Self {
            most_seconds: config.read_cache_max_seconds,
            installation: Fingerprint::of(&installation),
            accepted: RefCell::default(),
            turns: Rc::default(),
        })
    }

    /// What a request wishes, if it may be answered from the cache: a read of records with a read key.
    pub(super) fn wish(
        &self,
        call: &IncomingRequest,
        principal: &Principal,
        pending: &Pending,
    ) -> Option<Wish> {
        let reads = match (pending.action(), call.body) {
            // Of a list, HEAD asks for less than is kept.
            (Action::Read | Action::ReadOne, _) => call.method == "GET",
            (Action::Query, BodyLength::Known(bytes)) => {
                bytes <= EDGE_CHECKED_BODY_MAX_BYTES as u64
            }
            _ => false,
        };
        let header = call.cache_control.as_deref()?;
        let may = reads && principal.access() == Access::Read;
        may.then(|| Wish::read(header, self.most_seconds)).flatten()
    }

    /// The headers that tell the cache about an answer whose origin was asked then.
    #[must_use]
    pub fn kept_headers(&self, asked_ms: u64) -> [(&'static str, String); 2] {
        // Another caller may be content with an older one than whose answer it was.
        let lifetime = format!("max-age={}", self.most_seconds);
        [
            ("cache-control", lifetime),
            (ASKED_AT, asked_ms.to_string()),
        ]
    }

    /// Whether a key may have what is kept: the edge knows nothing of revocation, so only one that the origin took
    /// within the last [minute](accepted::ACCEPTED_SECONDS).
    #[must_use]
    pub fn is_accepted(&self, key_id: Uuid, now_ms: u64) -> bool {
        self.accepted.borrow().holds(key_id, now_ms / 1000)
    }

    /// Remembers what the origin, asked at that time, thought of a key.
    pub fn learn(&self, key_id: Uuid, status: u16, asked_ms: u64) {
        match status {
            200..=399 => self.accepted.borrow_mut().insert(key_id, asked_ms / 1000),
            401 => self.accepted.borrow_mut().remove(key_id),
            _ => {}
        }
    }

    /// The moment before a look into the cache.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.turns.borrow().moment()
    }

    /// Decides who fetches what was not found by a look at that moment.
    #[must_use]
    pub fn turn(&self, lookup: &Lookup, looked: Moment, now_ms: u64) -> Turn {
        let accepted = self.is_accepted(lookup.key_id, now_ms);
        SingleFlight::take(&self.turns, lookup, accepted, looked, now_ms)
    }

    /// Whether somebody still fetches it.
    #[must_use]
    pub fn is_under_way(&self, lookup: &Lookup, now_ms: u64) -> bool {
        self.turns.borrow().is_under_way(lookup.key, now_ms)
    }
}
