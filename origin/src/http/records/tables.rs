//! Loads the schemas of an operation's tables: the table in the path, and joined and related tables.

use crate::database::errno;
use crate::database::run::SessionEffect;
use crate::database::schema_cache::SchemaAge;
use crate::query::catalog::relations::Relations;
use crate::query::catalog::{Column, Table, broken_view};
use crate::query::plan::related::{RelatedTable, RelationUse, relation_uses};
use crate::query::plan::scope::Scope;
use crate::query::plan::{self, access::TableAccess};
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use futures_util::future::BoxFuture;
use shared::error::{Details, Problem, ShownToRoles};
use shared::ident::{DatabaseName, FieldName, TableName, shown};
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

impl Tables {
    pub(in crate::http) async fn load(
        app: &Arc<ServiceState>,
        caller: &Caller,
        operation: &RecordOperation,
        age: SchemaAge,
    ) -> Result<Self, Problem> {
        let table = async |path: &TablePath| access(app, caller, path, age).await;
        let path = operation.table();
        let root = table(path).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath { database: path.database.clone(), table: join.table.clone() };
            joined.push(table(&path).await?);
        }
        let conditions = operation.filter().map(Condition::related).unwrap_or_default();
        let related = match operation.includes().is_empty() && conditions.is_empty() {
            true => Vec::new(),
            false => {
                let relations = app.schema_cache.relations(caller.project(), &path.database, age).await?;
                let loader = RelatedLoader { app, caller, database: &path.database, relations: &relations, age };
                loader.load(&root, operation.includes(), &conditions).await?
            }
        };
        Ok(Self { root, joined, related })
    }

    /// Loads one table. A table that the caller's role hides fails like a missing table.
    pub(in crate::http) async fn one(
        app: &Arc<ServiceState>,
        caller: &Caller,
        path: &TablePath,
        age: SchemaAge,
    ) -> Result<TableAccess, Problem> {
        access(app, caller, path, age).await
    }

    /// Adds the field to the problem of a duplicate key or CHECK that concerns one field. Returns other problems
    /// unchanged, and all if the table has stored code, since the constraint may be another table's.
    fn with_field_of_constraint(&self, problem: Problem) -> Problem {
        let root = self.root();
        let Some(Details { refusal: Some(refusal), constraint: Some(constraint), field: None, .. }) = problem.details()
        else {
            return problem;
        };
        let of_field = |column: &Column| match refusal.errno {
            errno::DUP_ENTRY | errno::DUP_ENTRY_WITH_KEY_NAME => {
                column.unique.iter().any(|name| **name == **constraint)
            }
            errno::CONSTRAINT_FAILED => column.checks.iter().any(|name| **name == **constraint),
            _ => false,
        };
        let mut columns = root.all_columns().map(|at| root.column(at));
        match columns.find(|column| of_field(column)).filter(|_| !root.traits().stored_code) {
            Some(column) => problem.with_field(column.name.as_str()),
            None => problem,
        }
    }

    /// Shows callers with a role MariaDB's error about a field that they may read or write, or about their own pattern,
    /// but no value of a trigger and no other table.
    pub(in crate::http) fn show_own_fault(&self, problem: Problem, operation: &RecordOperation) -> Problem {
        let problem = self.with_field_of_constraint(problem);
        let Some(details) = problem.details() else {
            return problem;
        };
        let Some(errno) = details.refusal.as_ref().map(|refusal| refusal.errno) else {
            return problem;
        };
        if matches!(errno, errno::REGEXP_ERROR | errno::PARSE_ERROR) {
            // Rendered statements are valid SQL, so one of their patterns is not.
            return match self.accesses().any(TableAccess::rules_have_parsed_patterns) || self.has_stored_code() {
                true => problem,
                false => problem.shown_to_roles(ShownToRoles::Everything),
            };
        }
        let Details { field: Some(field), constraint, .. } = details else {
            return problem;
        };
        let root = self.root();
        let may_set = plan::may_set(field, operation, &self.root);
        let shown = match errno {
            // MariaDB's messages name only the column, but a trigger may signal these numbers with a text of its own.
            errno::BAD_NULL
            | errno::DATA_OUT_OF_RANGE_IN_COLUMN
            | errno::DATA_TRUNCATED
            | errno::NO_DEFAULT_FOR_FIELD
            | errno::DATA_TOO_LONG => match root.traits().stored_code {
                true => ShownToRoles::Field,
                false => ShownToRoles::Everything,
            },
            // The messages of these errors name the value and the table.
            errno::DUP_ENTRY | errno::DUP_ENTRY_WITH_KEY_NAME => ShownToRoles::Field,
            errno::TRUNCATED_WRONG_VALUE | errno::TRUNCATED_WRONG_VALUE_FOR_FIELD => {
                match may_set && !root.traits().stored_code {
                    true => ShownToRoles::Everything,
                    false => ShownToRoles::Field,
                }
            }
            // MariaDB reports a field's CHECK as `table.field`, and other constraints by their names.
            errno::CONSTRAINT_FAILED if constraint.as_deref() == Some(&format!("{}.{field}", root.name().as_str())) => {
                ShownToRoles::Everything
            }
            errno::CONSTRAINT_FAILED | errno::NO_REFERENCED_ROW if !root.traits().stored_code => ShownToRoles::Field,
            _ => return problem,
        };
        let may_read = || FieldName::parse(field).is_ok_and(|name| root.find(&name).is_some());
        let writes = matches!(operation, RecordOperation::Insert(_) | RecordOperation::Update(_));
        match may_set || (writes && may_read()) {
            true => problem.shown_to_roles(shown),
            false => problem,
        }
    }

    pub(in crate::http) fn root(&self) -> &Arc<Table> {
        self.root.table()
    }

    pub(in crate::http) fn scope<'a>(&'a self, operation: &'a RecordOperation) -> Result<Scope<'a>, Problem> {
        let mut tables = [&self.root].into_iter().chain(&self.joined).map(TableAccess::table);
        if let Some(view) = tables.find(|table| table.is_broken()) {
            return Err(broken_view(&format!("The view {}", shown(view.name().as_str()))));
        }
        Ok(Scope::joined(&self.root, operation.joins(), &self.joined)?.with_related(&self.related))
    }

    pub(in crate::http) fn session_effect(&self) -> SessionEffect {
        match self.has_stored_code() {
            true => SessionEffect::Anything,
            false => SessionEffect::Nothing,
        }
    }

    fn has_stored_code(&self) -> bool {
        self.accesses().any(|access| SessionEffect::of(access.table()) == SessionEffect::Anything)
    }

    fn accesses(&self) -> impl Iterator<Item = &TableAccess> {
        let related = self.related.iter().flat_map(RelatedTable::accesses);
        [&self.root].into_iter().chain(&self.joined).chain(related)
    }
}

struct RelatedLoader<'a> {
    app: &'a Arc<ServiceState>,
    caller: &'a Caller,
    database: &'a DatabaseName,
    relations: &'a Relations,
    age: SchemaAge,
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
        let reads = |name: &TableName, column: &FieldName| self.caller.reads(&self.path(name), column);
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
        access(self.app, self.caller, &self.path(name), self.age).await
    }

    fn path(&self, name: &TableName) -> TablePath {
        TablePath { database: self.database.clone(), table: name.clone() }
    }
}

async fn access(
    app: &Arc<ServiceState>,
    caller: &Caller,
    path: &TablePath,
    age: SchemaAge,
) -> Result<TableAccess, Problem> {
    let rights = caller.rights();
    rights.check(path)?;
    let project = caller.project();
    let table = match age {
        SchemaAge::Cached => app.schema_cache.table(project, path).await,
        SchemaAge::Fresh => app.schema_cache.reload(project, path).await,
    };
    match table {
        Ok(table) => rights.of(&table),
        Err(problem) if rights.role().is_some() => Err(problem.without_hint()),
        Err(problem) => Err(problem),
    }
}
