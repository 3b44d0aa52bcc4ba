//! Renders SELECT by an integer key, for one request or several.

use super::Statement;
use super::builder::Builder;
use super::predicate;
use crate::query::plan::{KeyShape, Param};

pub fn select_by_key(shape: &KeyShape, key: i64) -> Statement {
    let mut sql = Builder::new();
    select(&mut sql, shape);
    from(&mut sql, shape);
    sql.syntax(" = ").param(Param::Int(key));
    rule(&mut sql, shape);
    sql.finish()
}

/// Repeats the last key up to a power of two, so that few distinct texts must be prepared.
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
