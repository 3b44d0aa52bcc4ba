//! Caches descriptions of tables, the names of views, and foreign keys. A schema change made through this origin is
//! visible at once, any other within `STALE_AFTER`, unless loading fails; then a table's old description stays in use,
//! up to the age `KEPT_WHILE_FAILING`. Concurrent requests share a load. Loads use connections of their own.

mod relations;
mod whole_database;

pub use self::relations::SchemaAge;
use self::whole_database::DatabaseEntry;
use super::charset_coverage::CharsetCoverages;
use super::error::{DbError, no_database};
use super::pool::{Lease, PoolSettings, Pools};
use super::schema_reader::{self, Found};
use super::single_flight::SingleFlight;
use crate::query::catalog::Table;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, ProjectName, folded, shown};
use shared::key::Access;
use shared::limits::DESCRIPTIONS_CACHE_MAX_BYTES;
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Initial capacities; the limits are in bytes. A smaller number gives fewer shards: 100 gives two. A value that is larger
/// than a shard is never cached.
const TABLES_EXPECTED_COUNT: usize = 100;
const PROJECTS_EXPECTED_COUNT: usize = 100;
const DATABASES_EXPECTED_COUNT: usize = 50;
/// From this age, a description is reloaded in the background when it is used.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// From this age, descriptions, views and foreign keys are reloaded before a request uses them.
const STALE_AFTER: Duration = Duration::from_secs(4);
/// From this age, a description is not used, even if reloading it fails.
const KEPT_WHILE_FAILING: Duration = Duration::from_secs(5 * 60);
/// The limit applies to one attempt, without the wait for a connection.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Two connections, because one may wait for a locked table.
pub const CONNECTIONS_PER_PROJECT: usize = 2;
/// Connections for statements (`pool_total`) per connection that reads descriptions.
const POOL_TOTAL_PER_CONNECTION: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    project: ProjectName,
    path: TablePath,
}

/// A borrowed [`Key`]. Its fields have the same order, so that both have the same hash.
#[derive(Hash)]
struct KeyRef<'a> {
    project: &'a ProjectName,
    path: &'a TablePath,
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.project == key.project && *self.path == key.path
    }
}

impl KeyRef<'_> {
    fn to_owned(&self) -> Key {
        Key { project: self.project.clone(), path: self.path.clone() }
    }
}

/// Only requests with the same reason share a load: another load may have begun before MariaDB refused the statement,
/// and so have read an outdated schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reason {
    /// No description is cached, or the cached one is due for a reload.
    Missing,
    Refused,
}

pub struct SchemaCache {
    pools: Pools,
    statement_pools: Arc<Pools>,
    tables: Cache<Key, Arc<Entry>, Bytes>,
    views: Cache<ProjectName, Arc<Views>, Bytes>,
    relations: Cache<(ProjectName, DatabaseName), relations::Entry, Bytes>,
    databases: Cache<(ProjectName, DatabaseName), DatabaseEntry, Bytes>,
    coverages: CharsetCoverages,
    /// Counts schema changes made through this origin (0 without an entry). A description read at a smaller number is
    /// not used. The map is not limited, but only an administrator creates projects.
    versions: RwLock<HashMap<ProjectName, u64>>,
    table_loads: SingleFlight<(Key, u64, Reason), Arc<Found>, DbError>,
    view_loads: SingleFlight<(ProjectName, u64), Arc<Views>, DbError>,
    database_loads: SingleFlight<((ProjectName, DatabaseName), u64), DatabaseEntry, DbError>,
    relation_loads: SingleFlight<((ProjectName, DatabaseName), u64, SchemaAge), relations::Entry, DbError>,
    loads: AtomicU64,
    hits: AtomicU64,
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchemaCache").field("tables", &self.tables.len()).finish_non_exhaustive()
    }
}

