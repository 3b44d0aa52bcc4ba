//! The tables that an operation is about, looked up in the catalogue.

use crate::catalog::Table;
use crate::db::catalog::Catalog;
use crate::db::run::Leaves;
use crate::plan::scope::Scope;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::operation::{Operation, TablePath};
use std::sync::Arc;

/// Where the schema is taken from.
#[derive(Clone, Copy)]
pub(super) enum Schema {
    /// What is known, if it is not too old.
    Cached,
    /// MariaDB: what was known did not fit.
    Fresh,
}

/// The tables of an operation: its root, and those that it joins.
pub(super) struct Tables {
    root: Arc<Table>,
    joined: Vec<Arc<Table>>,
}

impl Tables {
    /// Looks them up.
    ///
    /// # Errors
    /// `database_not_found` or `table_not_found`; what MariaDB gave.
    pub(super) async fn find(
        catalog: &Arc<Catalog>,
        project: &ProjectName,
        operation: &Operation,
        schema: Schema,
    ) -> Result<Self, Problem> {
        let path = operation
            .table()
            .ok_or_else(|| Problem::new(ErrorCode::Internal, "The operation has no table."))?;
        let root = table(catalog, project, path, schema).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath {
                database: path.database.clone(),
                table: join.table.clone(),
            };
            joined.push(table(catalog, project, &path, schema).await?);
        }
        Ok(Self { root, joined })
    }

    /// The table whose records the operation is about.
    pub(super) fn root(&self) -> &Table {
        &self.root
    }

    /// What the names of the operation mean.
    ///
    /// # Errors
    /// As [`Scope::joined`].
    pub(super) fn scope<'a>(&'a self, operation: &'a Operation) -> Result<Scope<'a>, Problem> {
        Scope::joined(&self.root, operation.joins(), &self.joined)
    }

    /// Whether using them may leave something in the session.
    pub(super) fn leave(&self) -> Leaves {
        let stored = |table: &Arc<Table>| table.traits().stored_code;
        if stored(&self.root) || self.joined.iter().any(stored) {
            Leaves::Anything
        } else {
            Leaves::Nothing
        }
    }
}

async fn table(
    catalog: &Arc<Catalog>,
    project: &ProjectName,
    path: &TablePath,
    schema: Schema,
) -> Result<Arc<Table>, Problem> {
    match schema {
        Schema::Cached => catalog.table(project, path).await,
        Schema::Fresh => catalog.reload(project, path).await,
    }
}
