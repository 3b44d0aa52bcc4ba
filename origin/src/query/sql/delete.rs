//! Renders DELETE statements.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::query::plan::Delete;
use crate::query::plan::scope::Scope;

#[must_use]
pub fn delete(delete: Delete, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("DELETE FROM ").table(scope.root());
    filter(&mut sql, scope, delete.into_filter());
    sql.finish()
}
