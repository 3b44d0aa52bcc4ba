//! Resolves a filter or an `{id}` to a condition on columns.

use super::access;
use super::bind::{self, BindFor};
use super::related::exists;
use super::scope::Scope;
use super::{ColumnRef, LikePattern, Param, Predicate, Search};
use crate::query::catalog::{Column, Kind, Table};
use shared::error::{ErrorCode, Faults, Problem};
use shared::ident::shown;
use shared::json::Value;
use shared::operation::RecordId;
use shared::operation::filter::{Comparison, Condition, MatchMode, Test, TextPosition};
use shared::policy::role_forbids;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IdPurpose {
    Read,
    Write,
}

pub(super) fn by_id(id: &RecordId, table: &Table, purpose: IdPurpose) -> Result<Predicate, Problem> {
    let key = match table.key() {
        [_, _, ..] if !table.key_is_readable() => &[],
        [_] if !table.key_is_readable() && purpose == IdPurpose::Read => &[],
        key => key,
    };
    // A value that the key can't hold addresses no record: the condition is false.
    let equals = |column: usize, text: &str| {
        let column_ref = ColumnRef { source: 0, column };
        match bind::value(table.column(column), &Value::Text(text.into()), BindFor::Key) {
            Ok(operand) => Predicate::Compare(column_ref, Comparison::Equal, operand),
            Err(_) => Predicate::Any(Vec::new()),
        }
    };
    match key {
        [] => {
            let (code, hint) = match purpose {
                IdPurpose::Read => {
                    (ErrorCode::RecordNotFound, "Find it by its fields, with the option query of a list.")
                }
                IdPurpose::Write => (ErrorCode::InvalidBody, "Use query, updateKeyValues or deleteKeyValues."),
            };
            let kind = if table.traits().view { "view" } else { "table" };
            let name = shown(table.name().as_str());
            Err(Problem::new(code, format!("The {kind} {name} has no key, so its records have no id.")).with_hint(hint))
        }
        [at] => Ok(equals(*at, id.whole())),
        key => {
            if let Some(parts) = id.parts(key.len()) {
                let parts = key.iter().zip(parts);
                return Ok(Predicate::All(parts.map(|(at, part)| equals(*at, part)).collect()));
            }
            Err(wrong_parts(id, key, table))
        }
    }
}

fn wrong_parts(id: &RecordId, key: &[usize], table: &Table) -> Problem {
    let names: Vec<_> = key.iter().map(|at| table.column(*at).name.as_str()).collect();
    Problem::new(
        ErrorCode::InvalidValue,
        format!("The id {} has not the {} parts of the key.", shown(id.whole()), key.len()),
    )
    .with_hint(format!("Give the values of {} separated by commas; a comma in a value is %2C.", names.join(", ")))
}

pub(super) fn predicate(condition: &Condition, scope: &Scope<'_>) -> Result<Predicate, Problem> {
    let all = |conditions: &[Condition]| {
        let (mut faults, mut predicates) = (Faults::default(), Vec::with_capacity(conditions.len()));
        for condition in conditions {
            predicates.extend(faults.check(|| predicate(condition, scope)));
            if faults.is_full() {
                break;
            }
        }
        faults.end().map(|()| predicates)
    };
    Ok(match condition {
        Condition::Test(field, test) => {
            let column_ref = scope.resolve(field, ErrorCode::InvalidFilter)?;
            let rules = || {
                let source = column_ref.source;
                access::own_rule(source, scope).or_else(|| access::read_rule(source, scope))
            };
            match tested(column_ref, test, scope.column(column_ref))? {
                Predicate::Match(Search { mode: MatchMode::Expansion, .. }) if rules().is_some() => {
                    return Err(no_expansion());
                }
                predicate => predicate,
            }
        }
        Condition::All(conditions) => Predicate::All(all(conditions)?),
        Condition::Any(conditions) => Predicate::Any(all(conditions)?),
        Condition::Not(condition) => Predicate::Not(Box::new(predicate(condition, scope)?)),
        Condition::Related(related) => exists(related, scope)?,
    })
}

/// The problem of query expansion, which would also use words of records that the caller may not read.
pub(super) fn no_expansion() -> Problem {
    role_forbids("search with query expansion in a table of which it reads some records only")
        .with_hint("Use the mode natural or boolean.")
}

fn tested(column_ref: ColumnRef, test: &Test, column: &Column) -> Result<Predicate, Problem> {
    let operand = |value: &Value| bind::value(column, value, BindFor::Filter);
    Ok(match test {
        Test::Compare(comparison, value) => {
            bind::comparable(column, *comparison)?;
            Predicate::Compare(column_ref, *comparison, operand(value)?)
        }
        Test::In(values) => member(column_ref, values, column)?,
        Test::Between(low, high) => {
            bind::comparable(column, Comparison::Less)?;
            Predicate::Between(column_ref, operand(low)?, operand(high)?)
        }
        Test::IsNull => Predicate::IsNull(column_ref),
        Test::Like(pattern) => Predicate::Like(column_ref, LikePattern::Raw, bind::text(column, pattern)?),
        Test::Regexp(pattern) => Predicate::Regexp(column_ref, bind::text(column, pattern)?),
        Test::Text(at, text) => {
            Predicate::Like(column_ref, LikePattern::Literal, bind::literal(column, &literal(*at, text)))
        }
        Test::Match(mode, term) => {
            searchable(column)?;
            Predicate::Match(Search { columns: vec![column_ref], mode: *mode, term: Param::Text(term.as_str().into()) })
        }
    })
}

pub(super) fn searchable(column: &Column) -> Result<(), Problem> {
    match column.kind {
        Kind::Text | Kind::Json => Ok(()),
        _ => Err(Problem::new(
            ErrorCode::InvalidFilter,
            format!("The field {} ({}) holds no text to search in.", shown(column.name.as_str()), column.type_text),
        )),
    }
}

pub(super) fn member(column_ref: ColumnRef, values: &[Value], column: &Column) -> Result<Predicate, Problem> {
    bind::comparable(column, Comparison::Equal)?;
    let operands = values
        .iter()
        .filter(|value| **value != Value::Null)
        .map(|value| bind::value(column, value, BindFor::Filter))
        .collect::<Result<Vec<_>, _>>()?;
    if operands.len() == values.len() {
        return Ok(Predicate::In(column_ref, operands));
    }
    Ok(Predicate::Any(vec![Predicate::IsNull(column_ref), Predicate::In(column_ref, operands)]))
}

/// Returns a LIKE pattern for the text, whose own wildcards are escaped by `|`.
fn literal(position: TextPosition, text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    if position != TextPosition::Start {
        pattern.push('%');
    }
    for c in text.chars() {
        if matches!(c, '%' | '_' | '|') {
            pattern.push('|');
        }
        pattern.push(c);
    }
    if position != TextPosition::End {
        pattern.push('%');
    }
    pattern
}
