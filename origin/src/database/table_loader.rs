//! Loads tables with a caller's rights on them, and the tables that a request or a rule of a role reaches by relations.

use super::schema_cache::{SchemaAge, SchemaCache};
use crate::query::catalog::relations::Relations;
use crate::query::plan::access::{Rights, TableAccess};
use crate::query::plan::related::{RelatedTable, RelationUse, checked_references, relation_uses};
use futures_util::future::BoxFuture;
use shared::error::Problem;
use shared::ident::{DatabaseName, FieldName, ProjectName, TableName};
use shared::operation::filter::Related;
use shared::operation::read::Include;
use shared::operation::{RecordOperation, TablePath};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub struct TableLoader<'a> {
    pub cache: &'a Arc<SchemaCache>,
    pub project: &'a ProjectName,
    pub rights: &'a Rights,
    pub age: SchemaAge,
}

impl TableLoader<'_> {
    /// Loads a table. A table that the caller's role hides fails like a missing table. Rules that can't be resolved, since
    /// a relation is gone, allow no record.
    pub async fn access(&self, path: &TablePath) -> Result<TableAccess, Problem> {
        self.rights.check(path)?;
        let table = match self.age {
            SchemaAge::Cached => self.cache.table(self.project, path).await,
            SchemaAge::Fresh => self.cache.reload(self.project, path).await,
        };
        let table = match table {
            Err(problem) if self.rights.role().is_some() => return Err(problem.without_hint()),
            table => table?,
        };
        let rules = self.rights.related(path);
        if rules.is_empty() {
            return self.rights.of(&table);
        }
        let whole = Rights::Full.of(&table)?;
        match (TableLoader { rights: &Rights::Full, ..*self }).related(&whole, &[], &rules).await {
            Err(problem) if problem.status() >= 500 => Err(problem),
            related => self.rights.by(&table, &related.unwrap_or_default()),
        }
    }

    /// Loads the tables to whose records the caller's write may refer only if the caller may read them.
    pub async fn references(&self, operation: &RecordOperation) -> Result<Vec<RelatedTable>, Problem> {
        let hides_rows = self.rights.role().is_some_and(|caller| caller.role().hides_rows());
        if !hides_rows || !matches!(operation, RecordOperation::Insert(_) | RecordOperation::Update(_)) {
            return Ok(Vec::new());
        }
        let database = &operation.table().database;
        let relations = self.cache.relations(self.project, database, self.age).await?;
        let mut tables = Vec::new();
        for relation in checked_references(&relations, operation, self.rights) {
            let path = TablePath { database: database.clone(), table: relation.table.clone() };
            tables.extend(RelatedTable::referenced(relation, Box::pin(self.access(&path)).await?));
        }
        Ok(tables)
    }

    /// Loads the tables that includes and conditions of `table` reach.
    pub async fn related(
        &self,
        table: &TableAccess,
        includes: &[Include],
        conditions: &[&Related],
    ) -> Result<Vec<RelatedTable>, Problem> {
        if includes.is_empty() && conditions.is_empty() {
            return Ok(Vec::new());
        }
        let database = table.table().database();
        let relations = self.cache.relations(self.project, database, self.age).await?;
        RelatedLoader { loader: *self, database, relations: &relations }.load(table, includes, conditions).await
    }
}

struct RelatedLoader<'a> {
    loader: TableLoader<'a>,
    database: &'a DatabaseName,
    relations: &'a Relations,
}

impl RelatedLoader<'_> {
    /// Loads the related tables that the includes and conditions of `table` use, and recursively those of nested
    /// relations.
    fn load<'f>(
        &'f self,
        table: &'f TableAccess,
        includes: &'f [Include],
        conditions: &'f [&'f Related],
    ) -> BoxFuture<'f, Result<Vec<RelatedTable>, Problem>> {
        let reads = |name: &TableName, column: &FieldName| self.loader.rights.reads(self.database, name, column);
        let uses = relation_uses(self.relations, table, includes, conditions, &reads);
        Box::pin(async move {
            let mut tables = Vec::new();
            for RelationUse { name, relation, includes, conditions } in uses? {
                let far = self.access(&relation.table).await?;
                let link = match &relation.link {
                    Some(link) => Some(self.access(&link.table).await?),
                    None => None,
                };
                let related = self.load(&far, &includes, &conditions).await?;
                tables.push(RelatedTable::new(name, relation, far, link, related));
            }
            Ok(tables)
        })
    }

    async fn access(&self, name: &TableName) -> Result<TableAccess, Problem> {
        self.loader.access(&TablePath { database: self.database.clone(), table: name.clone() }).await
    }
}
