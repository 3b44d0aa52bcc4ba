//! Adds the conditions of roles to the filters and joins of statements, and finds the columns that conditions read.

use crate::query::catalog::relations::RelationKind;
use crate::query::catalog::{Kind, Table};
use crate::query::plan::related::Exists;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Expression, Join, Predicate, Search};
use shared::error::Problem;
use shared::ident::FieldName;
use shared::operation::read::join::JoinKind;
use shared::policy::Action;

pub(in crate::query) fn and(condition: Option<Predicate>, rule: Option<Predicate>) -> Option<Predicate> {
    match (condition, rule) {
        // The rule comes first, so that a condition that no index serves is not tried on records that the rule denies.
        (Some(Predicate::All(mut parts)), Some(rule)) if !parts.is_empty() => {
            parts.insert(0, rule);
            Some(Predicate::All(parts))
        }
        (Some(condition), Some(rule)) => Some(Predicate::All(vec![rule, condition])),
        (one, other) => one.or(other),
    }
}

/// Adds a rule to a caller's condition. The rule also guards what is slow in the condition, whichever table it reads: its
/// time would reveal what faster parts of the condition found in a hidden record.
pub(in crate::query::plan) fn restricted(condition: Option<Predicate>, rule: Option<Predicate>) -> Option<Predicate> {
    let condition = match (condition, &rule) {
        (Some(condition), Some(rule)) => Some(guarded_by(rule, condition)),
        (condition, _) => condition,
    };
    and(condition, rule)
}

pub(in crate::query::plan) fn guarded_by(rule: &Predicate, condition: Predicate) -> Predicate {
    let all = |parts: Vec<Predicate>| parts.into_iter().map(|part| guarded_by(rule, part)).collect();
    match condition {
        Predicate::All(parts) => Predicate::All(all(parts)),
        Predicate::Any(parts) => Predicate::Any(all(parts)),
        Predicate::Not(part) => Predicate::Not(Box::new(guarded_by(rule, *part))),
        Predicate::Guarded(guard, part) if *guard == *rule => Predicate::Guarded(guard, part),
        slow if slow.is_slow() => Predicate::Guarded(Box::new(rule.clone()), Box::new(slow)),
        fast => fast,
    }
}

/// Returns the rules of tables whose records all rows of the statement have, apart from the rule that [`restrict`] returns.
pub(in crate::query::plan) fn rules_of_inner_joins(joins: &[Join], scope: &Scope<'_>) -> Vec<Predicate> {
    let mut rules = Vec::new();
    for (at, join) in joins.iter().enumerate() {
        match join.kind {
            JoinKind::Inner => rules.extend(read_rule(at + 1, scope)),
            JoinKind::Left => {}
            JoinKind::Right => rules.clear(),
        }
    }
    rules
}

/// Adds the rules of the tables to the ON of joins, so that an outer join keeps the other table's record. Returns the
/// rule that must go into WHERE: that of the root table, or of the last table that is joined by RIGHT JOIN, which keeps
/// all rows of its own table.
pub(in crate::query::plan) fn restrict(joins: &mut [Join], scope: &Scope<'_>) -> Result<Option<Predicate>, Problem> {
    let mut kept = rule_of(0, scope)?;
    for (at, join) in joins.iter_mut().enumerate() {
        let own = rule_of(at + 1, scope)?;
        let rule = match join.kind {
            JoinKind::Inner | JoinKind::Left => own,
            JoinKind::Right => std::mem::replace(&mut kept, own),
        };
        let on = std::mem::replace(&mut join.on, Predicate::All(Vec::new()));
        if let Some(on) = restricted(Some(on), rule) {
            join.on = on;
        }
    }
    Ok(kept)
}

pub(in crate::query::plan) fn read_rule(source: usize, scope: &Scope<'_>) -> Option<Predicate> {
    rule_for(Action::Read, source, scope)
}

pub(in crate::query::plan) fn own_rule(source: usize, scope: &Scope<'_>) -> Option<Predicate> {
    rule_for(scope.action(), source, scope)
}

fn rule_for(action: Action, source: usize, scope: &Scope<'_>) -> Option<Predicate> {
    let at_source = |column_ref: ColumnRef| ColumnRef { source, ..column_ref };
    scope.access(source).condition(action).map(|rule| moved(rule.clone(), &at_source))
}

