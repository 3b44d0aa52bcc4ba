//! Caches the descriptions of all tables of a database, for API descriptions (such as OpenAPI) and `selkie types`.

use super::{Bytes, Entry, Key, LOAD_TIMEOUT, STALE_AFTER, SchemaCache, again_if_lost};
use crate::database::error::DbError;
use crate::database::schema_reader;
use crate::query::catalog::Table;
use quick_cache::Weighter;
use shared::error::Problem;
use shared::ident::{DatabaseName, ProjectName};
use shared::operation::TablePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const ENTRY_BYTES: u64 = 256;

#[derive(Clone, Debug)]
pub(super) struct DatabaseEntry {
    tables: Arc<[Arc<Table>]>,
    read_at: Instant,
    version: u64,
}

impl Weighter<(ProjectName, DatabaseName), DatabaseEntry> for Bytes {
    fn weight(&self, _: &(ProjectName, DatabaseName), entry: &DatabaseEntry) -> u64 {
        ENTRY_BYTES + entry.tables.iter().map(|table| table.bytes()).sum::<u64>()
    }
}

impl SchemaCache {
    /// Returns an empty list if there is no such database. A load also caches each table's description for requests.
    pub async fn tables(
        self: &Arc<Self>,
        project: &ProjectName,
        database: &DatabaseName,
    ) -> Result<Arc<[Arc<Table>]>, Problem> {
        let version = self.version(project);
        let key = (project.clone(), database.clone());
        let is_usable = |entry: &DatabaseEntry| entry.version == version && entry.read_at.elapsed() < STALE_AFTER;
        if let Some(entry) = self.databases.get(&key).filter(is_usable) {
            return Ok(entry.tables);
        }
        let (catalog, wanted) = (Arc::clone(self), key.clone());
        let load = async move { catalog.load_tables(wanted, version).await };
        let loaded = Box::pin(self.database_loads.run((key, version), load)).await;
        loaded.map(|entry| entry.tables).map_err(DbError::into_problem)
    }

    async fn load_tables(&self, key: (ProjectName, DatabaseName), version: u64) -> Result<DatabaseEntry, DbError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let read_at = Instant::now();
        let (project, database) = &key;
        let tables = again_if_lost(|| async {
            schema_reader::tables(&mut self.lease(project).await?, &self.coverages, database, LOAD_TIMEOUT).await
        });
        let tables = tables.await?;
        for table in &tables {
            let path = TablePath { database: database.clone(), table: table.name().clone() };
            self.keep(Key { project: project.clone(), path }, table, read_at, version);
        }
        let entry = DatabaseEntry { tables: tables.into(), read_at, version };
        self.databases.insert(key, entry.clone());
        Ok(entry)
    }

    /// If the new description is the first with stored code, marks the project's sessions to be reset.
    pub(super) fn keep(&self, key: Key, table: &Arc<Table>, read_at: Instant, version: u64) {
        let known = self.tables.get(&key).map(|known| known.table.traits());
        if table.traits().stored_code && known.is_some_and(|known| !known.stored_code) {
            // Until now, statements ran as if the table had no stored code.
            self.statement_pools.reset_all_sessions(&key.project);
        }
        let refreshing = AtomicBool::new(false);
        let entry = Entry { table: Arc::clone(table), read_at, checked_at: read_at, version, refreshing };
        self.tables.insert(key, Arc::new(entry));
    }
}
