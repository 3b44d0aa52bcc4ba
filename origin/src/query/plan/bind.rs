//! Converts a caller's value to its column's type, or refuses it with an error that names the field. Binding by type
//! lets MariaDB use its indexes and keeps digits exact. Whether a number to store is within a column's range is left to
//! MariaDB, whose error names the column.

mod enum_set;
mod geojson;
mod increment;
mod json;
mod number;
mod temporal;

use super::{Operand, Param, SqlConversion};
use crate::query::catalog::{Charset, Column, Kind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
pub use increment::addend;
use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::shown;
use shared::json::Value;
use shared::operation::filter::Comparison;
use shared::operation::read::select::Aggregate;
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use temporal::TimeOfDay;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindFor {
    Store,
    Filter,
    Key,
}

impl BindFor {
    fn code(self) -> ErrorCode {
        match self {
            Self::Store | Self::Key => ErrorCode::InvalidValue,
            Self::Filter => ErrorCode::InvalidFilter,
        }
    }
}

pub fn value(column: &Column, value: &Value, purpose: BindFor) -> Result<Operand, Problem> {
    if *value == Value::Null {
        return Ok(plain(Param::Null));
    }
    let bound = match column.kind {
        Kind::Integer => number::integer(value, purpose),
        Kind::Bit => number::integer(value, purpose).filter(is_not_negative),
        Kind::Decimal => number::decimal(value, purpose),
        Kind::Float => number::float(value),
        Kind::Double => number::double(value),
        Kind::Text => scalar_text(value).and_then(|text| of_text(column, text, purpose)),
        Kind::Enum => scalar_text(value)
            .and_then(|text| match purpose {
                BindFor::Filter => enum_set::named(&column.values, text, column.case_sensitivity),
                BindFor::Store | BindFor::Key => enum_set::one(&column.values, text),
            })
            .and_then(|text| of_text(column, text, purpose)),
        Kind::Set => scalar_text(value)
            .and_then(|text| match purpose {
                BindFor::Filter => enum_set::all_named(&column.values, text, column.case_sensitivity),
                BindFor::Store | BindFor::Key => enum_set::several(&column.values, text),
            })
            .and_then(|text| of_text(column, &text, purpose)),
        Kind::Uuid => parsed::<Uuid>(value),
        Kind::Inet4 => parsed::<Ipv4Addr>(value),
        Kind::Inet6 => parsed::<Ipv6Addr>(value),
        Kind::Date => string(value).and_then(|text| {
            temporal::date(
                text,
                match purpose {
                    BindFor::Store => TimeOfDay::Dropped,
                    BindFor::Filter | BindFor::Key => TimeOfDay::Kept,
                },
            )
            .map(own_text)
        }),
        Kind::DateTime => string(value).and_then(temporal::datetime).map(own_text),
        Kind::Time => string(value).and_then(temporal::time).map(own_text),
        Kind::Json => return json(column, value, purpose),
        Kind::Bytes => string(value).and_then(|text| bytes(column, text, purpose)),
        Kind::Geometry => match value {
            Value::Object(text) => return geometry(column, text, purpose),
            _ => None,
        },
    };
    bound.ok_or_else(|| refused(column, value, purpose))
}

/// Returns what MariaDB stores: it rounds a DECIMAL, cuts the fraction of a time and pads BINARY, as the type says.
pub fn as_stored(column: &Column, mut operand: Operand) -> Operand {
    // The numbers in `decimal(5,1)`, `datetime(3)` or `binary(16)`; 0 where the type has none.
    let mut sizes = column.type_text.split(['(', ',', ')']).skip(1).map(|size| size.parse::<u8>().unwrap_or(0));
    let first = sizes.next().unwrap_or(0);
    match (column.kind, &mut operand.param) {
        (Kind::Decimal, Param::Text(_)) => operand.form = SqlConversion::Decimal { scale: sizes.next().unwrap_or(0) },
        (Kind::DateTime | Kind::Time, Param::Text(text)) => {
            if let Some(point) = text.find('.') {
                let end = (point + 1 + usize::from(first)).min(text.len());
                *text = text[..end].trim_end_matches('.').into();
            }
        }
        (Kind::Bytes, Param::Bytes(bytes)) if column.type_text.starts_with("binary") => {
            bytes.resize(usize::from(first), 0);
        }
        (Kind::Text, Param::Text(text)) if column.type_text.starts_with("char") => {
            *text = text.trim_end_matches(' ').into();
        }
        (Kind::Integer, Param::Int(year @ 1..=99)) if column.type_text.starts_with("year") => {
            *year += if *year < 70 { 2000 } else { 1900 };
        }
        _ => {}
    }
    operand
}

/// Whether the type, such as FLOAT(7,2), rounds: [`as_stored`] then can't tell what MariaDB stores.
pub fn rounds(column: &Column) -> bool {
    matches!(column.kind, Kind::Float | Kind::Double) && column.type_text.contains('(')
}

/// Binds a CSV cell. A JSON or geometry cell holds JSON text; an empty cell is NULL or, if the column is NOT NULL,
/// `None`: the column's default; `true` and `false` are 1 and 0 for INTEGER and BIT.
pub fn cell(column: &Column, cell: &Value) -> Result<Option<Operand>, Problem> {
    let text = match cell {
        Value::Null if !column.nullable => return Ok(None),
        Value::Text(text) => text,
        other => return value(column, other, BindFor::Store).map(Some),
    };
    let read = match (column.kind, &**text) {
        (Kind::Json | Kind::Geometry, text) => {
            let read = shared::json::check(text.as_bytes()).ok().and_then(|text| shared::json::value(text).ok());
            read.ok_or_else(|| faulty(column, BindFor::Store, "; this cell holds other text"))?
        }
        (Kind::Integer | Kind::Bit, "true" | "True" | "TRUE") => Value::Bool(true),
        (Kind::Integer | Kind::Bit, "false" | "False" | "FALSE") => Value::Bool(false),
        _ => return value(column, cell, BindFor::Store).map(Some),
    };
    match (column.kind, &read) {
        // The cell is JSON's null, which is stored as JSON, not as SQL's NULL.
        (Kind::Json, Value::Null) => Ok(Some(own_text("null".to_owned()))),
        _ => value(column, &read, BindFor::Store).map(Some),
    }
}

pub fn text(column: &Column, value: &Value) -> Result<Operand, Problem> {
    scalar_text(value).map(|text| literal(column, text)).ok_or_else(|| refused(column, value, BindFor::Filter))
}

/// Binds a text to compare. MariaDB converts the text to the column's character set, so that the column's index
/// applies, but fails if the set lacks a character. Then [`SqlConversion::Unicode`] converts the column instead.
pub fn literal(column: &Column, text: &str) -> Operand {
    let form = match &column.charset {
        Charset::Limited(coverage) if !coverage.holds(text) => SqlConversion::Unicode(column.case_sensitivity),
        Charset::Limited(_) | Charset::Unicode => SqlConversion::Plain,
    };
    Operand { param: Param::Text(text.into()), form }
}

pub fn comparable(column: &Column, comparison: Comparison) -> Result<(), Problem> {
    use Comparison::{Equal, NotEqual, NullSafeEqual};
    match (column.kind, comparison) {
        (Kind::Geometry, NullSafeEqual) => {}
        (Kind::Geometry | Kind::Json, Equal | NotEqual | NullSafeEqual) => return Ok(()),
        (Kind::Geometry | Kind::Json, _) => {}
        _ => return Ok(()),
    }
    Err(Problem::new(
        ErrorCode::InvalidFilter,
        format!("The field {} ({}) has no order.", shown(column.name.as_str()), column.type_text),
    )
    .with_hint("Compare it with = or !=."))
}

pub fn aggregable(aggregate: Aggregate, column: &Column) -> Result<(), Problem> {
    use Aggregate::{Avg, Count, CountDistinct, Max, Min, Sum};
    let sound = match (aggregate, column.kind) {
        (Count | CountDistinct, _) => true,
        (Min | Max, kind) => !matches!(kind, Kind::Geometry | Kind::Json),
        (Sum | Avg, kind) => kind.is_number(),
    };
    if sound {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::InvalidQueryOption,
        format!(
            "The option selectFields can't have the {} of {} ({}).",
            match aggregate {
                Sum => "SUM",
                Avg => "AVG",
                Min => "MIN",
                Max => "MAX",
                Count | CountDistinct => "COUNT",
            },
            shown(column.name.as_str()),
            column.type_text,
        ),
    )
    .with_hint("Use COUNT or COUNT_DISTINCT."))
}

