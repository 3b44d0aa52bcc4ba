//! Renders SELECT statements that read, count or explain records.

use super::Statement;
use super::builder::Builder;
use super::expression;
use super::predicate::{self, filter};
use crate::query::plan::access::and;
use crate::query::plan::include::{Batch, Included};
use crate::query::plan::keyset::Keyset;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Expression, Join, Output, Param, Predicate, Select};
use shared::operation::read::join::JoinKind;
use shared::operation::read::{Direction, Rows};

pub fn select(select: Select, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    write(&mut sql, select, scope);
    sql.finish()
}

/// Renders a read whose rows have the values of `key` after their cells.
pub fn select_with_key(select: Select, key: &[usize], scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT ");
    let order = steps(select.order, &select.output);
    cells(&mut sql, select.output, scope);
    for at in key {
        sql.syntax(", ").column(scope.root(), *at);
    }
    from(&mut sql, select.joins, select.filter, scope);
    order_by(&mut sql, order, scope);
    paging(&mut sql, select.limit, 0);
    sql.finish()
}

pub(super) fn cells(sql: &mut Builder, output: Output, scope: &Scope<'_>) {
    match output {
        Output::Whole => sql.all_columns(scope.root()),
        Output::Cells(cells) => sql.list(cells, |sql, cell| expression::write(sql, scope, cell)),
    };
}

pub fn included(included: &Included, batch: Batch, keys: &[&[Param]]) -> Statement {
    let table = included.table();
    let scope = table.scope();
    let mut sql = Builder::new();
    let mut selects = included.selects_for(batch, keys);
    match (selects.len(), selects.pop()) {
        (1, Some(select)) => write(&mut sql, select, &scope),
        (_, last) => {
            selects.extend(last);
            sql.joined(" UNION ALL ", selects, |sql, select| {
                sql.syntax("(");
                write(sql, select, &scope);
                sql.syntax(")");
            });
        }
    }
    sql.finish()
}

/// Reads and locks rows until the transaction ends: their latest version, instead of the transaction's snapshot.
pub fn select_for_update(select: Select, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    write(&mut sql, select, scope);
    sql.syntax(" FOR UPDATE");
    sql.finish()
}

pub fn explain(select: Select, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("EXPLAIN FORMAT=JSON ");
    write(&mut sql, select, scope);
    sql.finish()
}

/// What all pages of a read share, for their cursors: tables, joins, conditions, groups and order, but not the limit or
/// the selected fields (unless DISTINCT rows are sorted by them). Never executed.
pub fn cursor_basis(select: &Select, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT ").syntax(distinct(select.rows));
    from(&mut sql, select.joins.clone(), select.filter.clone(), scope);
    group_by(&mut sql, &select.group, scope);
    let terms = select.keyset().map_or(&[][..], Keyset::terms);
    sql.syntax(" ORDER BY ").list(terms, |sql, term| {
        expression::write(sql, scope, term.expression().clone());
        descending(sql, term.direction());
    });
    sql.finish()
}

fn write(sql: &mut Builder, select: Select, scope: &Scope<'_>) {
    sql.syntax("SELECT ").syntax(distinct(select.rows));
    let limit = select.rows_read();
    let order = steps(select.order, &select.output);
    cells(sql, select.output, scope);
    from(sql, select.joins, and(select.filter, select.after), scope);
    group_by(sql, &select.group, scope);
    if let Some(having) = select.having {
        sql.syntax(" HAVING ");
        predicate::write(sql, scope, having);
    }
    order_by(sql, order, scope);
    paging(sql, limit, select.offset);
}

fn steps(order: Vec<(Expression, Direction)>, output: &Output) -> Vec<(Step, Direction)> {
    order.into_iter().map(|(by, direction)| (step(by, output), direction)).collect()
}