struct Entry {
    table: Arc<Table>,
    read_at: Instant,
    /// When the description was read, or when reloading it last failed.
    checked_at: Instant,
    version: u64,
    refreshing: AtomicBool,
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Key, Arc<Entry>> for Bytes {
    fn weight(&self, _: &Key, entry: &Arc<Entry>) -> u64 {
        entry.table.bytes()
    }
}

impl Weighter<ProjectName, Arc<Views>> for Bytes {
    fn weight(&self, _: &ProjectName, views: &Arc<Views>) -> u64 {
        /// A `String` in a `HashSet`, and the least memory of its text.
        const NAME_BYTES: usize = 2 * size_of::<String>();
        (NAME_BYTES + views.names.iter().map(|name| NAME_BYTES + name.len()).sum::<usize>()) as u64
    }
}

#[derive(Debug)]
pub struct Views {
    names: HashSet<String>,
    read_at: Instant,
    version: u64,
}

impl Views {
    /// `name` must be [`folded`].
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl SchemaCache {
    pub fn new(statement_pools: Arc<Pools>) -> Self {
        let bounds = |settings: PoolSettings| PoolSettings {
            size: CONNECTIONS_PER_PROJECT,
            total: connections(settings.total),
            ..settings
        };
        Self {
            pools: statement_pools.apart(bounds),
            statement_pools,
            tables: Cache::with_weighter(TABLES_EXPECTED_COUNT, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes),
            views: Cache::with_weighter(PROJECTS_EXPECTED_COUNT, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes),
            relations: Cache::with_weighter(DATABASES_EXPECTED_COUNT, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes),
            databases: Cache::with_weighter(DATABASES_EXPECTED_COUNT, DESCRIPTIONS_CACHE_MAX_BYTES, Bytes),
            coverages: CharsetCoverages::default(),
            versions: RwLock::default(),
            table_loads: SingleFlight::default(),
            view_loads: SingleFlight::default(),
            database_loads: SingleFlight::default(),
            relation_loads: SingleFlight::default(),
            loads: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }
    }

    pub async fn table(self: &Arc<Self>, project: &ProjectName, path: &TablePath) -> Result<Arc<Table>, Problem> {
        if path.database.is_system() {
            return Err(no_database(&path.database, &[]));
        }
        let key = KeyRef { project, path };
        let known = (self.tables.get(&key)).filter(|entry| self.is_current(project, entry));
        if let Some(entry) = &known
            && entry.checked_at.elapsed() < STALE_AFTER
        {
            if entry.checked_at.elapsed() > REFRESH_AFTER && !entry.refreshing.swap(true, Ordering::Relaxed) {
                let (cache, key, entry) = (Arc::clone(self), key.to_owned(), Arc::clone(entry));
                // The failure is ignored here: a later request reports it, once the description is too old.
                tokio::spawn(async move { cache.refresh(key, &entry).await.is_ok() });
            }
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(&entry.table));
        }
        // The futures of `refresh` and `load` are boxed: every request's future would reserve space for them.
        match known {
            Some(entry) => Box::pin(self.refresh(key.to_owned(), &entry)).await,
            None => Box::pin(self.load(key.to_owned(), Reason::Missing)).await,
        }
    }

    /// Called after MariaDB refused a statement that was planned with the cached description.
    pub async fn reload(self: &Arc<Self>, project: &ProjectName, path: &TablePath) -> Result<Arc<Table>, Problem> {
        let key = KeyRef { project, path }.to_owned();
        Box::pin(self.load(key, Reason::Refused)).await
    }

    /// Dropping the guard expires the project's cached schema, unless the statement did not run.
    pub fn change_guard(self: &Arc<Self>, project: &ProjectName) -> SchemaChange {
        SchemaChange { cache: Arc::clone(self), project: project.clone(), effect: SchemaEffect::Possible }
    }

    /// Counts failed loads too. A load of all tables of a database counts as one.
    pub fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// Counts cached descriptions that were returned without a wait.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    fn version(&self, project: &ProjectName) -> u64 {
        // The map is valid after every step, so a poisoned lock can be used.
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        versions.get(project).copied().unwrap_or_default()
    }

    fn expire(&self, project: &ProjectName) {
        let mut versions = self.versions.write().unwrap_or_else(PoisonError::into_inner);
        *versions.entry(project.clone()).or_default() += 1;
    }

    pub async fn only_database(&self, project: &ProjectName) -> Result<Option<DatabaseName>, Problem> {
        match self.databases(project).await?.as_slice() {
            [name] => Ok(Some(name.clone())),
            _ => Ok(None),
        }
    }

