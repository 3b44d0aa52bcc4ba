//! Renders INSERT for one record, or for the records of several requests.

use super::Statement;
use super::builder::Builder;
use crate::query::plan::{Operand, Param, RowShape};

pub fn insert_one(shape: &RowShape, row: Vec<Param>) -> Statement {
    insert("INSERT INTO ", shape, vec![row], shape.returning())
}

/// Fails instead of waiting for a row that another transaction has locked, since all of the requests would wait.
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
