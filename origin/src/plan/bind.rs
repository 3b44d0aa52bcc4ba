//! A caller's value, turned into one of its column's type, or refused by name.
//!
//! Binding by type lets MariaDB use its indexes (no text is compared to a number) and keeps digits
//! exact. Ranges are MariaDB's to check: it knows them, and says so with its own error.

mod geojson;

use super::{Form, Operand, Param};
use crate::catalog::{Charset, Column, Kind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::json::Value;
use shared::operation::filter::Comparison;
use shared::operation::read::select::Aggregate;

/// What a value is bound for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be stored in the column.
    Store,
    /// To be compared with it.
    Filter,
    /// To address a record.
    Key,
}

impl Purpose {
    fn code(self) -> ErrorCode {
        match self {
            Self::Store | Self::Key => ErrorCode::InvalidValue,
            Self::Filter => ErrorCode::InvalidFilter,
        }
    }
}

/// DECIMAL's own limits.
const DECIMAL_MAX_DIGITS: usize = 65;
const DECIMAL_MAX_SCALE: usize = 38;

/// Binds a value to a column.
///
/// # Errors
/// `invalid_value` (`invalid_filter` in a condition), naming the field and what it takes.
pub fn value(column: &Column, value: &Value, purpose: Purpose) -> Result<Operand, Problem> {
    if *value == Value::Null {
        return Ok(plain(Param::Null));
    }
    let bound = match column.kind {
        Kind::Integer | Kind::Bit => integer(value, purpose),
        Kind::Decimal => decimal(value, purpose),
        Kind::Float => float(value),
        Kind::Double => double(value),
        Kind::Text => scalar_text(value).map(|text| match purpose {
            Purpose::Store => plain(Param::Text(text.into())),
            Purpose::Filter | Purpose::Key => literal(column, text),
        }),
        Kind::Date | Kind::Time => temporal(value, |text| text.to_owned()),
        Kind::DateTime => temporal(value, utc),
        Kind::Json => Some(json(value, purpose)),
        Kind::Bytes => bytes(value),
        Kind::Geometry => geometry(value),
    };
    bound.ok_or_else(|| refused(column, value, purpose))
}

/// Binds text for a pattern, whatever the column's type.
///
/// # Errors
/// `invalid_filter` if the value is no text.
pub fn text(column: &Column, value: &Value) -> Result<Operand, Problem> {
    scalar_text(value)
        .map(|text| literal(column, text))
        .ok_or_else(|| refused(column, value, Purpose::Filter))
}

/// Text that is compared with a column.
#[must_use]
pub fn literal(column: &Column, text: &str) -> Operand {
    let form = match column.charset {
        Charset::Limited if !text.is_ascii() => Form::Unicode,
        Charset::Limited | Charset::Unicode => Form::Plain,
    };
    Operand {
        param: Param::Text(text.into()),
        form,
    }
}

/// Refuses comparisons that have no meaning for a column.
///
/// # Errors
/// `invalid_filter`.
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
        format!(
            "The field {} ({}) has no order.",
            shown(column.name.as_str()),
            column.type_text
        ),
    )
    .with_hint("Compare it with = or !=."))
}

/// Refuses aggregates that have no meaning for a column.
///
/// # Errors
/// `invalid_query_option`.
pub fn aggregable(aggregate: Aggregate, column: &Column) -> Result<(), Problem> {
    use Aggregate::{Avg, Count, CountDistinct, Max, Min, Sum};
    let sound = match (aggregate, column.kind) {
        (Count | CountDistinct, _) => true,
        (Min | Max, kind) => !matches!(kind, Kind::Geometry | Kind::Json),
        (Sum | Avg, kind) => matches!(
            kind,
            Kind::Integer | Kind::Bit | Kind::Decimal | Kind::Float | Kind::Double
        ),
    };
    if sound {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::InvalidQueryOption,
        format!(
            "The field {} ({}) has no {}.",
            shown(column.name.as_str()),
            column.type_text,
            match aggregate {
                Sum => "sum",
                Avg => "mean",
                _ => "order",
            }
        ),
    )
    .with_hint("Use COUNT or COUNT_DISTINCT."))
}

fn plain(param: Param) -> Operand {
    Operand {
        param,
        form: Form::Plain,
    }
}

