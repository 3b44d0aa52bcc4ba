//! Adds the conditions of roles to the filters and joins of statements, and finds the columns that conditions read.

use crate::query::catalog::{Charset, Kind, Table};
use crate::query::plan::join::may_be_absent;
use crate::query::plan::related::Exists;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Expression, Join, Predicate, Search};
use shared::error::{ErrorCode, Problem};
use shared::ident::FieldName;
use shared::limits::SQL_PARAMS_MAX_COUNT;
use shared::operation::read::join::JoinKind;
use shared::policy::{Action, role_forbids};
use std::sync::Arc;

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

/// Adds a rule to a caller's condition. The slow tests of the condition run only on records that meet the rule, whichever
/// table they read: their time would tell what faster parts of the condition found in a hidden record.
pub(in crate::query::plan) fn restricted(
    condition: Option<Predicate>,
    rule: Option<Predicate>,
) -> Result<Option<Predicate>, Problem> {
    let condition = match (condition, &rule) {
        (Some(slow), Some(rule)) if slow.has_slow_test() => Some(limit_slow_tests(&Arc::new(rule.clone()), slow)),
        (condition, _) => condition,
    };
    let restricted = and(condition, rule);
    match restricted.as_ref().map_or(0, Predicate::values) {
        0..=SQL_PARAMS_MAX_COUNT => Ok(restricted),
        values => Err(Problem::new(
            ErrorCode::InvalidFilter,
            format!("The conditions have {values} values; MariaDB takes {SQL_PARAMS_MAX_COUNT} in one statement."),
        )
        .with_hint(
            "Ask in several requests. With a pattern among the conditions, each value of the role's rule counts twice.",
        )),
    }
}

fn limit_slow_tests(rule: &Arc<Predicate>, condition: Predicate) -> Predicate {
    let limited = |slow: Predicate| Predicate::SlowOnlyWhere(Arc::clone(rule), Box::new(slow));
    match condition {
        Predicate::All(parts) => {
            let (mut slow, mut all): (Vec<_>, Vec<_>) = parts.into_iter().partition(Predicate::has_slow_test);
            match (slow.len(), slow.pop()) {
                (1, Some(only)) => all.push(limited(only)),
                (_, last) => {
                    slow.extend(last);
                    all.extend((!slow.is_empty()).then(|| limited(Predicate::All(slow))));
                }
            }
            Predicate::All(all)
        }
        slow if slow.has_slow_test() => limited(slow),
        fast => fast,
    }
}

/// The rules that a statement's WHERE needs, after the rules of joined tables were added to ON.
pub(in crate::query::plan) struct ReadRules {
    condition: Option<Predicate>,
    /// The rules in ON. In WHERE they only limit on which records slow tests run.
    slow_test_limits: Vec<Arc<Predicate>>,
    /// The tables that have rules.
    tables_with_rules: Vec<usize>,
}

impl ReadRules {
    /// Adds the rules to the ON of joins, so that an outer join keeps the other table's record. Fails if ON has slow tests
    /// beside rules: MariaDB may run them before it tests a rule, and only for some hidden records. The rule of the root
    /// table, or of the last table that is joined by RIGHT JOIN, which keeps all rows of its own table, is for WHERE.
    pub(in crate::query::plan) fn add_to_joins(joins: &mut [Join], scope: &Scope<'_>) -> Result<Self, Problem> {
        let mut kept = 0;
        let tables_with_rules: Vec<usize> =
            (0..=joins.len()).filter(|at| scope.access(*at).condition(Action::Read).is_some()).collect();
        if !tables_with_rules.is_empty() && joins.iter().any(|join| join.on.has(&|part| is_slow_match(part, scope))) {
            return Err(role_forbids(
                "join by a comparison that converts texts, in a request that reads a table of which it reads some records only",
            )
            .with_hint("Join by fields of one type and character set, or put the comparison into query."));
        }
        scope.access(0).reading()?;
        for at in 1..=joins.len() {
            scope.access(at).reading()?;
            let join = &mut joins[at - 1];
            let of = match join.kind {
                JoinKind::Inner | JoinKind::Left => at,
                JoinKind::Right => std::mem::replace(&mut kept, at),
            };
            let on = std::mem::replace(&mut join.on, Predicate::All(Vec::new()));
            if let Some(on) = and(Some(on), read_rule(of, scope)) {
                join.on = on;
            }
        }
        let others = (0..=joins.len()).filter(|at| *at != kept);
        let limits = others.filter_map(|at| {
            let rule = read_rule(at, scope)?;
            Some(Arc::new(match may_be_absent(at, joins) {
                true => Predicate::Any(vec![rule, is_absent(at, scope)]),
                false => rule,
            }))
        });
        Ok(Self { slow_test_limits: limits.collect(), condition: read_rule(kept, scope), tables_with_rules })
    }

