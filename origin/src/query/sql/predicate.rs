//! Renders the conditions of WHERE and ON.

use super::builder::Builder;
use super::{expression, select};
use crate::query::catalog::{CaseSensitivity, Kind};
use crate::query::plan::related::{Exists, RelatedNames};
use crate::query::plan::scope::{Scope, SlowTestLimit};
use crate::query::plan::{ColumnRef, LikePattern, Operand, Predicate, SqlConversion};
use shared::operation::filter::Comparison;

pub(super) fn filter(sql: &mut Builder, scope: &Scope<'_>, predicate: Predicate) {
    sql.syntax(" WHERE ");
    write(sql, scope, predicate);
}

pub(super) fn write(sql: &mut Builder, scope: &Scope<'_>, predicate: Predicate) {
    if !scope.must_limit_slow_tests() || !predicate.has_slow_test_outside_subqueries() {
        return write_unlimited(sql, scope, predicate);
    }
    match predicate {
        Predicate::SlowOnlyWhere(..) => write_unlimited(sql, scope, predicate),
        Predicate::All(parts) if !parts.iter().all(Predicate::has_slow_test_outside_subqueries) => {
            group(sql, " AND ", group_slow_tests(scope, parts), |sql, part| write(sql, scope, part));
        }
        slow => {
            // MariaDB replaces columns by the constants that they are compared with elsewhere in the statement, also in an
            // IF, and may then run a test before it has tested any other condition. It leaves subqueries as they are.
            sql.syntax("IF(EXISTS (SELECT 1 FROM DUAL WHERE ").joined(
                " AND ",
                scope.slow_test_limits(),
                |sql, limit| {
                    write(sql, &limit.scope.seen_from_subquery(), limit.condition.clone());
                },
            );
            // NULL, as for the missing record of a LEFT JOIN: FALSE would become TRUE in a NOT.
            sql.syntax("), ");
            write_unlimited(sql, &scope.within_slow_test_limits(), slow);
            sql.syntax(", NULL)");
        }
    }
}

/// If slow tests are limited, puts all parts that have some into one part, so that the limits are written and evaluated
/// once.
fn group_slow_tests(scope: &Scope<'_>, parts: Vec<Predicate>) -> Vec<Predicate> {
    if !scope.must_limit_slow_tests() {
        return parts;
    }
    let (slow, mut all): (Vec<_>, Vec<_>) = parts.into_iter().partition(Predicate::has_slow_test_outside_subqueries);
    all.extend((!slow.is_empty()).then_some(Predicate::All(slow)));
    all
}

fn write_unlimited(sql: &mut Builder, scope: &Scope<'_>, predicate: Predicate) {
    match predicate {
        Predicate::Compare(at, comparison, operand) => compare(sql, scope, at, comparison, operand),
        Predicate::In(_, operands) if operands.is_empty() => {
            sql.syntax("FALSE");
        }
        Predicate::In(at, operands) if scope.column(at).kind == Kind::Geometry => {
            group(sql, " OR ", operands, |sql, operand| {
                compare(sql, scope, at, Comparison::Equal, operand);
            });
        }
        Predicate::In(at, operands) => {
            subject(sql, scope, at, &operands).syntax(" IN (").list(operands, |sql, operand| {
                sql.operand(operand);
            });
            sql.syntax(")");
        }
        Predicate::Between(at, low, high) => {
            let bounds = [low, high];
            subject(sql, scope, at, &bounds);
            let [low, high] = bounds;
            sql.syntax(" BETWEEN ").operand(low).syntax(" AND ").operand(high);
        }
        Predicate::IsNull(at) => {
            sql.column_ref(scope, at).syntax(" IS NULL");
        }
        Predicate::Like(at, pattern, operand) => {
            text(sql, scope, at, &operand).syntax(" LIKE ").operand(operand);
            if pattern == LikePattern::Literal {
                sql.syntax(" ESCAPE '|'");
            }
        }
        Predicate::Regexp(at, operand) => {
            text(sql, scope, at, &operand).syntax(" REGEXP ").operand(operand);
        }
        Predicate::Match(search) => expression::search(sql, scope, search),
        Predicate::Same(one, other) => {
            sql.column_ref(scope, one).syntax(" = ").column_ref(scope, other);
        }
        Predicate::Ordered(ordered, comparison, operand) => {
            expression::write(sql, scope, ordered);
            sql.syntax(operator(comparison)).operand(operand);
        }
        Predicate::OrderedNull(ordered) => {
            expression::write(sql, scope, ordered);
            sql.syntax(" IS NULL");
        }
        Predicate::All(parts) if parts.is_empty() => {
            sql.syntax("TRUE");
        }
        Predicate::Any(parts) if parts.is_empty() => {
            sql.syntax("FALSE");
        }
        Predicate::All(parts) => group(sql, " AND ", parts, |sql, part| write(sql, scope, part)),
        Predicate::Any(parts) => group(sql, " OR ", parts, |sql, part| write(sql, scope, part)),
        Predicate::Not(inner) => {
            sql.syntax("NOT (");
            write(sql, scope, *inner);
            sql.syntax(")");
        }
        Predicate::SlowOnlyWhere(limit, inner) => {
            write(sql, &scope.with_slow_test_limit(&SlowTestLimit { scope, condition: &limit }), *inner);
        }
        Predicate::Untrue(inner) => {
            sql.syntax("(");
            write(sql, scope, *inner);
            sql.syntax(") IS NOT TRUE");
        }
        Predicate::Exists(subquery) => exists(sql, scope, *subquery),
    }
}

