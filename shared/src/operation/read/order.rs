//! Parses the option `order`: an object `{field, strategy}`, a name, `-name` for descending order, or a list of these.

use crate::error::Problem;
use crate::ident::{FieldName, TableName};
use crate::json::Value;
use crate::limits::ORDER_MAX_STEPS;
use crate::operation::field::FieldRef;
use crate::operation::options;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Order {
    /// A returned field, by its name or alias, or any field of a table.
    pub field: FieldRef,
    pub direction: Direction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Ascending,
    Descending,
}

const PARTS: [&str; 3] = ["field", "strategy", "tableName"];

pub(in crate::operation) fn orders(value: &Value) -> Result<Vec<Order>, Problem> {
    let items = match value {
        Value::Object(text) => return Ok(vec![order(text)?]),
        Value::List(text) => options::items("order", text, ORDER_MAX_STEPS)?,
        Value::Text(words) => words.split(',').take(ORDER_MAX_STEPS + 1).map(|word| Value::Text(word.into())).collect(),
        other => return Err(wrong(other)),
    };
    if items.len() > ORDER_MAX_STEPS {
        return Err(options::invalid(format!("The option order has more than {ORDER_MAX_STEPS} steps.")));
    }
    items
        .iter()
        .map(|item| match item {
            Value::Object(text) => order(text),
            Value::Text(word) if !word.trim().is_empty() => by_name(word.trim()),
            other => Err(wrong(other)),
        })
        .collect()
}

fn wrong(got: &Value) -> Problem {
    options::wrong("order", "a field's name, -name to descend, an object {field, strategy}, or a list of them", got)
}

/// Parses `name` or `-name`. A name that begins with a hyphen needs the object form; one with a comma needs JSON.
fn by_name(word: &str) -> Result<Order, Problem> {
    let (name, direction) = match word.strip_prefix('-') {
        Some(name) => (name, Direction::Descending),
        None => (word, Direction::Ascending),
    };
    Ok(Order { field: FieldRef::parse(name)?, direction })
}

fn order(text: &str) -> Result<Order, Problem> {
    let (mut field, mut table, mut direction) = (None, None, Direction::Ascending);
    for (name, value) in options::object("order", text)? {
        match (&*name, &value) {
            ("field", Value::Text(_) | Value::Object(_)) => {
                field = Some(options::field("order.field", "a field's name", &value)?);
            }
            ("tableName", Value::Text(name)) => table = Some(TableName::parse(name)?),
            ("strategy", Value::Text(word)) if word.eq_ignore_ascii_case("ASC") => {
                direction = Direction::Ascending;
            }
            ("strategy", Value::Text(word)) if word.eq_ignore_ascii_case("DESC") => {
                direction = Direction::Descending;
            }
            ("field", other) => return Err(options::wrong("order.field", "a field's name", other)),
            ("tableName", other) => {
                return Err(options::wrong("order.tableName", "a table's name", other));
            }
            ("strategy", other) => {
                return Err(options::wrong("order.strategy", "ASC or DESC", other));
            }
            (other, _) => return Err(options::unknown_part("order", other, &PARTS)),
        }
    }
    let field = field.ok_or_else(|| options::missing_part("order", "a field"))?;
    Ok(Order { field: of_table(table, field)?, direction })
}

pub(super) fn of_table(table: Option<TableName>, field: FieldRef) -> Result<FieldRef, Problem> {
    match (table, field.table()) {
        (None, _) => Ok(field),
        (Some(table), None) => Ok(FieldRef::of(table, FieldName::clone(field.field()))),
        (Some(_), Some(_)) => {
            Err(options::invalid("A field's table is named twice: in tableName and in the field itself."))
        }
    }
}
