//! Resolves the rule of a role for a table: its fields, its values and its conditions with the caller's claims.

use super::rules::moved;
use super::{Limits, TableAccess, WriteLimits, claims_in_patterns};
use crate::query::catalog::{Column, Kind, Table};
use crate::query::plan::bind::{self, BindFor};
use crate::query::plan::filter::predicate;
use crate::query::plan::related::RelatedTable;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Operand, Predicate, SqlConversion};
use crate::query::role::{Claims, Fields, ReadRule, TableRule, Template, WriteRule};
use shared::error::ErrorCode;
use shared::ident::FieldName;
use shared::json::Value;
use shared::operation::filter::{Condition, Joiner};
use std::sync::Arc;

impl Limits {
    /// Resolves a rule, whose conditions reach the tables `related`. `view` has the columns of `table` in another order;
    /// the result has the indexes of `view`.
    pub(super) fn bind(
        rule: &TableRule,
        table: &Arc<Table>,
        view: &Table,
        claims: &Claims,
        related: &[RelatedTable],
    ) -> Self {
        let whole = TableAccess { table: Arc::clone(table), limits: None };
        let scope = Scope::of(&whole).with_related(related);
        let rows = |rows: &Option<Template>| rows.as_ref().map(|rows| Arc::new(rows_of(rows, &scope, view, claims)));
        // A field that a rule omits may have been renamed, and would then be allowed. If the rule is for one table and
        // an omitted field does not exist, the action is denied.
        let is_known = |fields: &&Fields| match fields {
            Fields::Except(_) if rule.of_table => {
                let names =
                    table.columns().iter().map(|column| column.name.as_str().to_lowercase()).collect::<Vec<_>>();
                fields.names().iter().all(|name| names.contains(&name.as_str().to_lowercase()))
            }
            _ => true,
        };
        let write = |rule: &WriteRule| WriteLimits {
            may_give: view
                .all_columns()
                .map(|at| {
                    let name = &view.column(at).name;
                    rule.fields.has(name) && !rule.set.iter().any(|(set, _)| set == name)
                })
                .collect(),
            set: rule.set.iter().map(|(name, value)| set_value(name, value, view, claims)).collect(),
            rows: rows(&rule.rows),
        };
        // A SELECT needs a column, so a role that may read no field of the table may not read its records.
        let reads = |rule: &&ReadRule| is_known(&&rule.fields) && !view.columns().is_empty();
        Self {
            read: rule.read.as_ref().filter(reads).map(|rule| rows(&rule.rows)),
            insert: rule.insert.as_ref().filter(|rule| is_known(&&rule.fields)).map(write),
            update: rule.update.as_ref().filter(|rule| is_known(&&rule.fields)).map(write),
            delete: rule.delete.as_ref().map(|rule| rows(&rule.rows)),
        }
    }
}

/// Resolves the role's condition, which is false if a claim is missing or if it is empty, unfit or not [`is_exact`].
///
/// A rule may name fields and tables that its callers can't read, so it is resolved on whole tables.
fn rows_of(rows: &Template, scope: &Scope<'_>, view: &Table, claims: &Claims) -> Predicate {
    let nothing = || Predicate::Any(Vec::new());
    let query = claims_in_patterns::fill(rows, claims);
    let condition = query.and_then(|query| Condition::from_query(&query, Joiner::And).ok());
    let Some(condition) = condition else {
        return nothing();
    };
    let condition = condition.unwrap_or(Condition::Any(Vec::new()));
    match predicate(&condition, scope) {
        Ok(_) if !is_exact(&condition, scope) => nothing(),
        Ok(predicate) => moved(predicate, &|column_ref| {
            let name = &scope.column(column_ref).name;
            ColumnRef { source: 0, column: view.find_hidden(name).unwrap_or(column_ref.column) }
        }),
        Err(_) => nothing(),
    }
}

/// Whether numbers are compared with plain decimal texts only: [`bind::value`] reads `7e0` as 7, so a caller with the
/// claim `7e0` would see the records of the caller with the claim 7.
fn is_exact(condition: &Condition, scope: &Scope<'_>) -> bool {
    let (field, test) = match condition {
        Condition::All(parts) | Condition::Any(parts) => return parts.iter().all(|part| is_exact(part, scope)),
        Condition::Not(part) => return is_exact(part, scope),
        Condition::Related(related) => {
            let is_exact_in = |table: &RelatedTable| {
                related.condition.as_ref().is_none_or(|condition| is_exact(condition, &table.scope()))
            };
            return scope.find_related(&related.relation).is_some_and(is_exact_in);
        }
        Condition::Test(field, test) => (field, test),
    };
    // Resolved as in the condition, since a field may be written with its table's name.
    let column = scope.resolve(field, ErrorCode::InvalidFilter).map(|column_ref| scope.column(column_ref));
    column.is_ok_and(|column| test.values().iter().all(|value| is_exact_value(column, value)))
}

fn is_exact_value(column: &Column, value: &Value) -> bool {
    !column.kind.is_number() || !matches!(value, Value::Text(text) if !is_plain_number(text))
}

fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole) && all_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// Resolves a value that the role sets. `None` if the column doesn't exist or is generated, a claim is missing, or the
/// value doesn't fit or is not stored exactly.
fn set_value(name: &FieldName, value: &Template, view: &Table, claims: &Claims) -> Option<(usize, Operand)> {
    let at = view.find_hidden(name).filter(|at| !view.column(*at).generated)?;
    let column = view.column(at);
    let filled = value.fill(claims)?;
    let operand = bind::value(column, &filled, BindFor::Store).ok()?;
    (value.claims().is_empty() || is_stored_exactly(column, &filled, &operand)).then_some((at, operand))
}

/// Whether a claim is stored unchanged, and so never as another caller's claim: text for a number column must be a
/// plain decimal, a boolean is for BOOLEAN and BIT only, and no digit of a DECIMAL or part of a time may be lost.
fn is_stored_exactly(column: &Column, value: &Value, operand: &Operand) -> bool {
    let is_for_booleans = column.kind == Kind::Bit || column.type_text.starts_with("tinyint(1)");
    if !is_exact_value(column, value) || (matches!(value, Value::Bool(_)) && !is_for_booleans) {
        return false;
    }
    let compared = || bind::value(column, value, BindFor::Filter).ok();
    let stored = || bind::as_stored(column, operand.clone());
    match column.kind {
        Kind::Decimal => compared().is_some_and(|compared| match (compared.form, stored().form) {
            (SqlConversion::Decimal { scale }, SqlConversion::Decimal { scale: kept }) => scale <= kept,
            _ => false,
        }),
        Kind::Date | Kind::DateTime | Kind::Time => compared() == Some(stored()),
        _ => true,
    }
}
