//! Conditions, resolved: of a filter, and of an `{id}`.

use super::bind::{self, Purpose};
use super::scope::Scope;
use super::{ColumnRef, LikePattern, Param, Predicate, Search};
use crate::query::catalog::{Column, Kind, Table};
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::json::Value;
use shared::operation::RecordId;
use shared::operation::filter::{self as asked, Comparison, Condition, Test};

/// The record of the root that `{id}` addresses.
pub(super) fn by_id(id: &RecordId, table: &Table) -> Result<Predicate, Problem> {
    // A value that the key can't hold addresses no record, like any other that none has.
    let equals = |column: usize, text: &str| {
        let place = ColumnRef { source: 0, column };
        match bind::value(&table.columns()[column], &Value::Text(text.into()), Purpose::Key) {
            Ok(operand) => Predicate::Compare(place, Comparison::Equal, operand),
            Err(_) => Predicate::Any(Vec::new()),
        }
    };
    match table.key() {
        [] => Err(Problem::new(
            ErrorCode::InvalidBody,
            format!("The table {} has no key, so its records have no id.", shown(table.name().as_str())),
        )
        .with_hint("Use query, updateKeyValues or deleteKeyValues.")),
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
    let names: Vec<_> = key.iter().map(|at| table.columns()[*at].name.as_str()).collect();
    Problem::new(
        ErrorCode::InvalidValue,
        format!("The id {} has not the {} parts of the key.", shown(id.whole()), key.len()),
    )
    .with_hint(format!("Give the values of {} separated by commas; a comma in a value is %2C.", names.join(", ")))
}

/// A condition, resolved.
pub(super) fn predicate(condition: &Condition, scope: &Scope<'_>) -> Result<Predicate, Problem> {
    let all = |conditions: &[Condition]| {
        conditions.iter().map(|condition| predicate(condition, scope)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match condition {
        Condition::Test(field, test) => {
            let place = scope.resolve(field, ErrorCode::InvalidFilter)?;
            tested(place, test, scope.column(place))?
        }
        Condition::All(conditions) => Predicate::All(all(conditions)?),
        Condition::Any(conditions) => Predicate::Any(all(conditions)?),
        Condition::Not(condition) => Predicate::Not(Box::new(predicate(condition, scope)?)),
    })
}

fn tested(place: ColumnRef, test: &Test, column: &Column) -> Result<Predicate, Problem> {
    let operand = |value: &Value| bind::value(column, value, Purpose::Filter);
    Ok(match test {
        Test::Compare(comparison, value) => {
            bind::comparable(column, *comparison)?;
            Predicate::Compare(place, *comparison, operand(value)?)
        }
        Test::In(values) => member(place, values, column)?,
        Test::Between(low, high) => {
            bind::comparable(column, Comparison::Less)?;
            Predicate::Between(place, operand(low)?, operand(high)?)
        }
        Test::IsNull => Predicate::IsNull(place),
        Test::Like(pattern) => Predicate::Like(place, LikePattern::Raw, bind::text(column, pattern)?),
        Test::Regexp(pattern) => Predicate::Regexp(place, bind::text(column, pattern)?),
        Test::Text(at, text) => {
            Predicate::Like(place, LikePattern::Literal, bind::literal(column, &literal(*at, text)))
        }
        Test::Match(mode, term) => {
            searchable(column)?;
            Predicate::Match(Search { places: vec![place], mode: *mode, term: Param::Text(term.as_str().into()) })
        }
    })
}

/// Refuses full-text search where there are no words.
pub(super) fn searchable(column: &Column) -> Result<(), Problem> {
    match column.kind {
        Kind::Text | Kind::Json => Ok(()),
        _ => Err(Problem::new(
            ErrorCode::InvalidFilter,
            format!("The field {} ({}) holds no text to search in.", shown(column.name.as_str()), column.type_text),
        )),
    }
}

/// A list that holds null means "one of these, or NULL": SQL's own IN would never match it.
pub(super) fn member(place: ColumnRef, values: &[Value], column: &Column) -> Result<Predicate, Problem> {
    bind::comparable(column, Comparison::Equal)?;
    let operands = values
        .iter()
        .filter(|value| **value != Value::Null)
        .map(|value| bind::value(column, value, Purpose::Filter))
        .collect::<Result<Vec<_>, _>>()?;
    if operands.len() == values.len() {
        return Ok(Predicate::In(place, operands));
    }
    Ok(Predicate::Any(vec![Predicate::IsNull(place), Predicate::In(place, operands)]))
}

/// A pattern in which only our own `%` is special; `|` escapes.
fn literal(place: asked::Place, text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    if place != asked::Place::Start {
        pattern.push('%');
    }
    for c in text.chars() {
        if matches!(c, '%' | '_' | '|') {
            pattern.push('|');
        }
        pattern.push(c);
    }
    if place != asked::Place::End {
        pattern.push('%');
    }
    pattern
}