    /// Returns at most 2,000 names, read from MariaDB each time.
    pub async fn databases(&self, project: &ProjectName) -> Result<Vec<DatabaseName>, Problem> {
        let names =
            again_if_lost(|| async { schema_reader::databases(&mut self.lease(project).await?, LOAD_TIMEOUT).await });
        let names = names.await.map_err(DbError::into_problem)?;
        Ok(names.iter().filter_map(|name| DatabaseName::parse(name).ok()).collect())
    }

    /// A statement that reads a view may run stored code, even if its text shows none.
    pub async fn views(self: &Arc<Self>, project: &ProjectName) -> Result<Arc<Views>, Problem> {
        let version = self.version(project);
        let usable = |views: &Arc<Views>| views.version == version && views.read_at.elapsed() < STALE_AFTER;
        if let Some(views) = self.views.get(project).filter(usable) {
            return Ok(views);
        }
        let (cache, owner) = (Arc::clone(self), project.clone());
        let load = async move { cache.load_views(owner, version).await };
        let views = self.view_loads.run((project.clone(), version), load).await;
        views.map_err(DbError::into_problem)
    }

    async fn load_views(&self, project: ProjectName, version: u64) -> Result<Arc<Views>, DbError> {
        let read_at = Instant::now();
        let names =
            again_if_lost(|| async { schema_reader::views(&mut self.lease(&project).await?, LOAD_TIMEOUT).await });
        let names = names.await?;
        let views = Arc::new(Views { names: names.iter().map(|name| folded(name)).collect(), read_at, version });
        let known = self.views.get(&project);
        if known.is_some_and(|known| !views.names.is_subset(&known.names)) {
            // Until now, callers' SQL that reads these views was not treated as stateful, although a view may run code
            // that changes session state.
            self.statement_pools.reset_all_sessions(&project);
        }
        self.views.insert(project, Arc::clone(&views));
        Ok(views)
    }

    pub fn close_idle(&self) {
        self.pools.close_idle();
    }

    fn is_current(&self, project: &ProjectName, entry: &Entry) -> bool {
        entry.version == self.version(project)
    }

    /// If the load fails with a status of 500 or above, returns `known`, provided that it has not expired and is
    /// younger than [`KEPT_WHILE_FAILING`].
    async fn refresh(self: &Arc<Self>, key: Key, known: &Entry) -> Result<Arc<Table>, Problem> {
        let problem = match self.load(key.clone(), Reason::Missing).await {
            Err(problem) => problem,
            loaded => return loaded,
        };
        let is_failure = problem.status() >= 500;
        let is_current = self.is_current(&key.project, known);
        if !(is_failure && is_current && known.read_at.elapsed() < KEPT_WHILE_FAILING) {
            self.tables.remove(&key);
            return Err(problem);
        }
        let table = Arc::clone(&known.table);
        let entry = Entry {
            table: Arc::clone(&table),
            checked_at: Instant::now(),
            refreshing: AtomicBool::new(false),
            ..*known
        };
        self.tables.insert(key, Arc::new(entry));
        Ok(table)
    }

    /// The full-access account sees every table.
    async fn lease(&self, project: &ProjectName) -> Result<Lease, DbError> {
        self.pools.lease(project, Access::Full).await
    }

    /// The load continues if the client disconnects.
    async fn load(self: &Arc<Self>, key: Key, reason: Reason) -> Result<Arc<Table>, Problem> {
        let version = self.version(&key.project);
        let cache = Arc::clone(self);
        let wanted = key.clone();
        let load = async move { cache.load_table(wanted, version).await };
        let found = self.table_loads.run((key.clone(), version, reason), load).await;
        match &*found.map_err(DbError::into_problem)? {
            Found::Table(table) => Ok(Arc::clone(table)),
            Found::OtherTables(others) => Err(no_table(&key.path, others)),
            Found::OtherDatabases(others) => Err(no_database(&key.path.database, others)),
        }
    }

    async fn load_table(&self, key: Key, version: u64) -> Result<Arc<Found>, DbError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let read_at = Instant::now();
        let (coverages, path) = (&self.coverages, &key.path);
        let found = again_if_lost(|| async {
            let mut lease = self.lease(&key.project).await?;
            let (database, table) = (&path.database, &path.table);
            schema_reader::load(&mut lease, coverages, database, table, LOAD_TIMEOUT).await
        });
        let found = found.await?;
        match &found {
            Found::Table(table) => self.keep(key, table, read_at, version),
            Found::OtherTables(_) | Found::OtherDatabases(_) => {
                self.tables.remove(&key);
            }
        }
        Ok(Arc::new(found))
    }
}

