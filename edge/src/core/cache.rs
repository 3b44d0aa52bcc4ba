//! The edge's cache of public files and of reads: what an isolate knows of its entries, and which of them count.
//!
//! An entry holds an origin's answer and the time when that origin was asked. A request accepts an entry up to an age; for an
//! older entry the origin is asked again. An entry from before its file was purged, or before a folder of the file's project
//! became private, doesn't count. Of the requests that need the same answer, one asks the origin.
//!
//! Files and reads differ in data only: a [`Lookup`] says which entry a request accepts, how old, and how it is stored.
//! Knows neither the platform's cache nor a clock.

mod accepted_age;
mod entry;
mod lookup;
mod recent;
mod single_flight;
#[cfg(test)]
mod tests;

pub use accepted_age::{AcceptedAge, Freshness};
pub use entry::{FetchOutcome, Served, ServedBody, range_header};
use lookup::Subject;
pub use lookup::{Cacheable, Lookup, PublicFile};
pub use single_flight::{Flight, Lead, Moment, pauses};

use super::answer::Answer;
use super::headers::Headers;
use crate::config::Config;
use recent::Recent;
use shared::fingerprint::Fingerprint;
use shared::ident::ProjectName;
use shared::media::{KeptName, Rendition};
use single_flight::SingleFlight;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use uuid::Uuid;

/// The header of an entry with the millisecond since 1970 in which its origin was asked. Stays here.
pub const ASKED_AT: &str = "selkie-asked-at";

/// How long a revalidation may take. Without an answer in that time an expired file is served unconfirmed.
pub const REVALIDATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Milliseconds for which a key that the origin accepted gets cached reads: so much later than at the origin a revocation
/// takes effect here.
const ACCEPTED_MS: u64 = 60_000;

/// Milliseconds after a purge for which an origin's answer is not stored: another origin than the one that changed the file
/// may serve it as before for two seconds more.
const PURGE_GRACE_MS: u64 = 5_000;

/// The host of cache keys, which are URLs: nobody can request one of this host.
const CACHE_HOST: &str = "https://selkie-cache.invalid/";

/// The `Cache-Control` of a project's private mark: entries from before it never count again.
const PRIVATE_MARK_LIFETIME: &str = "max-age=31536000";

/// What an isolate knows of the cache.
#[derive(Debug)]
pub struct Cache {
    /// Workers of one zone share a cache; only the keys tell their installations apart.
    installation: Fingerprint,
    file_age: AcceptedAge,
    read_max_seconds: u32,
    /// The keys that the origin accepted.
    accepted: RefCell<Recent<Uuid>>,
    /// The versions that the origin confirmed since they were stored.
    confirmed: RefCell<Recent<Fingerprint>>,
    /// The files that were purged.
    purged: RefCell<Recent<KeptName>>,
    single_flight: Rc<RefCell<SingleFlight>>,
}

