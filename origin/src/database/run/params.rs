//! Converts between the parameters of statements and the driver's values.

use crate::database::json;
use crate::query::plan::Param;
use mysql_async::{Params, Row, Value};

pub(in crate::database) fn bind(params: Vec<Param>) -> Params {
    if params.is_empty() {
        return Params::Empty;
    }
    Params::Positional(
        params
            .into_iter()
            .map(|param| match param {
                Param::Null => Value::NULL,
                Param::Int(number) => Value::Int(number),
                Param::UInt(number) => Value::UInt(number),
                Param::Float(number) => Value::Float(number),
                Param::Double(number) => Value::Double(number),
                Param::Text(text) => Value::Bytes(String::from(text).into_bytes()),
                Param::Bytes(bytes) => Value::Bytes(bytes),
            })
            .collect(),
    )
}

pub(in crate::database) fn values(row: &Row, cells: &[usize]) -> Vec<Param> {
    let value = |at: &usize| match row.as_ref(*at) {
        None | Some(Value::NULL) => Param::Null,
        Some(Value::Int(number)) => Param::Int(*number),
        Some(Value::UInt(number)) => Param::UInt(*number),
        Some(Value::Float(number)) => Param::Float(*number),
        Some(Value::Double(number)) => Param::Double(*number),
        Some(Value::Bytes(bytes)) => match row.columns_ref().get(*at).and_then(|column| json::bit(column, bytes)) {
            Some(number) => Param::UInt(number),
            None => Param::Bytes(bytes.clone()),
        },
        Some(Value::Date(year, month, day, 0, 0, 0, 0)) => Param::Text(format!("{year:04}-{month:02}-{day:02}").into()),
        Some(Value::Date(year, month, day, hour, minute, second, micros)) => {
            Param::Text(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}").into())
        }
        Some(Value::Time(negative, days, hours, minute, second, micros)) => Param::Text(
            format!(
                "{}{:02}:{minute:02}:{second:02}.{micros:06}",
                if *negative { "-" } else { "" },
                days * 24 + u32::from(*hours)
            )
            .into(),
        ),
    };
    cells.iter().map(value).collect()
}
