//! Caches the foreign keys of databases, for requests that use related records and for descriptions of tables.

use super::{Bytes, LOAD_TIMEOUT, STALE_AFTER, SchemaCache, again_if_lost};
use crate::database::error::DbError;
use crate::database::schema_reader;
use crate::query::catalog::relations::Relations;
use quick_cache::Weighter;
use shared::error::Problem;
use shared::ident::{DatabaseName, ProjectName};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A foreign key's memory as a multiple of its names' bytes: each key is in several lists.
const NAMES_TIMES: u64 = 8;

const ENTRY_BYTES: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaAge {
    Cached,
    /// MariaDB refused a statement that was planned with cached schemas or foreign keys.
    Fresh,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    relations: Arc<Relations>,
    names: usize,
    read_at: Instant,
    version: u64,
}

impl Weighter<(ProjectName, DatabaseName), Entry> for Bytes {
    fn weight(&self, _: &(ProjectName, DatabaseName), entry: &Entry) -> u64 {
        ENTRY_BYTES + NAMES_TIMES * entry.names as u64
    }
}

impl SchemaCache {
    pub async fn relations(
        self: &Arc<Self>,
        project: &ProjectName,
        database: &DatabaseName,
        age: SchemaAge,
    ) -> Result<Arc<Relations>, Problem> {
        let version = self.version(project);
        let key = (project.clone(), database.clone());
        let max_age = match age {
            SchemaAge::Cached => STALE_AFTER,
            SchemaAge::Fresh => Duration::ZERO,
        };
        let is_usable = |entry: &Entry| entry.version == version && entry.read_at.elapsed() < max_age;
        if let Some(entry) = self.relations.get(&key).filter(is_usable) {
            return Ok(entry.relations);
        }
        let (cache, wanted) = (Arc::clone(self), key.clone());
        let load = async move { cache.load_relations(wanted, version).await };
        let loaded = Box::pin(self.relation_loads.run((key, version, age), load)).await;
        loaded.map(|entry| entry.relations).map_err(DbError::into_problem)
    }

    async fn load_relations(&self, key: (ProjectName, DatabaseName), version: u64) -> Result<Entry, DbError> {
        let read_at = Instant::now();
        let (project, database) = &key;
        let relations = again_if_lost(|| async {
            schema_reader::relations(&mut self.lease(project).await?, database, LOAD_TIMEOUT).await
        });
        let (relations, names) = relations.await?;
        let entry = Entry { relations: Arc::new(relations), names, read_at, version };
        self.relations.insert(key, entry.clone());
        Ok(entry)
    }
}
