//! The schema, cached: fresh at once after our own DDL, within `STALE_AFTER` after anybody else's.
//!
//! A description that grows old is read again beside the request that uses it; only one that is too old
//! makes a request wait. Descriptions are read over connections of their own, so that statements of callers
//! never delay them. While reading one fails, the description before it stays in use.

use super::error::DbError;
use super::pool::{Lease, PoolSettings, Pools};
use super::repertoire::Repertoires;
use super::schema::{self, Found};
use crate::address::DatabaseAddress;
use crate::catalog::Table;
use crate::projects::Projects;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{DatabaseName, ProjectName, shown};
use shared::key::Access;
use shared::operation::TablePath;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Projects whose views are remembered.
const PROJECTS_MAX: usize = 1_000;
/// Tables that are remembered.
const TABLES_MAX: usize = 10_000;
/// From this age on, a description is read again beside the request that uses it.
const REFRESH_AFTER: Duration = Duration::from_secs(2);
/// From this age on, a description is not used before MariaDB was asked again.
const STALE_AFTER: Duration = Duration::from_secs(4);
/// From this age on, a description is not used even if MariaDB can't be asked.
const KEPT_WHILE_FAILING: Duration = Duration::from_secs(5 * 60);
/// How long reading a description may take.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections for descriptions of one project: a description that waits for a locked table leaves one for the others.
pub const CONNECTIONS_PER_PROJECT: usize = 2;
/// Of so many connections for statements (`pool_total`) there is one more for descriptions.
const POOL_TOTAL_PER_CONNECTION: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    project: ProjectName,
    path: TablePath,
}

/// A [`Key`] to look up with, which owns nothing. Its fields are hashed in the same order.
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
        Key {
            project: self.project.clone(),
            path: self.path.clone(),
        }
    }
}

/// Descriptions of tables by project.
pub struct Catalog {
    pools: Pools,
    tables: Cache<Key, Arc<Entry>>,
    views: Cache<ProjectName, Arc<Views>>,
    repertoires: Repertoires,
    /// Counts our own DDL: what was read before it is not used.
    version: AtomicU64,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog")
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

struct Entry {
    table: Arc<Table>,
    read_at: Instant,
    /// When it was read, or reading it again last failed.
    checked_at: Instant,
    version: u64,
    refreshing: AtomicBool,
}

/// The names of a project's views, in lower case.
#[derive(Debug)]
pub struct Views {
    names: HashSet<String>,
    read_at: Instant,
    version: u64,
}

impl Views {
    /// Whether a view has this name, given in lower case.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl Catalog {
    /// An empty cache. `settings` are those of the pools for statements.
    #[must_use]
    pub fn new(settings: PoolSettings, address: DatabaseAddress, projects: Projects) -> Self {
        let settings = PoolSettings {
            size: CONNECTIONS_PER_PROJECT,
            total: connections(settings.total),
            ..settings
        };
        Self {
            pools: Pools::new(settings, address, projects),
            tables: Cache::new(TABLES_MAX),
            views: Cache::new(PROJECTS_MAX),
            repertoires: Repertoires::default(),
            version: AtomicU64::new(0),
        }
    }

    /// A table of a project.
    ///
    /// # Errors
    /// `database_not_found` or `table_not_found` with the nearest name as hint; what MariaDB gave.
    pub async fn table(
        self: &Arc<Self>,
        project: &ProjectName,
        path: &TablePath,
    ) -> Result<Arc<Table>, Problem> {
        if path.database.is_system() {
            return Err(no_database(&path.database, &[]));
        }
        let key = KeyRef { project, path };
        let known = (self.tables.get(&key)).filter(|entry| self.is_current(entry));
        if let Some(entry) = &known
            && entry.checked_at.elapsed() < STALE_AFTER
        {
            if entry.checked_at.elapsed() > REFRESH_AFTER
                && !entry.refreshing.swap(true, Ordering::Relaxed)
            {
                let (catalog, key, entry) = (Arc::clone(self), key.to_owned(), Arc::clone(entry));
                // A failure is another request's to tell, once the description is too old.
                tokio::spawn(async move { catalog.refresh(key, &entry).await.is_ok() });
            }
            return Ok(Arc::clone(&entry.table));
        }
        // Boxed, so that the usual way does not carry room for it.
        match known {
            Some(entry) => Box::pin(self.refresh(key.to_owned(), &entry)).await,
            None => Box::pin(self.load(key.to_owned())).await,
        }
    }

    /// A table, read anew: what was known of it did not fit.
    ///
    /// # Errors
    /// As [`Catalog::table`].
    pub async fn reload(
        self: &Arc<Self>,
        project: &ProjectName,
        path: &TablePath,
    ) -> Result<Arc<Table>, Problem> {
        self.load(KeyRef { project, path }.to_owned()).await
    }

