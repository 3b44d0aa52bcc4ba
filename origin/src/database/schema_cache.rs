//! Caches descriptions of tables, the names of views, and foreign keys. A schema change made through this origin is
//! visible at once, any other within `STALE_AFTER`, unless loading fails; then a table's old description stays in use,
//! up to the age `KEPT_WHILE_FAILING`. Loads use connections of their own.

mod versioned;

pub use self::versioned::SchemaAge;
use self::versioned::{Described, Entry, Versioned};
use super::charset_coverage::CharsetCoverages;
use super::error::{DbError, no_database};
use super::pool::{Lease, PoolSettings, Pools};
use super::schema_reader::{self, FoundTable};
use crate::query::catalog::Table;
use crate::query::catalog::relations::Relations;
use quick_cache::Equivalent;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, ProjectName, folded, shown};
use shared::key::Access;
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

const TABLES_EXPECTED_COUNT: usize = 100;
const PROJECTS_EXPECTED_COUNT: usize = 100;
const DATABASES_EXPECTED_COUNT: usize = 50;
const ENTRY_BYTES: u64 = 256;
/// The time limit for one attempt to load, without the wait for a connection.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of a project's connections: two, because one may wait for a locked table.
pub const CONNECTIONS_PER_PROJECT: usize = 2;
/// The number of connections for statements (`pool_total`) for each connection that reads descriptions.
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

type DatabaseKey = (ProjectName, DatabaseName);

pub struct SchemaCache {
    pools: Pools,
    statement_pools: Arc<Pools>,
    tables: Arc<Versioned<Key, Arc<FoundTable>>>,
    views: Arc<Versioned<ProjectName, Arc<Views>>>,
    /// The relations of each database, with their bytes.
    relations: Arc<Versioned<DatabaseKey, (Arc<Relations>, usize)>>,
    databases: Arc<Versioned<DatabaseKey, Arc<[Arc<Table>]>>>,
    coverages: CharsetCoverages,
    /// The number of schema changes made through this origin (0 without an entry). A description read at a smaller
    /// number is not used. The map is not limited, but only an administrator creates projects.
    versions: RwLock<HashMap<ProjectName, u64>>,
    loads: AtomicU64,
    hits: AtomicU64,
}

impl Described for Arc<FoundTable> {
    fn bytes(&self) -> u64 {
        match &**self {
            FoundTable::Table(table) => table.memory_bytes(),
            FoundTable::OtherTables(_) | FoundTable::OtherDatabases(_) => 0,
        }
    }

    /// Returns false if the table is missing: whether a table exists is read each time.
    fn is_kept(&self) -> bool {
        matches!(**self, FoundTable::Table(_))
    }
}

impl Described for Arc<Views> {
    fn bytes(&self) -> u64 {
        /// The memory of a `String` in a `HashSet`, and the minimum memory of its text.
        const NAME_BYTES: usize = 2 * size_of::<String>();
        (NAME_BYTES + self.0.iter().map(|name| NAME_BYTES + name.len()).sum::<usize>()) as u64
    }
}

impl Described for (Arc<Relations>, usize) {
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + self.1 as u64
    }
}

impl Described for Arc<[Arc<Table>]> {
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + self.iter().map(|table| table.memory_bytes()).sum::<u64>()
    }
}

#[derive(Debug)]
pub struct Views(HashSet<String>);

