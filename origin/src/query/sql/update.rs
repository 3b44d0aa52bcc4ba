//! Renders UPDATE statements.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::query::plan::Update;
use crate::query::plan::scope::Scope;

#[must_use]
pub fn update(update: Update, scope: &Scope<'_>) -> Statement {
    let mut sql = Builder::new();
    let (changes, condition) = update.into_parts();
    sql.syntax("UPDATE ").table(scope.root()).syntax(" SET ").list(changes, |sql, (at, operand)| {
        sql.column(scope.root(), at).syntax(" = ").operand(operand);
    });
    filter(&mut sql, scope, condition);
    sql.finish()
}
