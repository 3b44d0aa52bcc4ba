//! Tables that a statement reaches by relations, and conditions on their records.

use super::access::{self, ReadRules, Rights, TableAccess};
use super::filter::predicate;
use super::scope::Scope;
use super::{ColumnRef, Join, Predicate};
use crate::query::catalog::Table;
use crate::query::catalog::relations::{self, Relation, RelationKind, Relations};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, TableName, shown};
use shared::operation::filter::{Condition, Quantifier, Related};
use shared::operation::read::Include;
use shared::operation::read::join::JoinKind;
use shared::operation::{RecordOperation, TablePath};
use shared::policy::Action;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct RelatedTable {
    name: Box<str>,
    relation: Arc<Relation>,
    access: TableAccess,
    link: Option<TableAccess>,
    related: Vec<RelatedTable>,
}

impl RelatedTable {
    /// `related` are the tables of the relations that are nested in this one.
    pub fn new(
        name: &str,
        relation: Arc<Relation>,
        access: TableAccess,
        link: Option<TableAccess>,
        related: Vec<Self>,
    ) -> Self {
        Self { name: name.into(), relation, access, link, related }
    }

    /// `None` if the caller may not read the referenced table.
    pub fn referenced(relation: Arc<Relation>, access: TableAccess) -> Option<Self> {
        let name = relation.spelling.clone();
        access.may(Action::Read).then(|| Self::new(&name, relation, access, None, Vec::new()))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    pub fn related(&self) -> &[Self] {
        &self.related
    }

    /// Whether the caller, or a condition on records related to these, reads the table or the link table by a rule.
    pub(super) fn has_rule(&self) -> bool {
        self.accesses().iter().any(|access| access.condition(Action::Read).is_some())
    }

    pub fn accesses(&self) -> Vec<&TableAccess> {
        let own = [&self.access].into_iter().chain(&self.link);
        own.chain(self.related.iter().flat_map(Self::accesses)).collect()
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope::related(&self.access, self.link.as_ref(), &self.related, None)
    }

    /// The scope of a subquery, whose tables go by `names`.
    pub fn named_scope<'a>(&'a self, names: &'a RelatedNames) -> Scope<'a> {
        Scope::related(&self.access, self.link.as_ref(), &self.related, Some(names))
    }

    /// The columns that must equal the parent's, of the link table if there is one. `scope` is [`RelatedTable::scope`].
    pub(super) fn matches(&self, scope: &Scope<'_>) -> Result<Vec<ColumnRef>, Problem> {
        self.relation.matches.iter().map(|name| column(scope, scope.size() - 1, name)).collect()
    }

    pub(super) fn own_columns(&self, scope: &Scope<'_>) -> Result<Vec<ColumnRef>, Problem> {
        self.relation.columns.iter().map(|name| column(scope, 0, name)).collect()
    }

    /// Returns the join with the link table, if there is one, and the rules of both tables.
    pub(super) fn link(&self, scope: &Scope<'_>) -> Result<(Vec<Join>, ReadRules), Problem> {
        let mut joins = Vec::new();
        if let Some(link) = &self.relation.link {
            let pairs = link.columns.iter().zip(&link.matches);
            let same =
                pairs.map(|(own, target)| Ok(Predicate::Same(column(scope, 1, own)?, column(scope, 0, target)?)));
            joins.push(Join { kind: JoinKind::Inner, on: Predicate::All(same.collect::<Result<_, Problem>>()?) });
        }
        let rules = ReadRules::add_to_joins(&mut joins, scope)?;
        Ok((joins, rules))
    }
}

/// A relation of one table that includes or conditions name.
pub struct RelationUse<'a> {
    pub name: &'a str,
    pub relation: Arc<Relation>,
    /// The includes that are nested in the includes of this relation.
    pub includes: Vec<Include>,
    /// The conditions that are nested in the conditions on this relation.
    pub conditions: Vec<&'a Related>,
}