fn exists(sql: &mut Builder, scope: &Scope<'_>, exists: Exists) {
    let names = RelatedNames::free(scope);
    let inner = exists.table.named_scope(&names).within(scope);
    sql.syntax("EXISTS (SELECT 1");
    select::from(sql, exists.joins, None, &inner);
    sql.syntax(" WHERE ").joined(" AND ", exists.on, |sql, (outer, own)| {
        sql.qualified(&inner, own).syntax(" = ").qualified(scope, outer);
    });
    if let Some(filter) = exists.filter {
        sql.syntax(" AND ");
        of_subquery(sql, &inner, filter);
    }
    sql.syntax(")");
}

/// Writes a condition in the WHERE of a subquery, where NULL means FALSE. MariaDB joins the tables of a nested IN with the
/// outer ones, and so begins at the best index; it would try a nested EXISTS for each record.
fn of_subquery(sql: &mut Builder, scope: &Scope<'_>, predicate: Predicate) {
    match predicate {
        Predicate::All(parts) if !parts.iter().all(Predicate::has_slow_test_outside_subqueries) => {
            group(sql, " AND ", group_slow_tests(scope, parts), |sql, part| of_subquery(sql, scope, part));
        }
        Predicate::Exists(subquery) if subquery.on.len() == 1 => {
            let Exists { table, joins, on, filter } = *subquery;
            let names = RelatedNames::free(scope);
            let inner = table.named_scope(&names).within(scope);
            sql.joined(" AND ", on, |sql, (outer, own)| {
                sql.qualified(scope, outer).syntax(" IN (SELECT ").qualified(&inner, own);
            });
            select::from(sql, joins, None, &inner);
            if let Some(filter) = filter {
                sql.syntax(" WHERE ");
                of_subquery(sql, &inner, filter);
            }
            sql.syntax(")");
        }
        Predicate::SlowOnlyWhere(limit, inner) => {
            of_subquery(sql, &scope.with_slow_test_limit(&SlowTestLimit { scope, condition: &limit }), *inner);
        }
        other => write(sql, scope, other),
    }
}

fn group<T>(sql: &mut Builder, words: &'static str, parts: Vec<T>, write: impl FnMut(&mut Builder, T)) {
    sql.syntax("(").joined(words, parts, write).syntax(")");
}

fn compare(sql: &mut Builder, scope: &Scope<'_>, at: ColumnRef, comparison: Comparison, operand: Operand) {
    if scope.column(at).kind == Kind::Geometry {
        if comparison == Comparison::NotEqual {
            sql.syntax("NOT ");
        }
        sql.syntax("ST_Equals(").column_ref(scope, at).syntax(", ").operand(operand).syntax(")");
        return;
    }
    subject(sql, scope, at, std::slice::from_ref(&operand)).syntax(operator(comparison)).operand(operand);
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " <> ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::NullSafeEqual => " <=> ",
    }
}

fn subject<'a>(sql: &'a mut Builder, scope: &Scope<'_>, at: ColumnRef, operands: &[Operand]) -> &'a mut Builder {
    if scope.column(at).kind == Kind::Json {
        return sql.syntax("JSON_COMPACT(").column_ref(scope, at).syntax(")");
    }
    match operands.iter().find(|operand| matches!(operand.form, SqlConversion::Unicode(_))) {
        Some(operand) => text(sql, scope, at, operand),
        None => sql.column_ref(scope, at),
    }
}

fn text<'a>(sql: &'a mut Builder, scope: &Scope<'_>, at: ColumnRef, operand: &Operand) -> &'a mut Builder {
    match operand.form {
        SqlConversion::Unicode(case) => {
            sql.syntax("CONVERT(").column_ref(scope, at).syntax(" USING utf8mb4)");
            match case {
                CaseSensitivity::Insensitive => sql,
                CaseSensitivity::Sensitive => sql.syntax(" COLLATE utf8mb4_bin"),
            }
        }
        _ => sql.column_ref(scope, at),
    }
}
