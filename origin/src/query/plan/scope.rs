//! The tables of a statement, and the resolution of field names among them.

use super::access::TableAccess;
use super::related::{RelatedNames, RelatedTable};
use super::{ColumnRef, Predicate};
use crate::query::catalog::{Column, Table};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, TableName, shown};
use shared::operation::field::FieldRef;
use shared::operation::read::Join;
use shared::policy::Action;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Scope<'a> {
    root: &'a TableAccess,
    root_name: Option<&'a TableName>,
    joined: Vec<Joined<'a>>,
    related: &'a [RelatedTable],
    references: &'a [RelatedTable],
    action: Action,
    slow_test_limit: Option<&'a SlowTestLimit<'a>>,
    /// Whether the limit is written already, around the part that is written now.
    is_limit_written: bool,
}

/// Slow tests of `scope` and of its subqueries run only on records of `scope` that meet `condition`: the time that such
/// tests take on a record that the caller may not read would tell what the record holds.
#[derive(Clone, Copy, Debug)]
pub struct SlowTestLimit<'a> {
    pub scope: &'a Scope<'a>,
    pub condition: &'a Predicate,
}

#[derive(Clone, Copy, Debug)]
struct Joined<'a> {
    access: &'a TableAccess,
    name: &'a TableName,
}

impl<'a> Scope<'a> {
    pub const fn of(root: &'a TableAccess) -> Self {
        Self {
            root,
            root_name: None,
            joined: Vec::new(),
            related: &[],
            references: &[],
            action: Action::Read,
            slow_test_limit: None,
            is_limit_written: false,
        }
    }

    /// Without `names`, the tables go by their own names.
    pub(super) fn related(
        root: &'a TableAccess,
        link: Option<&'a TableAccess>,
        related: &'a [RelatedTable],
        names: Option<&'a RelatedNames>,
    ) -> Self {
        let link_name = |access: &'a TableAccess| names.map_or(access.table().name(), |names| &names.link);
        let joined = link.map(|access| Joined { access, name: link_name(access) }).into_iter().collect();
        Self { root_name: names.map(|names| &names.table), joined, related, ..Self::of(root) }
    }

    pub fn with_related(self, related: &'a [RelatedTable]) -> Self {
        Self { related, ..self }
    }

    /// `references` are the tables to whose records a write may refer only if the caller may read them.
    pub fn with_references(self, references: &'a [RelatedTable]) -> Self {
        Self { references, ..self }
    }

    pub fn with_slow_test_limit(&self, limit: &'a SlowTestLimit<'a>) -> Self {
        Self { slow_test_limit: Some(limit), is_limit_written: false, ..self.clone() }
    }

    /// Takes over the limit of the outer scope.
    pub fn within(self, outer: &Self) -> Self {
        Self { slow_test_limit: outer.slow_test_limit, ..self }
    }

    pub fn must_limit_slow_tests(&self) -> bool {
        self.slow_test_limit.is_some() && !self.is_limit_written
    }

    pub fn within_slow_test_limits(&self) -> Self {
        Self { is_limit_written: true, ..self.clone() }
    }