    pub(in crate::query::plan) fn restrict(self, condition: Option<Predicate>) -> Result<Option<Predicate>, Problem> {
        if let Some(condition) = &condition {
            refuse_search_beside_rules(condition, &self.tables_with_rules)?;
        }
        let limits = self.slow_test_limits.iter();
        let condition = condition.map(|condition| limits.fold(condition, |all, rule| limit_slow_tests(rule, all)));
        restricted(condition, self.condition)
    }
}

/// Fails if the condition has a full-text search while the statement also reads another table with a rule. MariaDB begins
/// a search while it optimises, and only if comparisons on that table's records hold: the search's time and errors would
/// reveal hidden records.
fn refuse_search_beside_rules(condition: &Predicate, tables_with_rules: &[usize]) -> Result<(), Problem> {
    let subqueries = condition.subqueries();
    let searched_here = condition.searched();
    let is_searched = |inner: &Exists| inner.filter.as_ref().is_some_and(|filter| filter.has(&Predicate::is_search));
    let searches_below = subqueries.iter().any(|inner| is_searched(inner));
    let rules_below = subqueries.iter().any(|inner| inner.table.has_rule());
    let is_beside = |searched: &usize| rules_below || tables_with_rules.iter().any(|at| at != searched);
    match searched_here.iter().any(is_beside)
        || searches_below && (!tables_with_rules.is_empty() || rules_below && subqueries.len() > 1)
    {
        true => Err(role_forbids("search in a request that also reads a table of which it reads some records only")
            .with_hint("Search in a request of its own.")),
        false => Ok(()),
    }
}

/// Whether a comparison of ON may take long: see [`Predicate::is_slow_test`]. MariaDB converts one of two fields that differ
/// in character set.
fn is_slow_match(part: &Predicate, scope: &Scope<'_>) -> bool {
    let charset = |at: &ColumnRef| match &scope.column(*at).charset {
        Charset::Unicode => None,
        Charset::Limited(coverage) => Some(coverage.charset()),
    };
    match part {
        Predicate::Same(one, other) => charset(one) != charset(other),
        test => test.is_slow_test(),
    }
}

/// The condition that an outer join found no record of the table.
fn is_absent(source: usize, scope: &Scope<'_>) -> Predicate {
    let table = scope.table(source);
    let is_null = |column| Predicate::IsNull(ColumnRef { source, column });
    match table.all_columns().find(|at| !table.column(*at).nullable) {
        Some(column) => is_null(column),
        None => Predicate::All(table.all_columns().map(is_null).collect()),
    }
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
        Predicate::SlowOnlyWhere(limit, part) => {
            Predicate::SlowOnlyWhere(Arc::new(moved(limit.as_ref().clone(), to)), Box::new(moved(*part, to)))
        }
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

/// Whether the change of these columns may also change what the condition reads of other records: of the same table, or
/// of any table that foreign keys with ON UPDATE CASCADE lead to, also over several tables, from an indexed column.
pub(in crate::query::plan) fn changes_related(predicate: &Predicate, changed: &[usize], table: &Table) -> bool {
    let changes = |at: usize| {
        let column = table.column(at);
        changed.contains(&at) || column.generated || column.on_update
    };
    let changes_name = |name: &FieldName| table.find_hidden(name).is_some_and(changes);
    let subqueries = predicate.subqueries();
    let may_cascade = || table.all_columns().any(|at| table.column(at).indexed && changes(at));
    !subqueries.is_empty() && (may_cascade() || subqueries.iter().any(|subquery| subquery.reads(table, &changes_name)))
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
