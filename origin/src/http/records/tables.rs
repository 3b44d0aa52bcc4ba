//! Loads the schemas of an operation's tables: the table in the path, and joined and related tables.

use crate::database::errno;
use crate::database::run::SessionEffect;
use crate::database::schema_cache::SchemaAge;
use crate::database::table_loader::TableLoader;
use crate::query::catalog::{Column, Table, broken_view};
use crate::query::plan::related::RelatedTable;
use crate::query::plan::scope::Scope;
use crate::query::plan::{self, access::TableAccess};
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use shared::error::{Details, Problem, ShownToRoles};
use shared::ident::{FieldName, shown};
use shared::operation::filter::Condition;
use shared::operation::{RecordOperation, TablePath};
use std::sync::Arc;

#[derive(Debug)]
pub(in crate::http) struct Tables {
    root: TableAccess,
    joined: Vec<TableAccess>,
    related: Vec<RelatedTable>,
    references: Vec<RelatedTable>,
}

impl Tables {
    pub(in crate::http) async fn load(
        app: &Arc<ServiceState>,
        caller: &Caller,
        operation: &RecordOperation,
        age: SchemaAge,
    ) -> Result<Self, Problem> {
        let loader = loader(app, caller, age);
        let path = operation.table();
        let root = loader.access(path).await?;
        let mut joined = Vec::new();
        for join in operation.joins() {
            let path = TablePath { database: path.database.clone(), table: join.table.clone() };
            joined.push(loader.access(&path).await?);
        }
        let conditions = operation.filter().map(Condition::related).unwrap_or_default();
        let related = loader.related(&root, operation.includes(), &conditions).await?;
        let references = loader.references(operation).await?;
        Ok(Self { root, joined, related, references })
    }

    /// Loads one table. A table that the caller's role hides fails like a missing table.
    pub(in crate::http) async fn one(
        app: &Arc<ServiceState>,
        caller: &Caller,
        path: &TablePath,
        age: SchemaAge,
    ) -> Result<TableAccess, Problem> {
        loader(app, caller, age).access(path).await
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
        let scope = Scope::joined(&self.root, operation.joins(), &self.joined)?;
        Ok(scope.with_related(&self.related).with_references(&self.references))
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
        let related = self.related.iter().chain(&self.references).flat_map(RelatedTable::accesses);
        [&self.root].into_iter().chain(&self.joined).chain(related)
    }
}

fn loader<'a>(app: &'a Arc<ServiceState>, caller: &'a Caller, age: SchemaAge) -> TableLoader<'a> {
    TableLoader { cache: &app.schema_cache, project: caller.project(), rights: caller.rights(), age }
}
