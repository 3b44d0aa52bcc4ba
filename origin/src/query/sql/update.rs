//! UPDATE.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::query::plan::Update;
use crate::query::plan::scope::Scope;

/// Renders an update.
#[must_use]
pub fn update(update: Update, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ").table(scope.root()).syntax(" SET ").list(update.changes, |sql, (at, operand)| {
        sql.column(scope.root(), at).syntax(" = ").operand(operand);
    });
    filter(&mut sql, scope, update.filter);
    sql.finish()
}
