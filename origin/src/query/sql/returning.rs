//! Renders the records that INSERT and DELETE return.

use super::RecordColumns;
use super::builder::Builder;
use super::expression;
use super::predicate;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Output, Predicate, Returning};
use std::sync::Arc;

pub(super) fn records(sql: &mut Builder, records: &Returning, scope: &Scope<'_>) {
    match records.output() {
        Output::Whole => sql.all_columns(scope.root()),
        Output::Cells(cells) => sql.list(cells.iter().cloned(), |sql, cell| expression::write(sql, scope, cell)),
    };
    if let Some(readable) = records.rule() {
        sql.syntax(", ");
        rule(sql, Some(readable), scope);
    }
    let (start, layout) = (sql.returned.next(), Arc::clone(records.layout()));
    let end = start + layout.kinds.len();
    let readable = records.rule().map(|_| end);
    sql.returned.record = Some(RecordColumns { cells: start..end, readable, layout });
}

pub(super) fn rule(sql: &mut Builder, rule: Option<&Predicate>, scope: &Scope<'_>) {
    match rule {
        None => {
            sql.syntax("TRUE");
        }
        Some(rule) => {
            sql.syntax("COALESCE(");
            predicate::write(sql, scope, rule.clone());
            sql.syntax(", FALSE)");
        }
    }
}
