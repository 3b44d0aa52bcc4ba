//! Binds the operand of `{"$add": number}`, which an update adds to a number column in the database.

use super::{number, short};
use crate::query::catalog::{Column, Kind};
use crate::query::plan::Operand;
use crate::query::plan::bind::BindFor;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::json::{self, Value};

const ADD: &str = "$add";

/// Binds the addend. `None` if the value is not `{"$add": …}`, or the column is JSON and stores such an object.
pub fn addend(column: &Column, value: &Value) -> Result<Option<Operand>, Problem> {
    let Value::Object(text) = value else {
        return Ok(None);
    };
    if column.kind == Kind::Json || !text.contains('$') && !text.contains('\\') {
        return Ok(None);
    }
    let Some(members) = json::members(text).ok().filter(|members| members.iter().any(|(name, _)| name == ADD)) else {
        return Ok(None);
    };
    let refused = |fault: &str| {
        let (name, type_text) = (shown(column.name.as_str()), short(&column.type_text));
        Problem::new(ErrorCode::InvalidValue, format!("The field {name} ({type_text}) {fault}."))
            .with_hint("Write {\"$add\": 1}, or a negative number to subtract, for a field of a number type.")
            .with_field(column.name.as_str())
    };
    let [(_, operand)] = members.as_slice() else {
        return Err(refused("takes $add without other members"));
    };
    let is_number = matches!(operand, Value::Number(_) | Value::Text(_));
    let bound = match column.kind {
        Kind::Integer => number::integer(operand, BindFor::Store),
        // MariaDB would convert a text parameter to a double before it adds it.
        Kind::Decimal => number::decimal(operand, BindFor::Filter),
        Kind::Float | Kind::Double => number::double(operand),
        _ => return Err(refused("holds no numbers that $add could change")),
    };
    match bound.filter(|_| is_number) {
        Some(operand) => Ok(Some(operand)),
        None if column.kind == Kind::Integer => Err(refused("takes a whole number in $add")),
        None => Err(refused("takes a number in $add")),
    }
}