/// Returns the relations that includes and conditions name, each once.
pub fn relation_uses<'a>(
    relations: &Relations,
    table: &TableAccess,
    includes: &'a [Include],
    conditions: &[&'a Related],
    reads: &dyn Fn(&TableName, &FieldName) -> bool,
) -> Result<Vec<RelationUse<'a>>, Problem> {
    if includes.is_empty() && conditions.is_empty() {
        return Ok(Vec::new());
    }
    let relations = visible(relations, table, reads);
    let mut uses: Vec<RelationUse<'a>> = Vec::new();
    let named = includes.iter().map(|include| (&include.relation, ErrorCode::InvalidQueryOption));
    let tested = conditions.iter().map(|condition| (&condition.relation, ErrorCode::UnknownField));
    for (name, code) in named.chain(tested) {
        if uses.iter().any(|known| *known.name == **name) {
            continue;
        }
        let relation = relations::find(&relations, table.table().name(), name, code)?.clone();
        let includes: Vec<_> = includes.iter().filter(|include| include.relation == *name).collect();
        let tested = conditions.iter().filter(|condition| condition.relation == *name);
        let filters = includes.iter().filter_map(|include| include.filter.as_ref());
        let inner = filters.chain(tested.filter_map(|condition| condition.condition.as_deref()));
        let conditions = inner.flat_map(Condition::related).collect();
        let includes = includes.iter().flat_map(|include| include.includes.iter().cloned()).collect();
        uses.push(RelationUse { name, relation, includes, conditions });
    }
    Ok(uses)
}

pub fn visible(
    relations: &Relations,
    table: &TableAccess,
    reads: &dyn Fn(&TableName, &FieldName) -> bool,
) -> Vec<Arc<Relation>> {
    let all = |table: &TableName, columns: &[FieldName]| columns.iter().all(|column| reads(table, column));
    let own = table.table();
    relations.of(own.name(), |relation| {
        relation.columns.iter().all(|column| own.find(column).is_some())
            && match &relation.link {
                None => all(&relation.table, &relation.matches),
                Some(link) => {
                    all(&link.table, &link.columns)
                        && all(&link.table, &relation.matches)
                        && all(&relation.table, &link.matches)
                }
            }
    })
}

/// The caller may use the relation ([`visible`]), or the relation is that of a rule, so that the column may be hidden.
fn column(scope: &Scope<'_>, source: usize, name: &FieldName) -> Result<ColumnRef, Problem> {
    let table = scope.table(source);
    Ok(ColumnRef { source, column: table.find_hidden(name).map_or_else(|| table.field(name), Ok)? })
}

#[derive(Clone, Debug)]
pub struct Exists {
    pub(in crate::query) table: RelatedTable,
    pub(in crate::query) joins: Vec<Join>,
    /// Pairs of an outer column and one of the subquery, which must be equal.
    pub(in crate::query) on: Vec<(ColumnRef, ColumnRef)>,
    pub(in crate::query) filter: Option<Predicate>,
}

impl Exists {
    /// Whether the subquery, or one in it, reads such a field of the table.
    pub(super) fn reads(&self, table: &Table, is_meant: &dyn Fn(&FieldName) -> bool) -> bool {
        let scope = self.table.scope();
        let conditions = || self.filter.iter().chain(self.joins.iter().map(|join| &join.on));
        let tested = conditions().flat_map(access::column_refs);
        let is_read = |at: ColumnRef| {
            let of = scope.table(at.source);
            (of.database(), of.name()) == (table.database(), table.name()) && is_meant(&scope.column(at).name)
        };
        self.on.iter().map(|(_, own)| *own).chain(tested).any(is_read)
            || conditions().flat_map(Predicate::subqueries).any(|inner| inner.reads(table, is_meant))
    }
}

/// Compares two subqueries of the same outer table, in which a name stands for one relation.
impl PartialEq for Exists {
    fn eq(&self, other: &Self) -> bool {
        self.table.name == other.table.name && self.on == other.on && self.filter == other.filter
    }
}