impl Views {
    /// Returns whether there is a view `name`, which must be [`folded`].
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
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
            tables: Versioned::new(TABLES_EXPECTED_COUNT),
            views: Versioned::new(PROJECTS_EXPECTED_COUNT),
            relations: Versioned::new(DATABASES_EXPECTED_COUNT),
            databases: Versioned::new(DATABASES_EXPECTED_COUNT),
            coverages: CharsetCoverages::default(),
            versions: RwLock::default(),
            loads: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }
    }

    pub async fn table(self: &Arc<Self>, project: &ProjectName, path: &TablePath) -> Result<Arc<Table>, Problem> {
        if path.database.is_system() {
            return Err(no_database(&path.database, &[]));
        }
        let key = KeyRef { project, path };
        let known = self.tables.entry(&key, self.version(project));
        if let Some(entry) = known.as_ref().filter(|entry| !entry.is_stale()) {
            if entry.must_refresh() {
                let (cache, key, entry) = (Arc::clone(self), key.to_owned(), Arc::clone(entry));
                // The failure is ignored here: a later request reports it, once the description is too old.
                tokio::spawn(async move { cache.refresh(key, &entry).await.is_ok() });
            }
            self.hits.fetch_add(1, Ordering::Relaxed);
            return described(&entry.value, path);
        }
        // The futures of `refresh` and `load` are boxed: every request's future would reserve space for them.
        let found = match known {
            Some(entry) => Box::pin(self.refresh(key.to_owned(), &entry)).await,
            None => Box::pin(self.load(key.to_owned(), SchemaAge::Cached)).await,
        };
        described(&found?, path)
    }

    /// Reads the description anew, after MariaDB refused a statement that was planned with the cached one, or for a caller
    /// who will compare it with the log.
    pub async fn reload(self: &Arc<Self>, project: &ProjectName, path: &TablePath) -> Result<Arc<Table>, Problem> {
        if path.database.is_system() {
            return Err(no_database(&path.database, &[]));
        }
        let key = KeyRef { project, path }.to_owned();
        described(&Box::pin(self.load(key, SchemaAge::Fresh)).await?, path)
    }

    /// Returns a guard whose drop expires the project's cached schema, unless the statement did not run.
    pub fn change_guard(self: &Arc<Self>, project: &ProjectName) -> SchemaChange {
        SchemaChange { cache: Arc::clone(self), project: project.clone(), effect: SchemaEffect::Possible }
    }

    /// Returns the number of loads, including failed ones. A load of all tables of a database counts as one.
    pub fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// Returns the number of cached descriptions that were returned without a wait.
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

    /// Returns the project's views: a statement that reads a view may run stored code, even if its text shows none.
    pub async fn views(self: &Arc<Self>, project: &ProjectName) -> Result<Arc<Views>, Problem> {
        let load = |cache: Arc<Self>, project: ProjectName| async move {
            let names =
                again_if_lost(|| async { schema_reader::views(&mut cache.lease(&project).await?, LOAD_TIMEOUT).await });
            let views = Arc::new(Views(names.await?.iter().map(|name| folded(name)).collect()));
            if cache.views.known(&project).is_some_and(|known| !views.0.is_subset(&known.0)) {
                // Until now, callers' SQL that reads these views was not treated as stateful, although a view may run
                // code that changes session state.
                cache.statement_pools.reset_all_sessions(&project);
            }
            Ok(views)
        };
        self.views.get(project.clone(), (self.version(project), SchemaAge::Cached), self, load).await
    }

    pub async fn relations(
        self: &Arc<Self>,
        project: &ProjectName,
        database: &DatabaseName,
        age: SchemaAge,
    ) -> Result<Arc<Relations>, Problem> {
        let load = |cache: Arc<Self>, (project, database): DatabaseKey| async move {
            let relations = again_if_lost(|| async {
                schema_reader::relations(&mut cache.lease(&project).await?, &database, LOAD_TIMEOUT).await
            });
            relations.await.map(|(relations, names)| (Arc::new(relations), names))
        };
        let key = (project.clone(), database.clone());
        Ok(self.relations.get(key, (self.version(project), age), self, load).await?.0)
    }

    /// Returns the descriptions of all tables, for API descriptions (such as OpenAPI) and `selkie types`; an empty list
    /// if there is no such database. A load also caches each table's description for requests.
    pub async fn tables(
        self: &Arc<Self>,
        project: &ProjectName,
        database: &DatabaseName,
    ) -> Result<Arc<[Arc<Table>]>, Problem> {
        let version = self.version(project);
        let load = |cache: Arc<Self>, (project, database): DatabaseKey| async move {
            cache.loads.fetch_add(1, Ordering::Relaxed);
            let read_at = Instant::now();
            let tables = again_if_lost(|| async {
                let mut lease = cache.lease(&project).await?;
                schema_reader::tables(&mut lease, &cache.coverages, &database, LOAD_TIMEOUT).await
            });
            let tables = tables.await?;
            for table in &tables {
                let path = TablePath { database: database.clone(), table: table.name().clone() };
                let key = Key { project: project.clone(), path };
                cache.note_stored_code(&key, table);
                cache.tables.keep(key, Arc::new(FoundTable::Table(Arc::clone(table))), read_at, version);
            }
            Ok(tables.into())
        };
        self.databases.get((project.clone(), database.clone()), (version, SchemaAge::Cached), self, load).await
    }

    pub fn close_idle(&self) {
        self.pools.close_idle();
    }

    async fn refresh(self: &Arc<Self>, key: Key, known: &Entry<Arc<FoundTable>>) -> Result<Arc<FoundTable>, Problem> {
        match self.load(key.clone(), SchemaAge::Cached).await {
            Err(problem) => {
                let version = self.version(&key.project);
                self.tables.keep_while_failing(key, known, version, problem)
            }
            found => found,
        }
    }

    /// Leases a connection of the full-access account, which sees every table.
    async fn lease(&self, project: &ProjectName) -> Result<Lease, DbError> {
        self.pools.lease(project, Access::Full).await
    }

    async fn load(self: &Arc<Self>, key: Key, age: SchemaAge) -> Result<Arc<FoundTable>, Problem> {
        let (cache, version, wanted) = (Arc::clone(self), self.version(&key.project), key.clone());
        let load = async move {
            cache.loads.fetch_add(1, Ordering::Relaxed);
            let TablePath { database, table } = &wanted.path;
            let found = again_if_lost(|| async {
                let mut lease = cache.lease(&wanted.project).await?;
                schema_reader::load(&mut lease, &cache.coverages, database, table, LOAD_TIMEOUT).await
            });
            let found = found.await?;
            if let FoundTable::Table(table) = &found {
                cache.note_stored_code(&wanted, table);
            }
            Ok(Arc::new(found))
        };
        self.tables.load(key, (version, age), load).await
    }

    /// Marks the project's sessions to be reset if the new description is the first with stored code: until now,
    /// statements ran as if the table had none.
    fn note_stored_code(&self, key: &Key, table: &Table) {
        let had_none =
            |known: Arc<FoundTable>| matches!(&*known, FoundTable::Table(known) if !known.traits().stored_code);
        if table.traits().stored_code && self.tables.known(key).is_some_and(had_none) {
            self.statement_pools.reset_all_sessions(&key.project);
        }
    }
}

fn described(found: &Arc<FoundTable>, path: &TablePath) -> Result<Arc<Table>, Problem> {
    match &**found {
        FoundTable::Table(table) => Ok(Arc::clone(table)),
        FoundTable::OtherTables(others) => Err(no_table(path, others)),
        FoundTable::OtherDatabases(others) => Err(no_database(&path.database, others)),
    }
}

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
            cache.tables.keep(key.to_owned(), Arc::new(FoundTable::Table(Arc::new(table))), Instant::now(), 0);
            assert!(cache.tables.known(&key).is_some());
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