    /// Our own DDL ran: everything is read anew when it is next used.
    pub fn forget_all(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// The project's only database, if it has only one.
    ///
    /// # Errors
    /// What MariaDB gave.
    pub async fn only_database(
        &self,
        project: &ProjectName,
    ) -> Result<Option<DatabaseName>, Problem> {
        let names = again_if_lost(|| async {
            schema::databases(&mut self.lease(project).await?, LOAD_TIMEOUT).await
        });
        match names.await?.as_slice() {
            [name] => Ok(DatabaseName::parse(name).ok()),
            _ => Ok(None),
        }
    }

    /// The project's views: reading one may run stored code, whatever the statement looks like.
    ///
    /// # Errors
    /// What MariaDB gave.
    pub async fn views(&self, project: &ProjectName) -> Result<Arc<Views>, Problem> {
        let version = self.version.load(Ordering::Acquire);
        let usable =
            |views: &Arc<Views>| views.version == version && views.read_at.elapsed() < STALE_AFTER;
        if let Some(views) = self.views.get(project).filter(usable) {
            return Ok(views);
        }
        let read_at = Instant::now();
        let names = again_if_lost(|| async {
            schema::views(&mut self.lease(project).await?, LOAD_TIMEOUT).await
        });
        let names = names.await?;
        let views = Arc::new(Views {
            names: names.iter().map(|name| name.to_lowercase()).collect(),
            read_at,
            version,
        });
        self.views.insert(project.clone(), Arc::clone(&views));
        Ok(views)
    }

    /// Closes connections that lie unused. To be called now and then.
    pub fn close_idle(&self) {
        self.pools.close_idle();
    }

    fn is_current(&self, entry: &Entry) -> bool {
        entry.version == self.version.load(Ordering::Acquire)
    }

    /// Reads a description again. One that can't be read stays as it was for [`KEPT_WHILE_FAILING`]; one of a
    /// table that is gone, or that may not be seen any more, is forgotten.
    async fn refresh(&self, key: Key, known: &Entry) -> Result<Arc<Table>, Problem> {
        let problem = match self.load(key.clone()).await {
            Err(problem) => problem,
            loaded => return loaded,
        };
        let is_failure = problem.status() >= 500;
        if !(is_failure && self.is_current(known) && known.read_at.elapsed() < KEPT_WHILE_FAILING) {
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

    /// Connects as the account that sees everything there is to describe.
    async fn lease(&self, project: &ProjectName) -> Result<Lease, DbError> {
        self.pools.lease(project, Access::Full).await
    }

    async fn load(&self, key: Key) -> Result<Arc<Table>, Problem> {
        let version = self.version.load(Ordering::Acquire);
        let read_at = Instant::now();
        let (repertoires, path) = (&self.repertoires, &key.path);
        let found = again_if_lost(|| async {
            let mut lease = self.lease(&key.project).await?;
            let (database, table) = (&path.database, &path.table);
            schema::load(&mut lease, repertoires, database, table, LOAD_TIMEOUT).await
        });
        match found.await? {
            Found::Table(table) => {
                let table = Arc::<Table>::from(table);
                let entry = Entry {
                    table: Arc::clone(&table),
                    read_at,
                    checked_at: read_at,
                    version,
                    refreshing: AtomicBool::new(false),
                };
                self.tables.insert(key, Arc::new(entry));
                Ok(table)
            }
            Found::OtherTables(others) => {
                let near = nearest(key.path.table.as_str(), others.iter().map(String::as_str));
                self.tables.remove(&key);
                Err(Problem::new(
                    ErrorCode::TableNotFound,
                    format!(
                        "The database {} has no table {}.",
                        shown(key.path.database.as_str()),
                        shown(key.path.table.as_str())
                    ),
                )
                .with_hint_if(near.map(|near| format!("Did you mean {near:?}?"))))
            }
            Found::OtherDatabases(others) => Err(no_database(&key.path.database, &others)),
        }
    }
}

/// Asks MariaDB; once more if the connection turns out to be lost.
async fn again_if_lost<T, F>(ask: impl Fn() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, DbError>>,
{
    let answer = match ask().await {
        Err(error) if error.is_lost() => ask().await,
        answer => answer,
    };
    answer.map_err(DbError::into_problem)
}

/// Connections for descriptions of all projects together, beside `pool_total` for statements.
#[must_use]
pub fn connections(pool_total: usize) -> usize {
    (pool_total / POOL_TOTAL_PER_CONNECTION).max(CONNECTIONS_PER_PROJECT)
}

/// The same for a database of another project as for one that does not exist.
#[must_use]
pub fn no_database(name: &DatabaseName, others: &[String]) -> Problem {
    let near = nearest(name.as_str(), others.iter().map(String::as_str));
    Problem::new(
        ErrorCode::DatabaseNotFound,
        format!("There is no database {}.", shown(name.as_str())),
    )
    .with_hint_if(near.map(|near| format!("Did you mean {near:?}?")))
}