    /// The limits of this scope and of those around it.
    pub fn slow_test_limits(&self) -> impl Iterator<Item = &'a SlowTestLimit<'a>> + use<'a> {
        std::iter::successors(self.slow_test_limit, |limit| limit.scope.slow_test_limit)
    }

    pub(super) fn references(&self) -> &'a [RelatedTable] {
        self.references
    }

    pub(super) fn with_action(self, action: Action) -> Self {
        Self { action, ..self }
    }

    pub(super) fn action(&self) -> Action {
        self.action
    }

    pub(super) fn find_related(&self, name: &str) -> Option<&'a RelatedTable> {
        self.related.iter().find(|table| table.name() == name)
    }

    pub fn joined(root: &'a TableAccess, joins: &'a [Join], tables: &'a [TableAccess]) -> Result<Self, Problem> {
        let mut scope = Self::of(root);
        for (join, access) in joins.iter().zip(tables) {
            let name = join.alias.as_ref().unwrap_or(&join.table);
            if scope.source(name).is_some() {
                return Err(Problem::new(
                    ErrorCode::InvalidQueryOption,
                    format!("The option join has two tables that go by the name {}.", shown(name.as_str())),
                )
                .with_hint("Give one of them an alias."));
            }
            scope.joined.push(Joined { access, name });
        }
        Ok(scope)
    }

    pub fn root(&self) -> &'a Arc<Table> {
        self.root.table()
    }

    /// Whether a rule limits which records of the root table the caller may change or read.
    pub fn is_ruled(&self) -> bool {
        [Action::Update, Action::Read].into_iter().any(|action| self.root.condition(action).is_some())
    }

    pub fn size(&self) -> usize {
        1 + self.joined.len()
    }

    pub fn is_single(&self) -> bool {
        self.joined.is_empty() && self.root_name.is_none()
    }

    pub fn root_name(&self) -> Option<&'a TableName> {
        self.root_name
    }

    pub fn table(&self, source: usize) -> &'a Arc<Table> {
        match source.checked_sub(1).and_then(|at| self.joined.get(at)) {
            Some(joined) => joined.access.table(),
            None => self.root.table(),
        }
    }

    pub(super) fn access(&self, source: usize) -> &'a TableAccess {
        match source.checked_sub(1).and_then(|at| self.joined.get(at)) {
            Some(joined) => joined.access,
            None => self.root,
        }
    }

    pub fn name(&self, source: usize) -> &'a TableName {
        match source.checked_sub(1).and_then(|at| self.joined.get(at)) {
            Some(joined) => joined.name,
            None => self.root_name.unwrap_or_else(|| self.root.table().name()),
        }
    }

    pub fn column(&self, column_ref: ColumnRef) -> &'a Column {
        self.table(column_ref.source).column(column_ref.column)
    }

    /// These tables as a subquery of the statement sees them: each column is written with its table's name.
    pub fn seen_from_subquery(&self) -> Self {
        Self { root_name: Some(self.name(0)), slow_test_limit: None, is_limit_written: false, ..self.clone() }
    }

    /// The tables that the join condition of the table with index `source` may name.
    pub fn up_to(&self, source: usize) -> Self {
        Self { joined: self.joined[..source].to_vec(), ..self.clone() }
    }

    /// A name without a table is looked up in the root table, then in the joined tables, then as `table.field`.
    pub fn resolve(&self, field: &FieldRef, code: ErrorCode) -> Result<ColumnRef, Problem> {
        self.resolve_from(0, field, code)
    }

    /// Resolves as [`Scope::resolve`] does, but looks in the table `home` first.
    pub fn resolve_from(&self, home: usize, field: &FieldRef, code: ErrorCode) -> Result<ColumnRef, Problem> {
        if let Some(table) = field.table() {
            let source = self.source(table).ok_or_else(|| self.no_table(table, code))?;
            return self.column_of(source, field.field());
        }
        if let Some(column) = self.table(home).find(field.field()) {
            return Ok(ColumnRef { source: home, column });
        }
        if let Some(column_ref) = self.elsewhere(home, field.field(), code)? {
            return Ok(column_ref);
        }
        for (table, name) in field.readings() {
            if let Some(source) = self.source(&table) {
                return self.column_of(source, &name);
            }
        }
        self.column_of(home, field.field())
    }

    fn elsewhere(&self, home: usize, name: &FieldName, code: ErrorCode) -> Result<Option<ColumnRef>, Problem> {
        let mut found = (0..self.size()).filter(|source| *source != home).filter_map(|source| {
            let column = self.table(source).find(name)?;
            Some(ColumnRef { source, column })
        });
        match (found.next(), found.next()) {
            (column_ref, None) => Ok(column_ref),
            (Some(one), Some(other)) => Err(Problem::new(
                code,
                format!(
                    "The field {} may be of {} or of {}.",
                    shown(name.as_str()),
                    shown(self.name(one.source).as_str()),
                    shown(self.name(other.source).as_str())
                ),
            )
            .with_hint("Name its table: \"table.field\", or tableName beside it.")),
            (None, Some(_)) => Ok(None),
        }
    }

    fn column_of(&self, source: usize, name: &FieldName) -> Result<ColumnRef, Problem> {
        let column = self.table(source).field(name)?;
        Ok(ColumnRef { source, column })
    }

    fn source(&self, name: &TableName) -> Option<usize> {
        let named = (0..self.size()).find(|source| self.name(*source) == name);
        named.or_else(|| (self.root().name() == name).then_some(0))
    }

    fn no_table(&self, name: &TableName, code: ErrorCode) -> Problem {
        let names: Vec<_> = (0..self.size()).map(|at| self.name(at).as_str()).collect();
        Problem::new(code, format!("The table {} is not part of this request.", shown(name.as_str())))
            .with_hint(format!("Its tables are {}.", names.join(", ")))
    }
}
