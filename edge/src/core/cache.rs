//! The edge's cache of public files and of reads: which cache entries a request accepts, and what this isolate knows
//! about the entries. Must not use the platform's cache or a clock.
//!
//! An entry contains an origin's response and the time at which the origin was asked. A file's entry is revalidated if
//! it is too old for the request, older than a purge of the file, or older than the time at which a folder of its
//! project became private. A read's entry that is too old is replaced. Of several concurrent requests for an entry,
//! usually only one asks the origin.
//!
//! Files and reads share this code. A [`Lookup`] contains the differences.

mod accepted_age;
mod entry;
mod lookup;
mod recent;
mod single_flight;
#[cfg(test)]
mod tests;
mod visit;

pub use accepted_age::{AcceptedAge, Freshness};
pub use entry::{FetchOutcome, Served, ServedBody, range_header};
use lookup::Subject;
pub use lookup::{Cacheable, Lookup, PublicFile};
pub use single_flight::{Flight, Lead, Moment, pauses};
pub use visit::Visit;

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

/// Header of a cache entry: the time at which the origin was asked, in milliseconds since 1970. Not sent to clients.
pub const ASKED_AT: &str = "selkie-asked-at";

/// Timeout for revalidating a cached file. After it, the expired file is served without being confirmed, unless the
/// file was purged or a folder of its project became private.
pub const REVALIDATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Milliseconds after an origin accepted an API key during which the key gets cached reads, even if it is revoked
/// meanwhile.
const ACCEPTED_MS: u64 = 60_000;

/// Milliseconds after a file's purge during which the file is not cached, because other origins may serve the old file
/// for 2 s more.
const PURGE_GRACE_MS: u64 = 5_000;

/// The beginning of cache keys, which are URLs. Clients can't request this host.
const CACHE_HOST: &str = "https://selkie-cache.invalid/";

/// `Cache-Control` of the entry that records that a folder became private. This entry must outlive all older entries.
const PRIVATE_MARK_LIFETIME: &str = "max-age=31536000";

/// What an isolate knows about the cache: accepted API keys, confirmed versions, purges and requests in flight.
#[derive(Debug)]
pub struct Cache {
    /// The fingerprint of the installation's public keys. It is part of each cache key, since all workers of a zone
    /// share a cache.
    installation: Fingerprint,
    file_age: AcceptedAge,
    read_max_seconds: u32,
    /// The time at which an origin last accepted each API key.
    accepted: RefCell<Recent<Uuid>>,
    /// The time at which an origin last confirmed each cached version.
    confirmed: RefCell<Recent<Fingerprint>>,
    /// The time at which this isolate purged each file.
    purged: RefCell<Recent<FilePathHash>>,
    single_flight: Rc<RefCell<SingleFlight>>,
}

