//! Loads the schema of an operation's tables: its root and those that it joins.

use crate::app::App;
use crate::database::run::SessionEffect;
use crate::query::catalog::Table;
use crate::query::plan::scope::Scope;
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::operation::{RecordOperation, TablePath};
use std::sync::Arc;

#[derive(Debug)]
pub(in crate::http) struct Tables {
    root: Arc<Table>,
    joined: Vec<Arc<Table>>,
}

/// The source from which a table's schema is loaded.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Schema {
    /// The schema cache, or MariaDB if the entry is missing or has expired.
    Cached,
    /// MariaDB, since the cached schema is stale.
    Fresh,
}

impl Tables {
    pub(in crate::http) async fn load(
        app: &Arc<App>,
        project: &ProjectName,
        operation: &RecordOperation,
        schema: Schema,
    ) -> Result<Self, Problem> {
        let table = async |path: &TablePath| match schema {
            Schema::Cached => app.schema_cache.table(project, path).await,
            Schema::Fresh => app.schema_cache.reload(project, path).await,
        };
        let path = operation.table();
        let root = table(path).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath { database: path.database.clone(), table: join.table.clone() };
            joined.push(table(&path).await?);
        }
        Ok(Self { root, joined })
    }

    pub(in crate::http) fn root(&self) -> &Arc<Table> {
        &self.root
    }

    /// Returns the scope in which the operation's column names are resolved.
    pub(in crate::http) fn scope<'a>(&'a self, operation: &'a RecordOperation) -> Result<Scope<'a>, Problem> {
        Scope::joined(&self.root, operation.joins(), &self.joined)
    }

    /// Returns the effect that a statement on the tables may have on the session of its connection.
    pub(in crate::http) fn leave(&self) -> SessionEffect {
        let all = [&self.root].into_iter().chain(&self.joined);
        all.map(|table| SessionEffect::of(table))
            .find(|effect| *effect == SessionEffect::Anything)
            .unwrap_or(SessionEffect::Nothing)
    }
}