fn refused(column: &Column, value: &Value, purpose: Purpose) -> Problem {
    let takes = match column.kind {
        Kind::Integer | Kind::Bit => "a whole number",
        Kind::Decimal | Kind::Float | Kind::Double => "a number",
        Kind::Text => "a string",
        Kind::Date => "a date such as \"2026-11-20\"",
        Kind::DateTime => "a date and time such as \"2026-11-20 08:36:16\" or RFC 3339",
        Kind::Time => "a time such as \"08:36:16\"",
        Kind::Json => "any JSON value",
        Kind::Bytes => "a base64 string",
        Kind::Geometry => "a GeoJSON geometry",
    };
    let got = match value {
        Value::Text(text) => shown(text),
        other => other.kind().to_owned(),
    };
    Problem::new(
        purpose.code(),
        format!(
            "The field {} ({}) takes {takes}, not {got}.",
            shown(column.name.as_str()),
            column.type_text
        ),
    )
}

fn integer(value: &Value, purpose: Purpose) -> Option<Operand> {
    if let (Purpose::Key, Value::Text(text)) = (purpose, value) {
        return key(text);
    }
    let text = match value {
        Value::Bool(truth) => return Some(plain(Param::Int(i64::from(*truth)))),
        Value::Number(text) => &**text,
        Value::Text(text) => match text.trim() {
            // Query strings have no booleans of their own.
            "true" => return Some(plain(Param::Int(1))),
            "false" => return Some(plain(Param::Int(0))),
            text => text,
        },
        _ => return None,
    };
    if let Ok(number) = text.parse::<i64>() {
        return Some(plain(Param::Int(number)));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(plain(Param::UInt(number)));
    }
    // 5e3 and 2.0 are whole numbers too; and `views > 2.5` has a meaning.
    let exact = plain_decimal(text)?;
    match (
        exact.strip_suffix(".0").unwrap_or(&exact).parse::<i64>(),
        purpose,
    ) {
        (Ok(number), _) => Some(plain(Param::Int(number))),
        (Err(_), Purpose::Filter) => decimal_operand(exact, purpose),
        // Out of every integer's range: MariaDB names the column when it refuses it.
        (Err(_), Purpose::Store) if !exact.contains('.') => Some(plain(Param::Text(exact.into()))),
        (Err(_), _) => None,
    }
}

/// An integer that addresses a record: only as MariaDB itself writes it, so that no record has two ids.
fn key(text: &str) -> Option<Operand> {
    let param = match text.parse::<i64>() {
        Ok(number) => Param::Int(number),
        Err(_) => Param::UInt(text.parse().ok()?),
    };
    let canonical = match param {
        Param::Int(number) => number.to_string() == text,
        Param::UInt(number) => number.to_string() == text,
        _ => false,
    };
    canonical.then(|| plain(param))
}

fn decimal(value: &Value, purpose: Purpose) -> Option<Operand> {
    let text = match value {
        Value::Bool(truth) => return Some(plain(Param::Int(i64::from(*truth)))),
        Value::Number(text) => &**text,
        Value::Text(text) => text.trim(),
        _ => return None,
    };
    decimal_operand(plain_decimal(text)?, purpose)
}

/// Stored, the text itself is exact; compared, it must be cast, or MariaDB compares as doubles.
fn decimal_operand(text: String, purpose: Purpose) -> Option<Operand> {
    let fraction = text
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let whole = text.trim_start_matches('-').len() - if fraction == 0 { 0 } else { fraction + 1 };
    if purpose == Purpose::Store {
        return Some(plain(Param::Text(text.into())));
    }
    let scale = fraction.min(DECIMAL_MAX_SCALE);
    let fits = whole + scale <= DECIMAL_MAX_DIGITS;
    fits.then(|| Operand {
        param: Param::Text(text.into()),
        form: Form::Decimal {
            scale: u8::try_from(scale).unwrap_or_default(),
        },
    })
}