fn plain(param: Param) -> Operand {
    Operand { param, form: SqlConversion::Plain }
}

fn own_text(text: String) -> Operand {
    plain(Param::Text(text.into()))
}

fn refused(column: &Column, value: &Value, purpose: BindFor) -> Problem {
    let hint = match (column.kind, value, &column.charset) {
        (Kind::Enum | Kind::Set, Value::Text(text), _) => {
            nearest(text, column.values.iter()).map(|near| format!("Did you mean {}?", shown(near)))
        }
        (Kind::Text, Value::Text(_), Charset::Limited(coverage)) => {
            Some(format!("Its character set {} lacks a character of it.", coverage.charset()))
        }
        _ => None,
    };
    faulty(column, purpose, &format!(", not {}", value.shown())).with_hint_if(hint)
}

fn faulty(column: &Column, purpose: BindFor, fault: &str) -> Problem {
    let takes = match column.kind {
        Kind::Integer => "a whole number",
        Kind::Bit => "a whole number from 0 up",
        Kind::Decimal => "a number of at most 65 digits",
        Kind::Float | Kind::Double => "a number",
        Kind::Text => "a string",
        Kind::Enum => "one of its members",
        Kind::Set => "members of its own, separated by commas",
        Kind::Uuid => "a UUID",
        Kind::Inet4 => "an IPv4 address",
        Kind::Inet6 => "an IPv6 address",
        Kind::Date => "a date such as \"2026-11-20\"",
        Kind::DateTime => "a date and time such as \"2026-11-20 08:36:16\" or RFC 3339",
        Kind::Time => "a time such as \"08:36:16\"",
        Kind::Json => "any JSON value",
        Kind::Bytes => "a base64 string",
        Kind::Geometry => "a GeoJSON geometry of two dimensions",
    };
    Problem::new(
        purpose.code(),
        format!("The field {} ({}) takes {takes}{fault}.", shown(column.name.as_str()), short(&column.type_text)),
    )
    .with_field(column.name.as_str())
}