/// Resolves a condition on related records. Fails where it is not allowed, as in the rules of roles.
pub(super) fn exists(related: &Related, scope: &Scope<'_>) -> Result<Predicate, Problem> {
    let Some(table) = scope.find_related(&related.relation) else {
        let name = shown(&related.relation);
        return Err(Problem::new(
            ErrorCode::InvalidFilter,
            format!("The condition on the related records {name} can't be used here."),
        )
        .with_hint("Use it in the query of a request."));
    };
    let inner = table.scope();
    let on = table.own_columns(scope)?.into_iter().zip(table.matches(&inner)?).collect();
    let (joins, rules) = table.link(&inner)?;
    let condition = related.condition.as_ref().map(|condition| predicate(condition, &inner)).transpose()?;
    let condition = match (related.quantifier, condition) {
        (Quantifier::Every, None) => return Ok(Predicate::All(Vec::new())),
        (Quantifier::Every, Some(condition)) => Some(Predicate::Untrue(Box::new(condition))),
        (Quantifier::Some | Quantifier::None, condition) => condition,
    };
    let filter = rules.restrict(condition)?;
    let exists = Predicate::Exists(Box::new(Exists { table: table.clone(), joins, on, filter }));
    Ok(match related.quantifier {
        Quantifier::Some => exists,
        Quantifier::None | Quantifier::Every => Predicate::Not(Box::new(exists)),
    })
}

/// Returns the relations of written foreign keys that must point to records that the caller may read: of tables whose
/// records the caller may read in part.
pub fn checked_references(relations: &Relations, operation: &RecordOperation, rights: &Rights) -> Vec<Arc<Relation>> {
    let TablePath { database, table } = operation.table();
    relations.of(table, |relation| {
        let target = TablePath { database: database.clone(), table: relation.table.clone() };
        let is_written = || relation.columns.iter().any(|field| rights.checks_reference(operation, field));
        relation.kind == RelationKind::One && is_written() && rights.hides_rows(&target)
    })
}

/// A foreign key that the caller writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub(in crate::query) field: Box<str>,
    /// True if the foreign key is NULL, or points to a record that the caller may read.
    pub(in crate::query) is_readable: Predicate,
}

/// Returns the written foreign keys that must point to readable records.
pub(super) fn references(scope: &Scope<'_>, written: &[usize]) -> Result<Vec<Reference>, Problem> {
    let mut all = Vec::new();
    for table in scope.references() {
        let (own, inner) = (table.own_columns(scope)?, table.scope());
        let Some(at) = own.iter().find(|at| written.contains(&at.column)) else {
            continue;
        };
        let field = scope.column(*at).name.as_str().into();
        let (joins, rules) = table.link(&inner)?;
        let on = own.iter().copied().zip(table.matches(&inner)?).collect();
        let exists =
            Predicate::Exists(Box::new(Exists { table: table.clone(), joins, on, filter: rules.restrict(None)? }));
        let is_null = own.into_iter().map(Predicate::IsNull);
        all.push(Reference { field, is_readable: Predicate::Any(is_null.chain([exists]).collect()) });
    }
    Ok(all)
}

/// The names of the tables of a subquery in its SQL text.
pub struct RelatedNames {
    pub(super) table: TableName,
    pub(super) link: TableName,
}

impl RelatedNames {
    /// Returns names that no table has of which columns are named in the subquery: those of the outer statement, and of
    /// the limits of slow tests. A rule of a role is resolved once for all statements, so that only the rendered statement
    /// tells what is free.
    pub fn free(outer: &Scope<'_>) -> Self {
        let scopes = || outer.slow_test_limits().map(|limit| limit.scope).chain([outer]);
        let taken = || scopes().flat_map(|scope| (0..scope.size()).map(|source| scope.name(source).as_str()));
        let is_free = |name: &TableName| taken().all(|taken| !taken.eq_ignore_ascii_case(name.as_str()));
        let numbered = |number| ["related", "link"].map(|word| TableName::numbered(word, number));
        let mut names = (1..=taken().count() + 1).map(numbered);
        let [table, link] = names.find(|names| names.iter().all(is_free)).unwrap_or_else(|| numbered(0));
        Self { table, link }
    }
}
