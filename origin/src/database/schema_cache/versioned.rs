//! Caches what was read from the schemas of projects, each value for one version of its project's schema and up to an
//! age. Requests share a load, which continues if their clients disconnect.

use crate::database::error::DbError;
use crate::database::single_flight::SingleFlight;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use shared::error::Problem;
use shared::limits::DESCRIPTIONS_CACHE_MAX_BYTES;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The age from which a table's description is reloaded in the background when a request uses the description.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// The age from which a value is reloaded before a request uses the value.
const STALE_AFTER: Duration = Duration::from_secs(4);
/// The age from which a table's description is not used, even if reloading fails.
const KEPT_WHILE_FAILING: Duration = Duration::from_secs(5 * 60);

/// How recent a schema must be. Only requests for the same age share a load: a load for another age may have begun
/// before MariaDB refused the statement, and read an outdated schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaAge {
    Cached,
    /// The schema must be read anew, since MariaDB refused a statement that was planned with the cached one.
    Fresh,
}

pub(super) trait Described: Clone + Send + Sync + 'static {
    fn bytes(&self) -> u64;

    fn is_kept(&self) -> bool {
        true
    }
}

pub(super) struct Entry<V> {
    pub(super) value: V,
    read_at: Instant,
    /// The time when the value was read, or when reloading it last failed.
    checked_at: Instant,
    version: u64,
    refreshing: AtomicBool,
}

impl<V> Entry<V> {
    pub(super) fn is_stale(&self) -> bool {
        self.checked_at.elapsed() >= STALE_AFTER
    }

    /// Returns true once, for the caller that must reload, when the value is older than [`REFRESH_AFTER`].
    pub(super) fn must_refresh(&self) -> bool {
        self.checked_at.elapsed() > REFRESH_AFTER && !self.refreshing.swap(true, Ordering::Relaxed)
    }
}

#[derive(Clone)]
struct Bytes;

impl<K, V: Described> Weighter<K, Arc<Entry<V>>> for Bytes {
    fn weight(&self, _: &K, entry: &Arc<Entry<V>>) -> u64 {
        entry.value.bytes()
    }
}

pub(super) struct Versioned<K, V: Described> {
    entries: Cache<K, Arc<Entry<V>>, Bytes>,
    loads: SingleFlight<(K, u64, SchemaAge), V, DbError>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, V: Described> Versioned<K, V> {
    /// Makes a cache. `expected_count` is the initial capacity, and decides the number of shards: 100 gives two. The
    /// limit is in bytes. A value that is larger than a shard is never cached.
    pub(super) fn new(expected_count: usize) -> Arc<Self> {
        let entries = Cache::with_weighter(expected_count, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes);
        Arc::new(Self { entries, loads: SingleFlight::default() })
    }

    /// Returns the cached value, of any age and version.
    pub(super) fn known<Q: Hash + Equivalent<K>>(&self, key: &Q) -> Option<V> {
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// Returns the entry of `version`, of any age.
    pub(super) fn entry<Q: Hash + Equivalent<K>>(&self, key: &Q, version: u64) -> Option<Arc<Entry<V>>> {
        self.entries.get(key).filter(|entry| entry.version == version)
    }

    pub(super) async fn get<O, F>(
        self: &Arc<Self>,
        key: K,
        (version, age): (u64, SchemaAge),
        owner: &Arc<O>,
        load: impl FnOnce(Arc<O>, K) -> F,
    ) -> Result<V, Problem>
    where
        F: Future<Output = Result<V, DbError>> + Send + 'static,
    {
        let known = self.entry(&key, version).filter(|entry| age == SchemaAge::Cached && !entry.is_stale());
        match known {
            Some(entry) => Ok(entry.value.clone()),
            // Boxed: every request's future would reserve space for it.
            None => Box::pin(self.load(key.clone(), (version, age), load(Arc::clone(owner), key))).await,
        }
    }

    pub(super) async fn load(
        self: &Arc<Self>,
        key: K,
        (version, age): (u64, SchemaAge),
        load: impl Future<Output = Result<V, DbError>> + Send + 'static,
    ) -> Result<V, Problem> {
        let (cache, loaded) = (Arc::clone(self), key.clone());
        let load = async move {
            let read_at = Instant::now();
            let value = load.await?;
            cache.keep(loaded, value.clone(), read_at, version);
            Ok(value)
        };
        self.loads.run((key, version, age), load).await.map_err(DbError::into_problem)
    }

    pub(super) fn keep(&self, key: K, value: V, read_at: Instant, version: u64) {
        if !value.is_kept() {
            self.entries.remove(&key);
            return;
        }
        let refreshing = AtomicBool::new(false);
        self.entries.insert(key, Arc::new(Entry { value, read_at, checked_at: read_at, version, refreshing }));
    }

    /// Returns the value that `entry` holds if reloading failed with a status of 500 or above, and the entry is of this
    /// version and younger than [`KEPT_WHILE_FAILING`].
    pub(super) fn keep_while_failing(
        &self,
        key: K,
        entry: &Entry<V>,
        version: u64,
        problem: Problem,
    ) -> Result<V, Problem> {
        let is_usable = entry.version == version && entry.read_at.elapsed() < KEPT_WHILE_FAILING;
        if problem.status() < 500 || !is_usable {
            self.entries.remove(&key);
            return Err(problem);
        }
        let (value, refreshing) = (entry.value.clone(), AtomicBool::new(false));
        let checked = Entry { value: value.clone(), checked_at: Instant::now(), refreshing, ..*entry };
        self.entries.insert(key, Arc::new(checked));
        Ok(value)
    }
}
