//! Loads the schema of an operation's tables: its root and those that it joins.

use crate::app::App;
use crate::database::run::SessionEffect;
use crate::query::catalog::Table;
use crate::query::catalog::relations::{self, Link, Relation, Relations};
use crate::query::plan::access::TableAccess;
use crate::query::plan::related::RelatedTable;
use crate::query::plan::scope::Scope;
use crate::system::keys::Caller;
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::operation::filter::{Condition, Related};
use shared::operation::read::Include;
use shared::operation::{RecordOperation, TablePath};
use std::sync::Arc;

#[derive(Debug)]
pub(in crate::http) struct Tables {
    root: TableAccess,
    joined: Vec<TableAccess>,
    related: Vec<RelatedTable>,
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
        caller: &Caller,
        operation: &RecordOperation,
        schema: Schema,
    ) -> Result<Self, Problem> {
        let table = async |path: &TablePath| access(app, caller, path, schema).await;
        let path = operation.table();
        let root = table(path).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath { database: path.database.clone(), table: join.table.clone() };
            joined.push(table(&path).await?);
        }
        let conditions = operation.read_filter().map(Condition::related).unwrap_or_default();
        let loader = Loader { app, caller, database: &path.database, schema };
        let related = loader.related(&root, operation.includes(), &conditions).await?;
        Ok(Self { root, joined, related })
    }

    /// Returns the access to one table.
    pub(in crate::http) async fn one(
        app: &Arc<App>,
        caller: &Caller,
        path: &TablePath,
    ) -> Result<TableAccess, Problem> {
        access(app, caller, path, Schema::Cached).await
    }

    pub(in crate::http) fn root(&self) -> &Arc<Table> {
        self.root.table()
    }

    /// Returns the scope in which the operation's column names are resolved.
    pub(in crate::http) fn scope<'a>(&'a self, operation: &'a RecordOperation) -> Result<Scope<'a>, Problem> {
        Ok(Scope::joined(&self.root, operation.joins(), &self.joined)?.with_related(&self.related))
    }

    /// Returns the effect that a statement on the tables may have on the session of its connection.
    pub(in crate::http) fn leave(&self) -> SessionEffect {
        let related = self.related.iter().flat_map(RelatedTable::accesses);
        let all = [&self.root].into_iter().chain(&self.joined).chain(related);
        all.map(|access| SessionEffect::of(access.table()))
            .find(|effect| *effect == SessionEffect::Anything)
            .unwrap_or(SessionEffect::Nothing)
    }
}

/// Loads the tables that a read reaches by relations.
struct Loader<'a> {
    app: &'a Arc<App>,
    caller: &'a Caller,
    database: &'a DatabaseName,
    schema: Schema,
}

impl Loader<'_> {
    /// Loads the tables of includes and of conditions on related records, which may name the same relations.
    async fn related(
        &self,
        table: &TableAccess,
        includes: &[Include],
        conditions: &[&Related],
    ) -> Result<Vec<RelatedTable>, Problem> {
        if includes.is_empty() && conditions.is_empty() {
            return Ok(Vec::new());
        }
        let project = self.caller.project();
        let relations = self.app.schema_cache.relations(project, self.database).await?;
        let relations = visible(&relations, table, self.caller);
        let mut tables: Vec<RelatedTable> = Vec::new();
        let named = includes.iter().map(|include| (&include.relation, ErrorCode::InvalidQueryOption));
        let tested = conditions.iter().map(|condition| (&condition.relation, ErrorCode::UnknownField));
        for (name, code) in named.chain(tested) {
            if tables.iter().any(|known| known.name() == &**name) {
                continue;
            }
            let relation = relations::find(&relations, table.table().name(), name, code)?.clone();
            let far = self.access(&relation.table).await?;
            let link = match &relation.link {
                Some(link) => Some(self.access(&link.table).await?),
                None => None,
            };
            let includes: Vec<_> = includes.iter().filter(|include| include.relation == *name).collect();
            let tested = conditions.iter().filter(|condition| condition.relation == *name);
            let filters = includes.iter().filter_map(|include| include.filter.as_ref());
            let inner = filters.chain(tested.filter_map(|condition| condition.condition.as_deref()));
            let inner: Vec<_> = inner.flat_map(Condition::related).collect();
            let nested: Vec<_> = includes.iter().flat_map(|include| include.includes.iter().cloned()).collect();
            let related = Box::pin(self.related(&far, &nested, &inner)).await?;
            tables.push(RelatedTable::new(name.clone(), relation, far, link, related));
        }
        Ok(tables)
    }

    async fn access(&self, table: &TableName) -> Result<TableAccess, Problem> {
        let path = TablePath { database: self.database.clone(), table: table.clone() };
        access(self.app, self.caller, &path, self.schema).await
    }
}

/// Returns the relations of a table of which the caller may read all columns, in all their tables.
pub(in crate::http) fn visible(relations: &Relations, table: &TableAccess, caller: &Caller) -> Vec<Relation> {
    let (database, own) = (table.table().database(), table.table());
    let reads = |table: &TableName, columns: &[FieldName]| {
        let path = TablePath { database: database.clone(), table: table.clone() };
        columns.iter().all(|column| caller.reads(&path, column))
    };
    relations.of(own.name(), |relation| {
        let is_link_visible = |link: &Link| {
            reads(&link.table, &link.columns)
                && reads(&link.table, &relation.matches)
                && reads(&relation.table, &link.matches)
        };
        relation.columns.iter().all(|column| own.find(column).is_some())
            && match &relation.link {
                Some(link) => is_link_visible(link),
                None => reads(&relation.table, &relation.matches),
            }
    })
}

/// Returns the caller's access to a table. A role's caller does not learn which other tables exist.
async fn access(app: &Arc<App>, caller: &Caller, path: &TablePath, schema: Schema) -> Result<TableAccess, Problem> {
    let rights = caller.rights();
    rights.check(path)?;
    let project = caller.project();
    let table = match schema {
        Schema::Cached => app.schema_cache.table(project, path).await,
        Schema::Fresh => app.schema_cache.reload(project, path).await,
    };
    match table {
        Ok(table) => rights.of(&table),
        Err(problem) if rights.role().is_some() => Err(problem.without_hint()),
        Err(problem) => Err(problem),
    }
}