#[derive(Hash)]
enum CacheName<'a, T> {
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

    fn key<T: std::hash::Hash>(&self, named: &CacheName<'_, T>) -> Fingerprint {
        Fingerprint::of(&(self.installation, named))
    }

    fn file_key(&self, name: &FilePathHash, rendition: Rendition) -> Fingerprint {
        self.key(&CacheName::<()>::File(name, rendition))
    }

    fn private_mark_url(&self, project: &ProjectName) -> String {
        url(self.key(&CacheName::<()>::PrivateMark(project)))
    }

    /// Records the purge of a file. Returns the URLs of the file's cache entries, which the caller must remove.
    pub fn purge(&self, name: FilePathHash, now_ms: u64) -> [String; 2] {
        let urls = [Rendition::Original, Rendition::Thumbnail].map(|rendition| url(self.file_key(&name, rendition)));
        self.purged.borrow_mut().insert(name, now_ms);
        urls
    }

    /// Returns the URL and the head of the cache entry that records that a folder of the project has become private.
    pub fn private_mark(&self, project: &ProjectName, now_ms: u64) -> (String, Answer) {
        let mark = Answer::bare(200).with("cache-control", PRIVATE_MARK_LIFETIME).with(ASKED_AT, now_ms.to_string());
        (self.private_mark_url(project), mark)
    }

    /// Records that the origin, asked at `asked_ms` (since 1970), confirmed that the cached version is current.
    pub fn confirm(&self, lookup: &Lookup, asked_ms: u64) {
        self.confirmed.borrow_mut().insert(lookup.version, asked_ms);
    }

    /// Records whether the origin, asked at `asked_ms`, accepted the API key: a 2xx or 3xx `status` means yes, a 401
    /// means no. Does nothing for any other status or without a key.
    pub fn learn(&self, key_id: Option<Uuid>, status: u16, asked_ms: u64) {
        match (key_id, status) {
            (Some(key_id), 200..=399) => self.accepted.borrow_mut().insert(key_id, asked_ms),
            (Some(key_id), 401) => self.accepted.borrow_mut().remove(&key_id),
            _ => {}
        }
    }

    /// Returns whether a request may get cached responses. For a read, an origin must have accepted the API key within
    /// the last minute, since the edge doesn't know which keys are revoked. Files need no key.
    pub fn is_accepted(&self, lookup: &Lookup, now_ms: u64) -> bool {
        lookup.key_id().is_none_or(|key_id| self.is_key_accepted(key_id, now_ms))
    }

    pub fn is_key_accepted(&self, key_id: Uuid, now_ms: u64) -> bool {
        let accepted_ms = self.accepted.borrow().last_ms(&key_id);
        accepted_ms.is_some_and(|at_ms| now_ms < at_ms.saturating_add(ACCEPTED_MS))
    }

    /// Returns whether this isolate purged the file after an origin was asked for it at `asked_ms`, or up to 5 s before
    /// that time. Also true if the record of such a late purge was evicted: it may have been this file's. False for a
    /// read.
    pub fn is_purged(&self, lookup: &Lookup, asked_ms: u64) -> bool {
        !counts(asked_ms, self.purged_ms(lookup))
    }

    fn purged_ms(&self, lookup: &Lookup) -> Option<u64> {
        let purged = self.purged.borrow();
        // This file's purge may be one of the evicted purges, so the time of the latest evicted purge counts.
        purged.last_ms(&lookup.file()?.name).or(purged.evicted_ms())
    }

    /// Returns the milliseconds since an origin was last asked for an entry or confirmed the entry, and whether the
    /// request accepts that age. `None` if the entry has another version or no valid time, or is an expired read, which
    /// can't be revalidated. An expired file counts as fresh for 10 s after a failed revalidation, unless the file was
    /// purged or a folder of its project became private.
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
        // The clocks of machines differ, so `asked_ms` may be later than `now_ms`.
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

    /// Returns the current logical time. Callers take it before a lookup and pass it to [`Cache::join`].
    pub fn moment(&self) -> Moment {
        self.single_flight.borrow().moment()
    }

    /// Decides whether this request asks the origin or waits. A lookup at the time `looked` found no fresh entry.
    pub fn join(&self, lookup: &Lookup, looked: Moment, now_ms: u64) -> Flight {
        if self.is_purged(lookup, now_ms) {
            return Flight::Alone;
        }
        let accepted = self.is_accepted(lookup, now_ms);
        SingleFlight::join(&self.single_flight, lookup.version, lookup.key_id(), accepted, looked, now_ms)
    }

    /// Returns whether another request is asking the origin for the entry, and this request may wait for its response.
    pub fn is_in_flight(&self, lookup: &Lookup, now_ms: u64) -> bool {
        self.single_flight.borrow().is_shared(lookup.version, now_ms)
    }
}

/// Returns whether a response, for which the origin was asked at `asked_ms`, is newer than the purge and its grace
/// period; also true without a purge.
fn counts(asked_ms: u64, purged_ms: Option<u64>) -> bool {
    purged_ms.is_none_or(|purged_ms| asked_ms >= purged_ms.saturating_add(PURGE_GRACE_MS))
}

/// Returns the time at which an entry's origin was asked, in ms since 1970; `None` if the header is missing or
/// malformed.
fn asked_ms(entry: &Headers) -> Option<u64> {
    entry.get(ASKED_AT)?.parse().ok()
}

fn url(key: Fingerprint) -> String {
    [CACHE_HOST, &key.to_hex()].concat()
}
