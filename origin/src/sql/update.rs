//! UPDATE.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::catalog::Table;
use crate::plan::Update;

pub(super) fn render(update: Update, table: &Table) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ").table(table).syntax(" SET ").list(
        update.changes,
        |sql, (at, operand)| {
            sql.column(table, at).syntax(" = ").operand(operand);
        },
    );
    filter(&mut sql, table, update.filter);
    sql.finish()
}
