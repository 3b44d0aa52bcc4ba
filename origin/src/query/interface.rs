//! Collects what a caller may do with a project's tables, for an OpenAPI document and client types. Does no I/O.

mod identifier;
pub mod openapi;
pub mod python;
pub mod rust;
pub mod typescript;
mod value;

use super::catalog::relations::{Relation, RelationKind, Relations};
use super::catalog::{Column, Table};
use super::plan::access::{Rights, TableAccess};
use super::plan::related::visible;
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::key::{Access, Grant};
use shared::limits::API_DESCRIPTION_MAX_BYTES;
use shared::policy::{self, Action};
use std::sync::Arc;

#[derive(Debug)]
pub struct Interface {
    databases: Vec<(DatabaseName, Vec<TableInterface>)>,
    grant: Grant,
    media: MediaInterface,
    sql: Option<Access>,
    /// The maximum length of a description.
    max_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct MediaInterface {
    pub read: bool,
    pub upload: bool,
    pub delete: bool,
}

#[derive(Debug)]
pub struct TableInterface {
    access: TableAccess,
    relations: Vec<Arc<Relation>>,
    actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the description has more than {API_DESCRIPTION_MAX_BYTES} bytes")]
pub struct TooLong;

impl TooLong {
    pub fn into_problem(self) -> Problem {
        let mib = API_DESCRIPTION_MAX_BYTES / 1024 / 1024;
        let message = format!("The description of the API has more than {mib} MiB, the maximum.");
        Problem::new(ErrorCode::SqlError, message)
            .with_hint("Add ?database= to describe one database, or use the key of a role that shows fewer tables.")
    }
}

impl Interface {
    /// `sql` is the account that runs the caller's SQL.
    pub fn new(grant: Grant, media: MediaInterface, sql: Option<Access>) -> Self {
        Self { databases: Vec::new(), grant, media, sql, max_bytes: API_DESCRIPTION_MAX_BYTES }
    }

    /// Fails if a description is too long. Called after each part that is written.
    fn check_description_length(&self, written: usize) -> Result<(), TooLong> {
        if written > self.max_bytes { Err(TooLong) } else { Ok(()) }
    }

    pub fn add(&mut self, database: DatabaseName, tables: &[Arc<Table>], relations: &Relations, rights: &Rights) {
        let reads = |table: &TableName, field: &FieldName| rights.reads(&database, table, field);
        let accesses = tables.iter().filter_map(|table| rights.of(table).ok());
        let tables = accesses.map(|access| {
            let relations = visible(relations, &access, &reads);
            TableInterface::new(access, relations, &self.grant)
        });
        let mut tables: Vec<_> = tables.filter(|table| !table.actions.is_empty()).collect();
        tables.sort_by(|one, other| one.table().name().as_str().cmp(other.table().name().as_str()));
        self.databases.push((database, tables));
        self.databases.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
    }

    fn tables(&self) -> impl Iterator<Item = &TableInterface> {
        self.databases.iter().flat_map(|(_, tables)| tables)
    }

    fn readable(&self, database: &str, name: &str) -> Option<&TableInterface> {
        let at = self.databases.binary_search_by(|(known, _)| known.as_str().cmp(database)).ok()?;
        let (_, tables) = &self.databases[at];
        let at = tables.binary_search_by(|table| table.name().cmp(name)).ok()?;
        Some(&tables[at]).filter(|table| table.may(Action::Read))
    }

    fn may(&self, action: Action) -> bool {
        policy::permit(action, &self.grant).is_ok()
    }
}

impl TableInterface {
    fn new(access: TableAccess, relations: Vec<Arc<Relation>>, grant: &Grant) -> Self {
        let is_read_only = access.table().traits().read_only;
        let is_possible = |action: &Action| {
            let fits = *action == Action::Read || !is_read_only;
            fits && access.may(*action) && policy::permit(*action, grant).is_ok()
        };
        let actions = [Action::Read, Action::Insert, Action::Update, Action::Delete];
        let actions: Vec<_> = actions.into_iter().filter(is_possible).collect();
        let relations = if actions.contains(&Action::Read) { relations } else { Vec::new() };
        Self { access, relations, actions }
    }

    fn table(&self) -> &Table {
        self.access.table()
    }

    fn database(&self) -> &str {
        self.table().database().as_str()
    }

    fn name(&self) -> &str {
        self.table().name().as_str()
    }

    fn may(&self, action: Action) -> bool {
        self.actions.contains(&action)
    }

    fn columns(&self) -> &[Arc<Column>] {
        if self.may(Action::Read) { self.table().columns() } else { &[] }
    }

    fn given(&self, action: Action) -> Vec<&Column> {
        let given = if self.may(action) { self.access.given(action) } else { Vec::new() };
        given.into_iter().map(|at| self.table().column(at)).collect()
    }

    /// Returns a record's fields, each with whether it may be left out; `None` if the caller may not do the action.
    fn form(&self, action: Action) -> Option<Vec<(&Column, bool)>> {
        if !self.may(action) {
            return None;
        }
        let visible = self.table().visible_columns().len();
        let (_, set) = self.access.fields(Action::Insert);
        let is_optional = |column: &Column| !column.required() || set.contains(&column.name.as_str());
        let given = self.given(action).into_iter();
        Some(match action {
            Action::Insert => given.map(|column| (column, is_optional(column))).collect(),
            Action::Update => given.map(|column| (column, true)).collect(),
            _ => self.columns().iter().enumerate().map(|(at, column)| (&**column, at >= visible)).collect(),
        })
    }

    fn id(&self) -> Option<Id<'_>> {
        let table = self.table();
        match (table.key(), table.key_is_readable()) {
            ([], _) | ([_, _, ..], false) => None,
            ([_], false) => Some(Id::Hidden),
            ([at], true) => Some(Id::One(table.column(*at))),
            (key, true) => Some(Id::Several(key.iter().map(|at| table.column(*at).name.as_str()).collect())),
        }
    }

    /// Returns the relations by name, without those that have the name of a field.
    fn included(&self) -> Vec<(&str, Vec<&Relation>)> {
        let mut included: Vec<(&str, Vec<&Relation>)> = Vec::new();
        for relation in &self.relations {
            let is_taken = self.columns().iter().any(|column| column.name.as_str() == relation.name);
            match included.iter_mut().find(|(name, _)| *name == relation.name) {
                Some((_, same)) => same.push(relation),
                None if is_taken => {}
                None => included.push((&relation.name, vec![relation])),
            }
        }
        included
    }
}

enum Id<'a> {
    One(&'a Column),
    Several(Vec<&'a str>),
    /// The caller can write records by `{id}`, but not read them.
    Hidden,
}

fn kind(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::One => "one",
        RelationKind::Many => "many",
    }
}

#[cfg(test)]
mod tests;
