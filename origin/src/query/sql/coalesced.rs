//! Renders SELECT by an integer key and INSERT of one record, for one request or several.

use super::Statement;
use super::builder::Builder;
use super::predicate;
use crate::query::plan::{KeyShape, Operand, Param, RowShape};

pub fn select_by_key(shape: &KeyShape, key: i64) -> Statement {
    let mut sql = Builder::new();
    select(&mut sql, shape);
    from(&mut sql, shape);
    sql.syntax(" = ").param(Param::Int(key));
    rule(&mut sql, shape);
    sql.finish()
}

/// Selects several keys. Repeats the last key up to a power of two, so that few distinct texts must be prepared.
pub fn select_by_keys(shape: &KeyShape, keys: &[i64]) -> Statement {
    let mut sql = Builder::new();
    select(&mut sql, shape);
    if (shape.columns()).is_some_and(|columns| shape.key_cell() == columns.len()) {
        sql.syntax(", ").column(shape.table(), shape.key_column());
    }
    from(&mut sql, shape);
    let repeated = keys.last().into_iter().cycle();
    let all = keys.iter().chain(repeated).take(keys.len().next_power_of_two());
    sql.syntax(" IN (")
        .list(all, |sql, key| {
            sql.param(Param::Int(*key));
        })
        .syntax(")");
    rule(&mut sql, shape);
    sql.finish()
}

fn select(sql: &mut Builder, shape: &KeyShape) {
    sql.syntax("SELECT ");
    match shape.columns() {
        None => sql.all_columns(shape.table()),
        Some(columns) => sql.columns(shape.table(), columns),
    };
}

fn rule(sql: &mut Builder, shape: &KeyShape) {
    if let Some(rule) = shape.rule() {
        sql.syntax(" AND ");
        predicate::write(sql, &shape.scope(), rule.clone());
    }
}

fn from(sql: &mut Builder, shape: &KeyShape) {
    sql.syntax(" FROM ").table(shape.table()).syntax(" WHERE ").column(shape.table(), shape.key_column());
}

pub fn insert_one(shape: &RowShape, row: Vec<Param>) -> Statement {
    insert("INSERT INTO ", shape, vec![row], shape.returning())
}

/// Inserts records of several requests. Fails at once if another transaction has locked a row: all requests would wait.
pub fn insert_several(shape: &RowShape, rows: Vec<Vec<Param>>) -> Statement {
    let words = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO ";
    insert(words, shape, rows, shape.table().key())
}

fn insert(words: &'static str, shape: &RowShape, rows: Vec<Vec<Param>>, returning: &[usize]) -> Statement {
    let mut sql = Builder::new();
    sql.syntax(words)
        .table(shape.table())
        .syntax(" (")
        .list(shape.cells(), |sql, (at, _)| {
            sql.column(shape.table(), *at);
        })
        .syntax(") VALUES ")
        .list(rows, |sql, row| {
            sql.syntax("(")
                .list(shape.cells().iter().zip(row), |sql, ((_, form), param)| {
                    sql.operand(Operand { param, form: *form });
                })
                .syntax(")");
        });
    if !returning.is_empty() {
        sql.syntax(" RETURNING ").returned_key(shape.table(), returning);
    }
    sql.finish()
}