fn rule_of(source: usize, scope: &Scope<'_>) -> Result<Option<Predicate>, Problem> {
    scope.access(source).reading()?;
    Ok(read_rule(source, scope))
}

/// Replaces references to columns of the outer statement. Sort expressions other than columns are not changed.
pub(super) fn moved(predicate: Predicate, to: &impl Fn(ColumnRef) -> ColumnRef) -> Predicate {
    let all = |parts: Vec<Predicate>| parts.into_iter().map(|part| moved(part, to)).collect();
    match predicate {
        Predicate::Compare(at, comparison, operand) => Predicate::Compare(to(at), comparison, operand),
        Predicate::Same(one, other) => Predicate::Same(to(one), to(other)),
        Predicate::In(at, operands) => Predicate::In(to(at), operands),
        Predicate::Between(at, low, high) => Predicate::Between(to(at), low, high),
        Predicate::IsNull(at) => Predicate::IsNull(to(at)),
        Predicate::Like(at, pattern, operand) => Predicate::Like(to(at), pattern, operand),
        Predicate::Regexp(at, operand) => Predicate::Regexp(to(at), operand),
        Predicate::Match(search) => {
            let columns = search.columns.into_iter().map(to).collect();
            Predicate::Match(Search { columns, ..search })
        }
        Predicate::Ordered(by, comparison, operand) => Predicate::Ordered(moved_step(by, to), comparison, operand),
        Predicate::OrderedNull(by) => Predicate::OrderedNull(moved_step(by, to)),
        Predicate::All(parts) => Predicate::All(all(parts)),
        Predicate::Any(parts) => Predicate::Any(all(parts)),
        Predicate::Not(part) => Predicate::Not(Box::new(moved(*part, to))),
        Predicate::Guarded(guard, part) => Predicate::Guarded(Box::new(moved(*guard, to)), Box::new(moved(*part, to))),
        Predicate::Untrue(part) => Predicate::Untrue(Box::new(moved(*part, to))),
        Predicate::Exists(exists) => {
            let on = exists.on.into_iter().map(|(outer, own)| (to(outer), own)).collect();
            Predicate::Exists(Box::new(Exists { on, ..*exists }))
        }
    }
}

fn moved_step(by: Expression, to: &impl Fn(ColumnRef) -> ColumnRef) -> Expression {
    match by {
        Expression::Column(at) => Expression::Column(to(at)),
        other => other,
    }
}

/// Whether the condition reads a changed column, or one that may change by itself: generated, or a date and time.
pub(in crate::query::plan) fn depends_on(predicate: &Predicate, changed: &[usize], table: &Table) -> bool {
    columns(predicate).into_iter().any(|at| {
        let column = table.column(at);
        changed.contains(&at) || column.generated || column.kind == Kind::DateTime
    })
}

/// Whether the change of these columns may also change related records that the condition reads: other records of the
/// same table, or records that refer to a changed key, by ON UPDATE CASCADE.
pub(in crate::query::plan) fn changes_related(predicate: &Predicate, changed: &[usize], table: &Table) -> bool {
    let changes = |at: usize| {
        let column = table.column(at);
        changed.contains(&at) || column.generated || column.on_update
    };
    let changes_name = |name: &FieldName| table.find_hidden(name).is_some_and(changes);
    predicate.subqueries().into_iter().any(|subquery| {
        let is_many = subquery.table.relation().kind == RelationKind::Many;
        let changes_key = is_many && subquery.on.iter().any(|(outer, _)| changed.contains(&outer.column));
        changes_key || subquery.reads(table, &changes_name)
    })
}

pub(in crate::query::plan) fn columns(predicate: &Predicate) -> Vec<usize> {
    column_refs(predicate).into_iter().map(|column_ref| column_ref.column).collect()
}

/// The columns of the outer statement that the condition reads.
pub(in crate::query::plan) fn column_refs(predicate: &Predicate) -> Vec<ColumnRef> {
    let found = std::cell::RefCell::new(Vec::new());
    moved(predicate.clone(), &|column_ref| {
        found.borrow_mut().push(column_ref);
        column_ref
    });
    found.into_inner()
}
