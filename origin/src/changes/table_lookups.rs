//! Look-ups of facts about tables in MariaDB. Limits how many run, and asks together for tables of one database that are
//! wanted while a look-up waits. Does not know what the facts are.

use crate::database::log_reader::LogError;
use crate::project_quota::ProjectQuota;
use shared::ident::{DatabaseName, ProjectName, TableName};
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum number of look-ups, which have a connection each. One project may use half of them.
const MAX_COUNT: u64 = 4;
const PER_PROJECT_MAX_COUNT: u64 = MAX_COUNT / 2;
/// Maximum time for which a look-up waits until it may begin.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub fn table_lookups() -> ProjectQuota {
    ProjectQuota::new(MAX_COUNT, PER_PROJECT_MAX_COUNT)
}

type OfDatabase = (ProjectName, DatabaseName);
type Waiters<V> = HashMap<TableName, Vec<oneshot::Sender<Result<V, LogError>>>>;

/// Clones share their state.
#[derive(Clone)]
pub(super) struct TableLookups<V> {
    slots: ProjectQuota,
    /// The tables of the look-ups that have not begun.
    waiting: Arc<Mutex<HashMap<OfDatabase, Waiters<V>>>>,
}

impl<V> Default for TableLookups<V> {
    fn default() -> Self {
        Self { slots: table_lookups(), waiting: Arc::default() }
    }
}

impl<V: Clone + Send + 'static> TableLookups<V> {
    /// Returns what `look_up` finds out about the table. `look_up` runs only if no other look-up of the database waits:
    /// then the other one takes the table along.
    pub(super) async fn find<L, F>(&self, project: &ProjectName, table: &TablePath, look_up: L) -> Result<V, LogError>
    where
        L: FnOnce(DatabaseName, HashSet<TableName>) -> F + Send + 'static,
        F: Future<Output = Result<HashMap<TableName, V>, LogError>> + Send,
    {
        let (found, finding) = oneshot::channel();
        let key = (project.clone(), table.database.clone());
        let is_first = {
            let mut waiting = self.waiting();
            let of_database = waiting.entry(key.clone()).or_default();
            let is_first = of_database.is_empty();
            of_database.entry(table.table.clone()).or_default().push(found);
            is_first
        };
        if is_first {
            // A task of its own, since the first caller may leave while others wait.
            let lookups = self.clone();
            tokio::spawn(async move { lookups.run(key, look_up).await });
        }
        finding.await.unwrap_or_else(|_| Err(lost("the task that asked MariaDB has ended")))
    }

    async fn run<L, F>(&self, key: OfDatabase, look_up: L)
    where
        L: FnOnce(DatabaseName, HashSet<TableName>) -> F,
        F: Future<Output = Result<HashMap<TableName, V>, LogError>>,
    {
        let slot = tokio::time::timeout(WAIT_TIMEOUT, self.slots.take(&key.0, 1)).await;
        let waiters = self.waiting().remove(&key).unwrap_or_default();
        let found = match &slot {
            Ok(_) => look_up(key.1, waiters.keys().cloned().collect()).await,
            Err(_) => Err(lost("too many tables are looked up")),
        };
        for (table, waiters) in waiters {
            let of_table = match &found {
                Ok(found) => found.get(&table).cloned().ok_or_else(|| lost("MariaDB told nothing of a table")),
                Err(error) => Err(error.clone()),
            };
            for waiter in waiters {
                let _ = waiter.send(of_table.clone());
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<OfDatabase, Waiters<V>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost(cause: &str) -> LogError {
    LogError::Lost(cause.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::try_join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    fn table(name: &str) -> TablePath {
        TablePath { database: DatabaseName::parse("shop").unwrap(), table: TableName::parse(name).unwrap() }
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn tables_that_wait_share_a_look_up() {
        let lookups = TableLookups::<TableName>::default();
        let (begun, end) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let find = |name: &str| {
            let (begun, end) = (Arc::clone(&begun), Arc::clone(&end));
            let (lookups, table) = (lookups.clone(), table(name));
            let look_up = |_, tables: HashSet<TableName>| async move {
                begun.fetch_add(1, Ordering::Relaxed);
                end.acquire().await.unwrap().forget();
                Ok(tables.into_iter().map(|table| (table.clone(), table)).collect())
            };
            tokio::spawn(async move {
                let project = ProjectName::parse("shop").unwrap();
                assert_eq!(lookups.find(&project, &table, look_up).await.unwrap(), table.table);
            })
        };
        let mut finding = Vec::new();
        for at in 0..PER_PROJECT_MAX_COUNT as usize {
            finding.push(find("first"));
            until(|| begun.load(Ordering::Relaxed) > at).await;
        }
        const COUNT: usize = 500;
        finding.extend((0..2 * COUNT).map(|at| find(&format!("t{}", at / 2))));
        let waiting = || lookups.waiting().values().flat_map(HashMap::values).map(Vec::len).sum::<usize>();
        until(|| waiting() == 2 * COUNT).await;
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        end.add_permits(3);
        try_join_all(finding).await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }
}
