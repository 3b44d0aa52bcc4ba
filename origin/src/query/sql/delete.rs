//! Renders DELETE statements.

use super::builder::Builder;
use super::predicate::filter;
use super::update::at_most;
use super::{Statement, returning};
use crate::query::plan::Delete;
use crate::query::plan::scope::Scope;

pub fn delete(delete: Delete, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("DELETE FROM ").table(scope.root());
    filter(&mut sql, scope, delete.filter);
    at_most(&mut sql, delete.limit);
    if let Some(records) = &delete.records {
        sql.syntax(" RETURNING ");
        returning::records(&mut sql, records, scope);
    }
    sql.finish()
}