fn short(type_text: &str) -> Cow<'_, str> {
    const SHOWN_MAX_CHARS: usize = 120;
    match type_text.char_indices().nth(SHOWN_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &type_text[..end]).into(),
        None => type_text.into(),
    }
}

/// Binds a text. `None` if the column's character set lacks a character to store: a session without strict SQL mode
/// would store `?` instead.
fn of_text(column: &Column, text: &str, purpose: BindFor) -> Option<Operand> {
    match (purpose, &column.charset) {
        (BindFor::Store, Charset::Limited(coverage)) if !coverage.holds(text) => None,
        (BindFor::Store, _) => Some(plain(Param::Text(text.into()))),
        (BindFor::Filter | BindFor::Key, _) => Some(literal(column, text)),
    }
}

fn parsed<T: FromStr + ToString>(value: &Value) -> Option<Operand> {
    let parsed: T = string(value)?.trim().parse().ok()?;
    Some(own_text(parsed.to_string()))
}

/// Checks a value for BIT: a BIT(64) would store -1, but return 18446744073709551615.
fn is_not_negative(operand: &Operand) -> bool {
    match &operand.param {
        Param::Int(number) => *number >= 0,
        Param::Text(text) => !text.starts_with('-'),
        _ => true,
    }
}

fn string(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn scalar_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text),
        _ => None,
    }
}

fn json(column: &Column, value: &Value, purpose: BindFor) -> Result<Operand, Problem> {
    let text = value.to_json();
    if json::has_lone_surrogate(&text) {
        let fault = "; this one holds half of a surrogate pair (\\ud800 to \\udfff alone), which is no character";
        return Err(faulty(column, purpose, fault));
    }
    let form = match purpose {
        BindFor::Store => SqlConversion::Plain,
        BindFor::Filter | BindFor::Key => SqlConversion::Json,
    };
    Ok(Operand { param: Param::Text(text.into()), form })
}

/// Decodes either alphabet of Base64, with or without padding. A value to compare with BINARY gets zero bytes appended.
fn bytes(column: &Column, text: &str, purpose: BindFor) -> Option<Operand> {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    if padding > 0 && (padding > 2 || !text.len().is_multiple_of(4)) {
        return None;
    }
    let engine = if bare.contains(['-', '_']) { URL_SAFE_NO_PAD } else { STANDARD_NO_PAD };
    let mut bytes = engine.decode(bare).ok()?;
    if purpose != BindFor::Store {
        let fixed = column
            .type_text
            .strip_prefix("binary(")
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(|length| length.parse().ok());
        bytes.resize(bytes.len().max(fixed.unwrap_or_default()), 0);
    }
    Some(plain(Param::Bytes(bytes)))
}

fn geometry(column: &Column, text: &str, purpose: BindFor) -> Result<Operand, Problem> {
    match geojson::geometry(text) {
        Ok(text) => Ok(Operand { param: Param::Text(text.into()), form: SqlConversion::GeoJson }),
        Err(fault) => Err(faulty(column, purpose, &format!(": {fault}"))),
    }
}

#[cfg(test)]
mod tests;