/// A number's text without exponent: `1.5e3` → `1500`, `-2e-2` → `-0.02`. `None` if it is no number,
/// or one of more digits than any column holds.
fn plain_decimal(text: &str) -> Option<String> {
    const EXPONENT_MAX: u32 = 400;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty())
        || !all_digits(whole)
        || !all_digits(fraction)
        || exponent.unsigned_abs() > EXPONENT_MAX
    {
        return None;
    }
    if exponent == 0 {
        let whole = if whole.is_empty() { "0" } else { whole };
        return Some(if fraction.is_empty() {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{fraction}")
        });
    }
    let joined = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).ok()? + exponent;
    Some(match usize::try_from(point) {
        Ok(point) if point >= joined.len() => {
            let shifted = format!("{joined}{}", "0".repeat(point - joined.len()));
            let trimmed = shifted.trim_start_matches('0');
            format!("{sign}{}", if trimmed.is_empty() { "0" } else { trimmed })
        }
        Ok(point) if point > 0 => format!("{sign}{}.{}", &joined[..point], &joined[point..]),
        _ => format!(
            "{sign}0.{}{joined}",
            "0".repeat(point.unsigned_abs() as usize)
        ),
    })
}

fn number_text(value: &Value) -> Option<&str> {
    match value {
        Value::Number(text) => Some(text),
        Value::Text(text) => plain_decimal(text.trim()).map(|_| text.trim()),
        Value::Bool(true) => Some("1"),
        Value::Bool(false) => Some("0"),
        _ => None,
    }
}

/// Bound as FLOAT: compared as a double, 0.1 would not equal the column's 0.1.
fn float(value: &Value) -> Option<Operand> {
    let number: f32 = number_text(value)?.parse().ok()?;
    // Beyond FLOAT's range MariaDB itself must refuse it.
    if number.is_finite() {
        Some(plain(Param::Float(number)))
    } else {
        double(value)
    }
}

fn double(value: &Value) -> Option<Operand> {
    let number: f64 = number_text(value)?.parse().ok()?;
    number.is_finite().then(|| plain(Param::Double(number)))
}

fn scalar_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text),
        _ => None,
    }
}

fn temporal(value: &Value, form: fn(&str) -> String) -> Option<Operand> {
    match value {
        Value::Text(text) => Some(plain(Param::Text(form(text).into()))),
        _ => None,
    }
}

/// RFC 3339 with `Z` or an offset becomes MariaDB's own text at UTC; anything else stays as it is, for
/// MariaDB to judge.
fn utc(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S%.f").to_string(),
        Err(_) => text.to_owned(),
    }
}

fn json(value: &Value, purpose: Purpose) -> Operand {
    let param = Param::Text(value.to_json().into());
    let form = if purpose == Purpose::Store {
        Form::Plain
    } else {
        Form::Json
    };
    Operand { param, form }
}

fn bytes(value: &Value) -> Option<Operand> {
    match value {
        Value::Text(text) => STANDARD
            .decode(text.as_bytes())
            .ok()
            .map(|bytes| plain(Param::Bytes(bytes))),
        _ => None,
    }
}

fn geometry(value: &Value) -> Option<Operand> {
    let Value::Object(text) = value else {
        return None;
    };
    geojson::is_geometry(text).then(|| Operand {
        param: Param::Text(text.clone()),
        form: Form::GeoJson,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_out() {
        for (text, plain) in [
            ("1.5e3", "1500"),
            ("-2e-2", "-0.02"),
            ("12.50", "12.50"),
            ("1e0", "1"),
            ("0e5", "0"),
            (".5", "0.5"),
            ("1.25e1", "12.5"),
        ] {
            assert_eq!(plain_decimal(text).as_deref(), Some(plain), "{text}");
        }
        for text in [
            "",
            "-",
            "x",
            "1e9999",
            "1e2147483647",
            "1e-2147483647",
            // No i32 is its magnitude: writing it out would take 2 GB.
            "1e-2147483648",
            "1e99999999999",
            "1.2.3",
            "NaN",
            "inf",
            "0x10",
        ] {
            assert_eq!(plain_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn rfc_3339_becomes_utc() {
        for (text, utc_text) in [
            ("2026-11-20T08:36:16Z", "2026-11-20 08:36:16"),
            ("2026-11-20T08:36:16.25+02:00", "2026-11-20 06:36:16.25"),
            ("2026-01-01T00:30:00+01:00", "2025-12-31 23:30:00"),
            ("2024-02-28T23:30:00-01:00", "2024-02-29 00:30:00"),
            ("2026-11-20 08:36:16", "2026-11-20 08:36:16"),
            ("2026-11-20", "2026-11-20"),
            ("nonsense", "nonsense"),
            ("0000-00-00 00:00:00", "0000-00-00 00:00:00"),
        ] {
            assert_eq!(utc(text), utc_text);
        }
    }
}
