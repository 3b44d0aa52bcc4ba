//! The tables of an operation: its root, and those that it joins.

use crate::app::App;
use crate::database::run::SessionEffect;
use crate::query::catalog::Table;
use crate::query::plan::scope::Scope;
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::operation::{Operation, TablePath};
use std::sync::Arc;

/// What the catalogue knows of them.
#[derive(Debug)]
pub(in crate::http) struct Tables {
    root: Arc<Table>,
    joined: Vec<Arc<Table>>,
}

/// Where it is taken from.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Schema {
    /// What is remembered, if it is not too old.
    Cached,
    /// MariaDB: what was remembered did not fit.
    Fresh,
}

impl Tables {
    /// Looks up the tables of an operation.
    pub(in crate::http) async fn load(
        app: &Arc<App>,
        project: &ProjectName,
        operation: &Operation,
        schema: Schema,
    ) -> Result<Self, Problem> {
        let table = async |path: &TablePath| match schema {
            Schema::Cached => app.catalog.table(project, path).await,
            Schema::Fresh => app.catalog.reload(project, path).await,
        };
        let path = operation.table().ok_or_else(|| {
            Problem::internal("Something went wrong in the service itself.", "the operation has no table")
        })?;
        let root = table(path).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath { database: path.database.clone(), table: join.table.clone() };
            joined.push(table(&path).await?);
        }
        Ok(Self { root, joined })
    }

    /// The root.
    pub(in crate::http) fn root(&self) -> &Arc<Table> {
        &self.root
    }

    /// What names mean among them.
    pub(in crate::http) fn scope<'a>(&'a self, operation: &'a Operation) -> Result<Scope<'a>, Problem> {
        Scope::joined(&self.root, operation.joins(), &self.joined)
    }

    /// What using them may leave in the session.
    pub(in crate::http) fn leave(&self) -> SessionEffect {
        let all = [&self.root].into_iter().chain(&self.joined);
        all.map(|table| SessionEffect::of(table))
            .find(|effect| *effect == SessionEffect::Anything)
            .unwrap_or(SessionEffect::Nothing)
    }
}