#[derive(Debug)]
pub struct SchemaChange {
    cache: Arc<SchemaCache>,
    project: ProjectName,
    effect: SchemaEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaEffect {
    Possible,
    None,
}

impl SchemaChange {
    pub(super) fn did_not_run(mut self) {
        self.effect = SchemaEffect::None;
    }
}

impl Drop for SchemaChange {
    fn drop(&mut self) {
        if self.effect == SchemaEffect::Possible {
            self.cache.expire(&self.project);
        }
    }
}

async fn again_if_lost<T, F>(ask: impl Fn() -> F) -> Result<T, DbError>
where
    F: Future<Output = Result<T, DbError>>,
{
    match ask().await {
        Err(error) if error.is_lost() => ask().await,
        answer => answer,
    }
}

pub fn connections(pool_total: usize) -> usize {
    (pool_total / POOL_TOTAL_PER_CONNECTION).max(CONNECTIONS_PER_PROJECT)
}

fn no_table(path: &TablePath, others: &[String]) -> Problem {
    let near = nearest(path.table.as_str(), others.iter().map(String::as_str));
    Problem::new(
        ErrorCode::TableNotFound,
        format!("The database {} has no table {}.", shown(path.database.as_str()), shown(path.table.as_str())),
    )
    .with_hint_if(near.map(|near| format!("Did you mean {}?", shown(near))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::DatabaseAddress;
    use crate::config::Account;
    use crate::database::hosts::{HostRole, Hosts};
    use crate::database::{AccountSource, Repaired};
    use crate::query::catalog::{Column, Traits};
    use crate::query::sql::golden::posts;
    use futures_util::FutureExt as _;
    use shared::ident::TableName;
    use shared::limits::TABLE_DESCRIPTION_MAX_BYTES;

    /// Returns a schema cache whose pools never connect.
    fn cache() -> Arc<SchemaCache> {
        let address = DatabaseAddress::parse("mysql://nobody:x@127.0.0.1:1/").unwrap();
        let account = Account { user: "nobody".to_owned(), password: "x".to_owned().into() };
        let source = AccountSource::new(move |_, _| account.clone(), |_| async { Repaired::No }.boxed());
        let settings = PoolSettings {
            size: 1,
            total: 1,
            queue: 1,
            wait_timeout: Duration::from_millis(1),
            connect_timeout: Duration::from_millis(1),
            query_timeout: Duration::from_millis(1),
        };
        let pools = Pools::new(settings, Hosts::new(&address, HostRole::Serving), source);
        Arc::new(SchemaCache::new(Arc::new(pools)))
    }

    #[test]
    fn the_largest_description_is_cached() {
        /// A description of 4 MiB of ENUM members takes little more than twice that.
        const LARGEST_BYTES: usize = 3 * TABLE_DESCRIPTION_MAX_BYTES;
        let (cache, project) = (cache(), ProjectName::parse("one").unwrap());
        for n in 0..10 {
            let column = Column { comment: "x".repeat(LARGEST_BYTES), ..Column::clone(&posts().columns()[0]) };
            let (database, name) = (posts().database().clone(), TableName::parse(&format!("t{n}")).unwrap());
            let path = TablePath { database: database.clone(), table: name.clone() };
            let table = Table::new(database, name, vec![column], Vec::new(), Vec::new(), Traits::default());
            let key = KeyRef { project: &project, path: &path };
            cache.keep(key.to_owned(), &Arc::new(table), Instant::now(), 0);
            assert!(cache.tables.get(&key).is_some());
        }
    }

    #[tokio::test]
    async fn a_schema_change_that_ends_in_any_way_makes_its_own_project_old_alone() {
        let cache = cache();
        let [one, other] = ["one", "other"].map(|name| ProjectName::parse(name).unwrap());
        let versions = || (cache.version(&one), cache.version(&other));
        // A statement drops its guard when it has run, failed or been cancelled.
        drop(cache.change_guard(&one));
        assert_eq!(versions(), (1, 0));
        cache.change_guard(&one).did_not_run();
        assert_eq!(versions(), (1, 0));
    }
}
