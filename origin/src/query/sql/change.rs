//! Renders UPDATE and DELETE statements. If a change could break a condition of the caller's role, the session variable
//! `@selkie_denied` is set at a record that breaks it: MariaDB assigns from left to right, so that an expression
//! after the changes sees the new values. A second statement reads the variable, before the transaction ends.

use super::builder::Builder;
use super::predicate::{self, filter};
use super::{ResultColumns, Statement, returning};
use crate::query::catalog::Kind;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnChange, Delete, Param, Update};

/// Renders an UPDATE, and a second statement for its transaction if the changed records must meet the role's condition.
pub fn update(update: Update, scope: &Scope<'_>) -> Vec<Statement> {
    let mut sql = Builder::new();
    let Update { changes, filter: condition, check, references, limit } = update;
    // IF() would turn a geometry into bytes.
    let is_plain = |at: &usize| scope.root().column(*at).kind != Kind::Geometry;
    let first = changes.iter().map(|(at, _)| *at).find(is_plain).or_else(|| scope.root().key().first().copied());
    sql.syntax("UPDATE ").table(scope.root()).syntax(" SET ").list(changes, |sql, (at, change)| {
        sql.column(scope.root(), at).syntax(" = ");
        match change {
            ColumnChange::Set(operand) => sql.operand(operand),
            ColumnChange::Add(operand) => sql.column(scope.root(), at).syntax(" + ").operand(operand),
        };
    });
    let fields = references.iter().map(|reference| reference.field.clone()).collect();
    let numbered = references.into_iter().map(|reference| reference.is_readable).zip(ResultColumns::FIRST_REFERENCE..);
    let checks: Vec<_> = check.map(|check| (check, 0)).into_iter().chain(numbered).collect();
    if checks.is_empty() {
        filter(&mut sql, scope, condition);
        at_most(&mut sql, limit);
        return vec![sql.finish()];
    }
    let table = scope.root();
    let anchor = first.unwrap_or_default();
    for (check, number) in checks {
        // The column keeps its new value in both branches; it is assigned only to evaluate the condition.
        sql.syntax(", ").column(table, anchor).syntax(" = IF(COALESCE(");
        predicate::write(&mut sql, scope, check);
        sql.syntax(", FALSE), ").column(table, anchor).numbered(", IF(@selkie_denied := ", number).syntax(", ");
        sql.column(table, anchor).syntax(", ").column(table, anchor).syntax("))");
    }
    filter(&mut sql, scope, condition);
    at_most(&mut sql, limit);
    sql.sets_variables = true;
    let mut verdict = Builder::new();
    verdict.syntax("SELECT CAST(COALESCE(@selkie_denied, 1) AS SIGNED), @selkie_denied := NULL");
    verdict.returned = ResultColumns { rule: Some(0), references: fields, is_check: true, ..ResultColumns::default() };
    verdict.sets_variables = true;
    vec![sql.finish(), verdict.finish()]
}

fn at_most(sql: &mut Builder, limit: Option<u64>) {
    if let Some(limit) = limit {
        sql.syntax(" LIMIT ").param(Param::UInt(limit));
    }
}

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
