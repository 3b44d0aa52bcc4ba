//! DELETE.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::catalog::Table;
use crate::plan::Delete;

pub(super) fn render(delete: Delete, table: &Table) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("DELETE FROM ").table(table);
    filter(&mut sql, table, delete.filter);
    sql.finish()
}
