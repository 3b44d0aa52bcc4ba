//! Reads and conditions, resolved.

use super::bind::{self, Purpose};
use super::{LikePattern, Param, Predicate, Select};
use crate::catalog::{Columns, Table};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, shown};
use shared::json::Value;
use shared::operation::RecordId;
use shared::operation::filter::{Comparison, Condition, Place, Test};
use shared::operation::read::{Read, ReadOne, Selection};

pub(super) fn records(read: &Read, table: &Table) -> Result<Select, Problem> {
    Ok(Select {
        columns: selection(&read.select, table)?,
        filter: read
            .filter
            .as_ref()
            .map(|condition| predicate(condition, table))
            .transpose()?,
        order: read
            .order
            .iter()
            .map(|order| Ok((table.field(&order.field)?, order.direction)))
            .collect::<Result<_, Problem>>()?,
        limit: read.limit,
        offset: read.offset,
    })
}

pub(super) fn one(read: &ReadOne, table: &Table) -> Result<Select, Problem> {
    Ok(Select {
        columns: selection(&read.select, table)?,
        filter: Some(by_id(&read.id, table)?),
        order: Vec::new(),
        // A unique key finds one record at most, and MariaDB need not be told.
        limit: (!table.key_is_unique()).then_some(1),
        offset: 0,
    })
}

fn selection(selection: &Selection, table: &Table) -> Result<Columns, Problem> {
    let places = |names: &[FieldName]| {
        names
            .iter()
            .map(|name| table.field(name))
            .collect::<Result<Vec<_>, _>>()
    };
    match selection {
        Selection::All => Ok(Columns::All),
        Selection::Only(names) => places(names).map(Columns::Some),
        Selection::Except(names) => {
            let omitted = places(names)?;
            let kept: Vec<_> = (0..table.columns().len())
                .filter(|at| !omitted.contains(at))
                .collect();
            if kept.is_empty() {
                return Err(Problem::new(
                    ErrorCode::InvalidQueryOption,
                    "The option omitFields leaves no field.",
                ));
            }
            Ok(Columns::Some(kept))
        }
    }
}

/// The record that `{id}` addresses.
pub(super) fn by_id(id: &RecordId, table: &Table) -> Result<Predicate, Problem> {
    // A value that the key can't hold addresses no record, like any other that none has.
    let equals = |at: usize, text: &str| {
        let column = &table.columns()[at];
        match bind::value(column, &Value::Text(text.into()), Purpose::Key) {
            Ok(operand) => Predicate::Compare(at, Comparison::Equal, operand),
            Err(_) => Predicate::Any(Vec::new()),
        }
    };
    match table.key() {
        [] => Err(Problem::new(
            ErrorCode::InvalidBody,
            format!(
                "The table {} has no key, so its records have no id.",
                shown(table.name().as_str())
            ),
        )
        .with_hint("Use query, updateKeyValues or deleteKeyValues.")),
        [at] => Ok(equals(*at, id.whole())),
        key => {
            if let Some(parts) = id.parts(key.len()) {
                let parts = key.iter().zip(parts);
                return Ok(Predicate::All(
                    parts.map(|(at, part)| equals(*at, part)).collect(),
                ));
            }
            let names: Vec<_> = key
                .iter()
                .map(|at| table.columns()[*at].name.as_str())
                .collect();
            Err(Problem::new(
                ErrorCode::InvalidValue,
                format!(
                    "The id {} has not the {} parts of the key.",
                    shown(id.whole()),
                    key.len()
                ),
            )
            .with_hint(format!(
                "Give the values of {} separated by commas; a comma in a value is %2C.",
                names.join(", ")
            )))
        }
    }
}

/// A condition, resolved.
pub(super) fn predicate(condition: &Condition, table: &Table) -> Result<Predicate, Problem> {
    let all = |conditions: &[Condition]| {
        conditions
            .iter()
            .map(|condition| predicate(condition, table))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(match condition {
        Condition::Test(field, test) => tested(table.field(field)?, test, table)?,
        Condition::All(conditions) => Predicate::All(all(conditions)?),
        Condition::Any(conditions) => Predicate::Any(all(conditions)?),
        Condition::Not(condition) => Predicate::Not(Box::new(predicate(condition, table)?)),
    })
}

fn tested(at: usize, test: &Test, table: &Table) -> Result<Predicate, Problem> {
    let column = &table.columns()[at];
    let operand = |value: &Value| bind::value(column, value, Purpose::Filter);
    Ok(match test {
        Test::Compare(comparison, value) => {
            bind::comparable(column, *comparison)?;
            Predicate::Compare(at, *comparison, operand(value)?)
        }
        Test::In(values) => member(at, values, table)?,
        Test::Between(low, high) => {
            bind::comparable(column, Comparison::Less)?;
            Predicate::Between(at, operand(low)?, operand(high)?)
        }
        Test::IsNull => Predicate::IsNull(at),
        Test::Like(pattern) => Predicate::Like(at, LikePattern::Raw, bind::text(column, pattern)?),
        Test::Regexp(pattern) => Predicate::Regexp(at, bind::text(column, pattern)?),
        Test::Text(place, text) => Predicate::Like(
            at,
            LikePattern::Literal,
            bind::literal(column, &literal(*place, text)),
        ),
        Test::Match(mode, term) => Predicate::Match(at, *mode, Param::Text(term.as_str().into())),
    })
}

/// A list that holds null means "one of these, or NULL": SQL's own IN would never match it.
fn member(at: usize, values: &[Value], table: &Table) -> Result<Predicate, Problem> {
    let column = &table.columns()[at];
    bind::comparable(column, Comparison::Equal)?;
    let operands = values
        .iter()
        .filter(|value| **value != Value::Null)
        .map(|value| bind::value(column, value, Purpose::Filter))
        .collect::<Result<Vec<_>, _>>()?;
    if operands.len() == values.len() {
        return Ok(Predicate::In(at, operands));
    }
    Ok(Predicate::Any(vec![
        Predicate::IsNull(at),
        Predicate::In(at, operands),
    ]))
}

/// A pattern in which only our own `%` is special; `|` escapes.
fn literal(place: Place, text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    if place != Place::Start {
        pattern.push('%');
    }
    for c in text.chars() {
        if matches!(c, '%' | '_' | '|') {
            pattern.push('|');
        }
        pattern.push(c);
    }
    if place != Place::End {
        pattern.push('%');
    }
    pattern
}
