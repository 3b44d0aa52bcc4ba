//! Binds numbers: exact for integers and DECIMAL, in the column's own precision for FLOAT and DOUBLE.

use super::{BindFor, Operand, Param, plain};
use crate::query::plan::SqlConversion;
use shared::json::Value;

/// The maximum number of digits that MariaDB allows.
const DECIMAL_MAX_DIGITS: usize = 65;
const DECIMAL_MAX_SCALE: usize = 38;

/// Binds integers, YEAR and BIT; booleans, also as text, are 1 and 0. `None` for an exponent beyond ±400, a fraction to
/// store, a condition's value too long for a DECIMAL, or a key that is not in canonical form.
pub(super) fn integer(value: &Value, purpose: BindFor) -> Option<Operand> {
    if let (BindFor::Key, Value::Text(text)) = (purpose, value) {
        return key(text);
    }
    let text = match value {
        Value::Bool(truth) => return Some(plain(Param::Int(i64::from(*truth)))),
        Value::Number(text) => &**text,
        Value::Text(text) => match text.trim() {
            // A query string has no type for booleans.
            "true" => return Some(plain(Param::Int(1))),
            "false" => return Some(plain(Param::Int(0))),
            text => text,
        },
        _ => return None,
    };
    if let Some(number) = whole(text) {
        return Some(plain(number));
    }
    // 5e3 and 2.00 are whole numbers too; and `views > 2.5` is meaningful.
    let exact = plain_decimal(text)?;
    let digits = match exact.split_once('.') {
        Some((digits, fraction)) if fraction.bytes().all(|byte| byte == b'0') => Some(digits),
        Some(_) => None,
        None => Some(&*exact),
    };
    match (digits.and_then(whole), purpose) {
        (Some(number), _) => Some(plain(number)),
        (None, BindFor::Filter) => decimal_operand(exact, purpose),
        // The number exceeds every integer type: MariaDB refuses it with an error that names the column.
        (None, BindFor::Store) => digits.map(|digits| plain(Param::Text(digits.into()))),
        (None, BindFor::Key) => None,
    }
}

fn whole(text: &str) -> Option<Param> {
    match text.parse::<i64>() {
        Ok(number) => Some(Param::Int(number)),
        Err(_) => text.parse().ok().map(Param::UInt),
    }
}

/// Binds a key in canonical form (no `+`, no leading zeros), so that no record has two ids.
fn key(text: &str) -> Option<Operand> {
    let param = whole(text)?;
    let canonical = match param {
        Param::Int(number) => number.to_string() == text,
        Param::UInt(number) => number.to_string() == text,
        _ => false,
    };
    canonical.then(|| plain(param))
}

/// Binds a DECIMAL; booleans are 1 and 0. `None` for an exponent beyond ±400, or too many digits in a value to compare.
pub(super) fn decimal(value: &Value, purpose: BindFor) -> Option<Operand> {
    let text = match value {
        Value::Bool(truth) => return Some(plain(Param::Int(i64::from(*truth)))),
        Value::Number(text) => &**text,
        Value::Text(text) => text.trim(),
        _ => return None,
    };
    decimal_operand(plain_decimal(text)?, purpose)
}

/// Binds a value to compare by a cast, since MariaDB would otherwise compare doubles. `None` if the value has more
/// digits than a DECIMAL: rounded, it would equal other values.
fn decimal_operand(mut text: String, purpose: BindFor) -> Option<Operand> {
    if purpose == BindFor::Store {
        return Some(plain(Param::Text(text.into())));
    }
    let (whole, mut scale) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, fraction.len()),
        None => (&*text, 0),
    };
    let digits = whole.trim_start_matches('-').trim_start_matches('0').len();
    while scale > DECIMAL_MAX_SCALE && text.ends_with('0') {
        text.pop();
        scale -= 1;
    }
    let fits = scale <= DECIMAL_MAX_SCALE && digits + scale <= DECIMAL_MAX_DIGITS;
    fits.then(|| Operand {
        param: Param::Text(text.into()),
        form: SqlConversion::Decimal { scale: u8::try_from(scale).unwrap_or_default() },
    })
}

/// `1.5e3` → `1500`, `-2e-2` → `-0.02`. `None` for an exponent beyond ±400.
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
    let is_plain = !whole.is_empty() && !mantissa.starts_with('+') && !mantissa.ends_with('.');
    if is_plain && mantissa.len() == text.len() {
        return Some(text.to_owned());
    }
    if exponent == 0 {
        let whole = if whole.is_empty() { "0" } else { whole };
        return Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") });
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
        _ => format!("{sign}0.{}{joined}", "0".repeat(point.unsigned_abs() as usize)),
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

/// Binds in single precision, since a double 0.1 would not equal the column's 0.1.
pub(super) fn float(value: &Value) -> Option<Operand> {
    let number: f32 = number_text(value)?.parse().ok()?;
    // A number beyond FLOAT's range is bound as a double, which MariaDB refuses to store.
    if number.is_finite() { Some(plain(Param::Float(number))) } else { double(value) }
}

pub(super) fn double(value: &Value) -> Option<Operand> {
    let number: f64 = number_text(value)?.parse().ok()?;
    number.is_finite().then(|| plain(Param::Double(number)))
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
            // The exponent's magnitude is not an i32: written out, the number would take 2 GB.
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
    fn what_no_decimal_holds_is_not_compared() {
        let bound = |text: &str| decimal(&Value::Number(text.into()), BindFor::Filter).map(|operand| operand.form);
        let scale = |scale| Some(SqlConversion::Decimal { scale });
        assert_eq!(bound("1e-38"), scale(38));
        assert_eq!(bound("1e-39"), None);
        assert_eq!(bound(&format!("0.5{}", "0".repeat(60))), scale(38));
        assert_eq!(bound(&format!("{}1", "0".repeat(80))), scale(0));
        assert_eq!(bound("1e64"), scale(0));
        assert_eq!(bound("1e65"), None);
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        for text in ["10", "10.00", "1e1", "100e-1", "+10"] {
            let bound = integer(&Value::Text(text.into()), BindFor::Store);
            assert_eq!(bound, Some(plain(Param::Int(10))), "{text}");
        }
        let most = Value::Number("18446744073709551615.0".into());
        assert_eq!(integer(&most, BindFor::Store), Some(plain(Param::UInt(u64::MAX))));
        assert_eq!(integer(&Value::Number("2.5".into()), BindFor::Store), None);
    }
}