/// What a cache key names.
#[derive(Hash)]
enum Named<'a, T> {
    File(&'a KeptName, Rendition),
    PrivateMark(&'a ProjectName),
    Read(T),
}

impl Cache {
    /// Creates what an isolate knows at first: nothing.
    pub(super) fn new(config: &Config) -> Self {
        let file_seconds = u32::try_from(config.media_revalidate_seconds).unwrap_or(u32::MAX);
        Self {
            installation: config.keys.fingerprint(),
            file_age: AcceptedAge::fresh(file_seconds),
            read_max_seconds: config.read_cache_max_seconds,
            accepted: RefCell::default(),
            confirmed: RefCell::default(),
            purged: RefCell::default(),
            single_flight: Rc::default(),
        }
    }

    fn key<T: std::hash::Hash>(&self, named: &Named<'_, T>) -> Fingerprint {
        Fingerprint::of(&(self.installation, named))
    }

    fn file_key(&self, name: &KeptName, rendition: Rendition) -> Fingerprint {
        self.key(&Named::<()>::File(name, rendition))
    }

    fn private_mark_url(&self, project: &ProjectName) -> String {
        url(self.key(&Named::<()>::PrivateMark(project)))
    }

    /// Records that the files of a name are others now, and returns the URLs of their entries, which must be removed.
    pub fn purge(&self, name: KeptName, now_ms: u64) -> [String; 2] {
        let urls = [Rendition::Original, Rendition::Thumbnail].map(|rendition| url(self.file_key(&name, rendition)));
        self.purged.borrow_mut().insert(name, now_ms);
        urls
    }

    /// Returns the URL and the head of the entry that says that a folder of a project became private now.
    #[must_use]
    pub fn private_mark(&self, project: &ProjectName, now_ms: u64) -> (String, Answer) {
        let mark = Answer::bare(200).with("cache-control", PRIVATE_MARK_LIFETIME).with(ASKED_AT, now_ms.to_string());
        (self.private_mark_url(project), mark)
    }

    /// Records that the origin, asked at that time, confirmed the version.
    pub fn confirm(&self, lookup: &Lookup, asked_ms: u64) {
        self.confirmed.borrow_mut().insert(lookup.version, asked_ms);
    }

    /// Records by an answer's status whether the origin, asked at that time, accepted a key, if there is one.
    pub fn learn(&self, key_id: Option<Uuid>, status: u16, asked_ms: u64) {
        match (key_id, status) {
            (Some(key_id), 200..=399) => self.accepted.borrow_mut().insert(key_id, asked_ms),
            (Some(key_id), 401) => self.accepted.borrow_mut().remove(&key_id),
            _ => {}
        }
    }

    /// Whether a request may get cached answers. The edge knows nothing of revocation: the origin must have accepted the key
    /// of a read within the last minute. Files need no key.
    #[must_use]
    pub fn is_accepted(&self, lookup: &Lookup, now_ms: u64) -> bool {
        lookup.key_id().is_none_or(|key_id| {
            let accepted_ms = self.accepted.borrow().last_ms(&key_id);
            accepted_ms.is_some_and(|at_ms| now_ms < at_ms.saturating_add(ACCEPTED_MS))
        })
    }

    /// Whether the isolate purged the file after, or shortly before, an origin was asked for it.
    #[must_use]
    pub fn is_purged(&self, lookup: &Lookup, asked_ms: u64) -> bool {
        !counts(asked_ms, self.purged_ms(lookup))
    }

    fn purged_ms(&self, lookup: &Lookup) -> Option<u64> {
        let purged = self.purged.borrow();
        // A name that was evicted may be this one.
        purged.last_ms(&lookup.file()?.name).or(purged.evicted_ms())
    }

    /// Judges an entry by its headers, and those of its project's private mark. Returns the milliseconds since the origin last
    /// spoke for the entry, and that age against what the request accepts; `None` if the entry is not of the version that is
    /// looked up, or is expired and can't be revalidated.
    #[must_use]
    pub fn judge(
        &self,
        lookup: &Lookup,
        entry: &Headers,
        private_mark: Option<&Headers>,
        now_ms: u64,
    ) -> Option<(u64, Freshness)> {
        if lookup.file().is_some_and(|file| entry.get("etag") != Some(&file.tag)) {
            return None;
        }
        let made_private_ms = private_mark.and_then(asked_ms);
        let confirmed_ms = self.confirmed.borrow().last_ms(&lookup.version).unwrap_or_default();
        let asked_ms = asked_ms(entry)?.max(confirmed_ms);
        // Clocks may differ: no age is negative.
        let age_ms = now_ms.saturating_sub(asked_ms);
        let counts = counts(asked_ms, self.purged_ms(lookup).max(made_private_ms));
        let freshness = match lookup.accepted_age.judge(age_ms) {
            _ if !counts => Freshness::Expired,
            Freshness::Expired if lookup.file().is_none() => return None,
            Freshness::Expired if self.single_flight.borrow().is_backing_off(lookup.version, now_ms) => {
                Freshness::Fresh
            }
            freshness => freshness,
        };
        Some((age_ms, freshness))
    }

    /// Returns the moment before a lookup.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.single_flight.borrow().moment()
    }

    /// Decides which request asks the origin for what a lookup at that moment did not find.
    #[must_use]
    pub fn join(&self, lookup: &Lookup, looked: Moment, now_ms: u64) -> Flight {
        if self.is_purged(lookup, now_ms) {
            return Flight::Alone;
        }
        let accepted = self.is_accepted(lookup, now_ms);
        SingleFlight::join(&self.single_flight, lookup.version, lookup.key_id(), accepted, looked, now_ms)
    }

    /// Whether a request is still to be waited for.
    #[must_use]
    pub fn is_in_flight(&self, lookup: &Lookup, now_ms: u64) -> bool {
        self.single_flight.borrow().is_shared(lookup.version, now_ms)
    }
}

/// Whether an origin's answer from that time is younger than a purge, and the grace after it.
fn counts(asked_ms: u64, purged_ms: Option<u64>) -> bool {
    purged_ms.is_none_or(|purged_ms| asked_ms >= purged_ms.saturating_add(PURGE_GRACE_MS))
}

/// Returns when an entry's origin was asked; `None` if the header is missing or malformed.
fn asked_ms(entry: &Headers) -> Option<u64> {
    entry.get(ASKED_AT)?.parse().ok()
}

fn url(key: Fingerprint) -> String {
    [CACHE_HOST, &key.to_hex()].concat()
}
