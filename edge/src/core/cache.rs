//! The edge's cache of public files and of reads: which entries a request accepts, and what the isolate knows about
//! them. Must not know the platform's cache or a clock.
//!
//! An entry holds an origin's response and the time when the origin was asked. Entries that are too old for a request
//! are revalidated. Invalid are entries from before a purge of their file, or from before a folder of its project
//! became private. Of concurrent requests for an entry, one asks the origin.
//!
//! Files and reads share this code: a [`Lookup`] holds what differs.

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
use shared::media::{FilePathHash, Rendition};
use single_flight::SingleFlight;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use uuid::Uuid;

/// Header of an entry: when its origin was asked, in milliseconds since 1970. Not sent to clients.
pub const ASKED_AT: &str = "selkie-asked-at";

/// Timeout of a revalidation. Afterwards, an expired file is served unconfirmed.
pub const REVALIDATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Milliseconds for which a key that the origin accepted gets cached reads. Revoking a key takes effect here that much
/// later.
const ACCEPTED_MS: u64 = 60_000;

/// Milliseconds after a purge for which responses are not stored: another origin may serve the old file for two seconds
/// more.
const PURGE_GRACE_MS: u64 = 5_000;

/// The host of cache keys, which are URLs. Clients can't request it.
const CACHE_HOST: &str = "https://selkie-cache.invalid/";

/// `Cache-Control` of a project's private mark, which must outlive all entries from before it.
const PRIVATE_MARK_LIFETIME: &str = "max-age=31536000";

/// An isolate's state of the cache.
#[derive(Debug)]
pub struct Cache {
    /// The fingerprint of the public keys. Part of each cache key, since workers of a zone share a cache.
    installation: Fingerprint,
    file_age: AcceptedAge,
    read_max_seconds: u32,
    /// When the origin last accepted each key.
    accepted: RefCell<Recent<Uuid>>,
    /// When the origin last confirmed each version.
    confirmed: RefCell<Recent<Fingerprint>>,
    /// When each file was purged.
    purged: RefCell<Recent<FilePathHash>>,
    single_flight: Rc<RefCell<SingleFlight>>,
}

#[derive(Hash)]
enum Named<'a, T> {
    File(&'a FilePathHash, Rendition),
    PrivateMark(&'a ProjectName),
    Read(T),
}

impl Cache {
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

    fn file_key(&self, name: &FilePathHash, rendition: Rendition) -> Fingerprint {
        self.key(&Named::<()>::File(name, rendition))
    }

    fn private_mark_url(&self, project: &ProjectName) -> String {
        url(self.key(&Named::<()>::PrivateMark(project)))
    }

    /// Records the purge of a name. Returns the URLs of its entries, which the host must remove.
    pub fn purge(&self, name: FilePathHash, now_ms: u64) -> [String; 2] {
        let urls = [Rendition::Original, Rendition::Thumbnail].map(|rendition| url(self.file_key(&name, rendition)));
        self.purged.borrow_mut().insert(name, now_ms);
        urls
    }

    /// Returns the URL and the head of the entry that marks a folder of a project as made private now.
    #[must_use]
    pub fn private_mark(&self, project: &ProjectName, now_ms: u64) -> (String, Answer) {
        let mark = Answer::bare(200).with("cache-control", PRIVATE_MARK_LIFETIME).with(ASKED_AT, now_ms.to_string());
        (self.private_mark_url(project), mark)
    }

    /// Records that the origin, asked at `asked_ms`, confirmed the version.
    pub fn confirm(&self, lookup: &Lookup, asked_ms: u64) {
        self.confirmed.borrow_mut().insert(lookup.version, asked_ms);
    }

    /// Records by a response's status whether the origin, asked at `asked_ms`, accepted the key. Does nothing without a
    /// key.
    pub fn learn(&self, key_id: Option<Uuid>, status: u16, asked_ms: u64) {
        match (key_id, status) {
            (Some(key_id), 200..=399) => self.accepted.borrow_mut().insert(key_id, asked_ms),
            (Some(key_id), 401) => self.accepted.borrow_mut().remove(&key_id),
            _ => {}
        }
    }

    /// Returns whether a request may get cached responses: for a read, the origin must have accepted the key within the
    /// last minute, since the edge can't see revocations; files need no key.
    #[must_use]
    pub fn is_accepted(&self, lookup: &Lookup, now_ms: u64) -> bool {
        lookup.key_id().is_none_or(|key_id| {
            let accepted_ms = self.accepted.borrow().last_ms(&key_id);
            accepted_ms.is_some_and(|at_ms| now_ms < at_ms.saturating_add(ACCEPTED_MS))
        })
    }

    /// Returns whether the isolate purged the file after, or shortly before, an origin was asked for it.
    #[must_use]
    pub fn is_purged(&self, lookup: &Lookup, asked_ms: u64) -> bool {
        !counts(asked_ms, self.purged_ms(lookup))
    }

    fn purged_ms(&self, lookup: &Lookup) -> Option<u64> {
        let purged = self.purged.borrow();
        // Evicted purges may have been of this file.
        purged.last_ms(&lookup.file()?.name).or(purged.evicted_ms())
    }

    /// Returns an entry's age in milliseconds since the origin gave or confirmed it, and whether the request accepts
    /// that age. `None` if the entry has another version or no valid time, or is an expired read, which can't be
    /// revalidated.
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
        // Clocks of machines differ, so the difference may be negative.
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

    /// Returns the current moment, to be taken before a lookup and passed to [`Cache::join`].
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.single_flight.borrow().moment()
    }

    /// Decides whether this request asks the origin for an entry that a lookup at `looked` did not find.
    #[must_use]
    pub fn join(&self, lookup: &Lookup, looked: Moment, now_ms: u64) -> Flight {
        if self.is_purged(lookup, now_ms) {
            return Flight::Alone;
        }
        let accepted = self.is_accepted(lookup, now_ms);
        SingleFlight::join(&self.single_flight, lookup.version, lookup.key_id(), accepted, looked, now_ms)
    }

    /// Returns whether a leading request is in flight for which others wait.
    #[must_use]
    pub fn is_in_flight(&self, lookup: &Lookup, now_ms: u64) -> bool {
        self.single_flight.borrow().is_shared(lookup.version, now_ms)
    }
}

/// Returns whether a response is younger than a purge and its grace period.
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