fn order_by(sql: &mut Builder, order: Vec<(Step, Direction)>, scope: &Scope<'_>) {
    if !order.is_empty() {
        sql.syntax(" ORDER BY ").list(order, |sql, (by, direction)| {
            match by {
                Step::Cell(number) => {
                    sql.numbered("", number);
                }
                Step::Own(by) => expression::write(sql, scope, by),
            }
            descending(sql, direction);
        });
    }
}

fn group_by(sql: &mut Builder, group: &[Expression], scope: &Scope<'_>) {
    if !group.is_empty() {
        sql.syntax(" GROUP BY ").list(group, |sql, by| expression::write(sql, scope, by.clone()));
    }
}

fn descending(sql: &mut Builder, direction: Direction) {
    if direction == Direction::Descending {
        sql.syntax(" DESC");
    }
}

enum Step {
    Cell(usize),
    Own(Expression),
}

/// A step of ORDER BY. A selected score is named by its position, since MariaDB would compute it again.
fn step(by: Expression, output: &Output) -> Step {
    let Output::Cells(cells) = output else {
        return Step::Own(by);
    };
    match (&by, cells.iter().position(|cell| *cell == by)) {
        (Expression::Score(_), Some(at)) => Step::Cell(at + 1),
        _ => Step::Own(by),
    }
}

fn distinct(rows: Rows) -> &'static str {
    match rows {
        Rows::All => "",
        Rows::Distinct => "DISTINCT ",
    }
}

pub(super) fn from(sql: &mut Builder, joins: Vec<Join>, condition: Option<Predicate>, scope: &Scope<'_>) {
    sql.syntax(" FROM ").table(scope.root());
    if let Some(name) = scope.root_name() {
        sql.syntax(" AS ").ident(name.as_str());
    }
    for (at, join) in joins.into_iter().enumerate() {
        let source = at + 1;
        sql.syntax(match join.kind {
            JoinKind::Inner => " JOIN ",
            JoinKind::Left => " LEFT JOIN ",
            JoinKind::Right => " RIGHT JOIN ",
        })
        .table(scope.table(source))
        .syntax(" AS ")
        .ident(scope.name(source).as_str())
        .syntax(" ON ");
        predicate::write(sql, scope, join.on);
    }
    if let Some(condition) = condition {
        filter(sql, scope, condition);
    }
}

fn paging(sql: &mut Builder, limit: Option<u64>, offset: u64) {
    // MariaDB has no OFFSET without LIMIT; its manual names this number for "all".
    let limit = limit.or((offset > 0).then_some(u64::MAX));
    if let Some(limit) = limit {
        sql.syntax(" LIMIT ").param(Param::UInt(limit));
    }
    if offset > 0 {
        sql.syntax(" OFFSET ").param(Param::UInt(offset));
    }
}

pub fn count(select: Select, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    let aggregated = match &select.output {
        Output::Whole => false,
        Output::Cells(cells) => cells.iter().any(is_aggregate),
    };
    if select.rows == Rows::All && select.group.is_empty() && !aggregated {
        sql.syntax("SELECT COUNT(*)");
        from(&mut sql, select.joins, select.filter, scope);
        return sql.finish();
    }
    sql.syntax("SELECT COUNT(*) FROM (SELECT ").syntax(distinct(select.rows));
    match select.output {
        Output::Whole => {
            sql.all_columns(scope.root());
        }
        // Columns of several tables may have the same name, so each gets a generated name.
        Output::Cells(cells) => {
            sql.list(cells.into_iter().enumerate(), |sql, (at, cell)| {
                expression::write(sql, scope, cell);
                sql.syntax(" AS ").numbered("c", at);
            });
        }
    }
    from(&mut sql, select.joins, select.filter, scope);
    group_by(&mut sql, &select.group, scope);
    sql.syntax(") AS counted");
    sql.finish()
}

fn is_aggregate(expression: &Expression) -> bool {
    matches!(expression, Expression::Aggregate(..) | Expression::Computed(..) | Expression::CountAll)
}
