//! Writes the driver's values as JSON text without line breaks, as NDJSON needs it.

use super::geojson;
use crate::query::catalog::Kind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::{Column, Value};
use shared::envelope::write_string;

/// The largest integer that every JSON reader holds exactly: 2^53 − 1 (RFC 8259, section 6).
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// The collation `binary`, which marks a column as bytes instead of text.
const BINARY_CHARSET: u16 = 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoder {
    /// Written as a string if the absolute value exceeds 2^53 − 1.
    Integer,
    Bit,
    /// An expression of type BIT, such as MAX of a BIT column: decimal digits, or else big-endian bits.
    BitExpression,
    /// The value has this width in bits and comes from a window function or a UNION: big-endian bits if it fits the
    /// width, or else decimal digits.
    CombinedBit(u8),
    Text,
    /// Written as the shortest number that reads back equal.
    Float,
    Date,
    DateTime(u8),
    /// `[-]HH:MM:SS[.f]`, with two or three digits of hours and this many fractional digits.
    Time(u8),
    /// Written with spaces for line breaks; as a string if the text is not valid JSON.
    Json,
    Bytes,
    Geometry,
}

impl Decoder {
    pub(super) fn new(kind: Option<Kind>, column: &Column) -> Self {
        match kind {
            Some(Kind::Json) => Self::Json,
            Some(Kind::Geometry) => Self::Geometry,
            _ => Self::of(column),
        }
    }

    fn of(column: &Column) -> Self {
        use ColumnType as T;
        let fraction = column.decimals().min(6);
        match column.column_type() {
            T::MYSQL_TYPE_TINY
            | T::MYSQL_TYPE_SHORT
            | T::MYSQL_TYPE_INT24
            | T::MYSQL_TYPE_LONG
            | T::MYSQL_TYPE_LONGLONG
            | T::MYSQL_TYPE_YEAR => Self::Integer,
            // MariaDB sets the flag for expressions and not for columns, including those of temporary tables.
            T::MYSQL_TYPE_BIT if column.flags().contains(ColumnFlags::BINARY_FLAG) => Self::BitExpression,
            T::MYSQL_TYPE_BIT => Self::Bit,
            T::MYSQL_TYPE_FLOAT | T::MYSQL_TYPE_DOUBLE => Self::Float,
            T::MYSQL_TYPE_DATE | T::MYSQL_TYPE_NEWDATE => Self::Date,
            T::MYSQL_TYPE_DATETIME | T::MYSQL_TYPE_TIMESTAMP | T::MYSQL_TYPE_DATETIME2 | T::MYSQL_TYPE_TIMESTAMP2 => {
                Self::DateTime(fraction)
            }
            T::MYSQL_TYPE_TIME | T::MYSQL_TYPE_TIME2 => Self::Time(fraction),
            T::MYSQL_TYPE_GEOMETRY => Self::Geometry,
            T::MYSQL_TYPE_DECIMAL | T::MYSQL_TYPE_NEWDECIMAL => Self::Text,
            _ if column.character_set() == BINARY_CHARSET => Self::Bytes,
            _ => Self::Text,
        }
    }

    pub(super) fn combined(self, column: &Column) -> Self {
        match self {
            Self::BitExpression => Self::CombinedBit(u8::try_from(column.column_length()).unwrap_or(64)),
            other => other,
        }
    }

    fn bit(self, bytes: &[u8]) -> u64 {
        let bits = bytes.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        let are_bits = match self {
            Self::BitExpression => false,
            Self::CombinedBit(width) => {
                bytes.len() == usize::from(width).div_ceil(8) && bits.checked_shr(width.into()).unwrap_or(0) == 0
            }
            _ => true,
        };
        match decimal(bytes) {
            Some(number) if !are_bits => number,
            _ => bits,
        }
    }

    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::NULL => out.extend_from_slice(b"null"),
            Value::Bytes(bytes) => self.write_bytes(bytes, out),
            Value::Int(number) => integer(*number < 0, number.unsigned_abs(), out),
            Value::UInt(number) => integer(false, *number, out),
            Value::Float(number) => {
                out.extend_from_slice(zmij::Buffer::new().format(*number).as_bytes());
            }
            Value::Double(number) => {
                out.extend_from_slice(zmij::Buffer::new().format(*number).as_bytes());
            }
            Value::Date(year, month, day, hour, minute, second, micros) => {
                out.push(b'"');
                digits(u32::from(*year), 4, out);
                out.push(b'-');
                digits(u32::from(*month), 2, out);
                out.push(b'-');
                digits(u32::from(*day), 2, out);
                if let Self::DateTime(fraction) = self {
                    out.push(b' ');
                    clock(u32::from(*hour), *minute, *second, *micros, fraction, out);
                }
                out.push(b'"');
            }
            Value::Time(negative, days, hours, minute, second, micros) => {
                out.push(b'"');
                if *negative {
                    out.push(b'-');
                }
                let fraction = if let Self::Time(fraction) = self { fraction } else { 0 };
                clock(days * 24 + u32::from(*hours), *minute, *second, *micros, fraction, out);
                out.push(b'"');
            }
        }
    }

    fn write_bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Bytes => {
                out.push(b'"');
                let start = out.len();
                out.resize(start + bytes.len().div_ceil(3) * 4, 0);
                // The buffer has the exact size, so this can't fail.
                let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or_default();
                out.truncate(start + written);
                out.push(b'"');
            }
            Self::Bit | Self::BitExpression | Self::CombinedBit(_) => integer(false, self.bit(bytes), out),
            Self::Geometry => geojson::write(bytes, out),
            // Statements that can't be prepared return numbers as text.
            Self::Integer | Self::Float => number_text(bytes, out),
            // The column's JSON check can be switched off, so its text may be invalid.
            Self::Json if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() => {
                let start = out.len();
                out.extend_from_slice(bytes);
                // Whitespace between tokens, removed so that a row stays on one line.
                for byte in &mut out[start..] {
                    if matches!(byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
            }
            _ => match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => write_string(out, text),
                Err(_) => write_string(out, &String::from_utf8_lossy(bytes)),
            },
        }
    }
}

pub(super) fn bit(column: &Column, bytes: &[u8]) -> Option<u64> {
    (column.column_type() == ColumnType::MYSQL_TYPE_BIT).then(|| Decoder::of(column).bit(bytes))
}

fn decimal(bytes: &[u8]) -> Option<u64> {
    let is_plain = bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || bytes.first() != Some(&b'0'));
    std::str::from_utf8(bytes).ok().filter(|_| is_plain)?.parse().ok()
}

fn number_text(bytes: &[u8], out: &mut Vec<u8>) {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(number), ..) => integer(number < 0, number.unsigned_abs(), out),
        (_, Ok(number), _) => integer(false, number, out),
        (.., Ok(number)) if number.is_finite() => {
            out.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
        }
        _ => write_string(out, text),
    }
}

fn integer(negative: bool, magnitude: u64, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(magnitude).as_bytes();
    let exact = magnitude <= SAFE_INTEGER_MAX;
    if !exact {
        out.push(b'"');
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(text);
    if !exact {
        out.push(b'"');
    }
}

fn clock(hours: u32, minute: u8, second: u8, micros: u32, fraction: u8, out: &mut Vec<u8>) {
    digits(hours, 2, out);
    out.push(b':');
    digits(u32::from(minute), 2, out);
    out.push(b':');
    digits(u32::from(second), 2, out);
    if fraction > 0 {
        out.push(b'.');
        digits(micros / 10u32.pow(6 - u32::from(fraction)), usize::from(fraction), out);
    }
}

fn digits(number: u32, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number).as_bytes();
    out.resize(out.len() + width.saturating_sub(text.len()), b'0');
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(decoder: Decoder, value: &Value) -> String {
        let mut out = Vec::new();
        decoder.write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_beyond_two_to_the_53_are_strings() {
        assert_eq!(json(Decoder::Integer, &Value::Int(9_007_199_254_740_991)), "9007199254740991");
        assert_eq!(json(Decoder::Integer, &Value::Int(9_007_199_254_740_992)), "\"9007199254740992\"");
        assert_eq!(json(Decoder::Integer, &Value::Int(i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(json(Decoder::Bit, &Value::Bytes(vec![1, 0])), "256");
    }

    #[test]
    fn bits_and_digits_of_a_bit_are_told_apart() {
        use Decoder::{Bit, BitExpression, CombinedBit};
        for (decoder, bytes, number) in [
            (Bit, &b"\x31\x32"[..], "12594"),
            (BitExpression, b"1022", "1022"),
            (BitExpression, b"0", "0"),
            (BitExpression, b"5", "5"),
            (BitExpression, b"18446744073709551615", "\"18446744073709551615\""),
            (BitExpression, b"\x03\xfe", "1022"),
            (BitExpression, b"05", "12341"),
            (BitExpression, &[0xff; 8], "\"18446744073709551615\""),
            (CombinedBit(8), b"5", "53"),
            (CombinedBit(8), b"53", "53"),
            (CombinedBit(1), b"1", "1"),
            (CombinedBit(1), b"\x01", "1"),
            (CombinedBit(10), b"12", "12"),
            (CombinedBit(64), &[0xff; 8], "\"18446744073709551615\""),
        ] {
            assert_eq!(json(decoder, &Value::Bytes(bytes.to_vec())), number, "{decoder:?} {bytes:?}");
        }
    }

    #[test]
    fn floats_are_the_shortest_that_read_back_equal() {
        assert_eq!(json(Decoder::Float, &Value::Float(0.1)), "0.1");
        assert_eq!(json(Decoder::Float, &Value::Double(1e300)).parse::<f64>().unwrap(), 1e300);
    }

    #[test]
    fn times_are_mariadbs_own_text() {
        assert_eq!(
            json(Decoder::DateTime(3), &Value::Date(2026, 1, 2, 3, 4, 5, 67_000)),
            "\"2026-01-02 03:04:05.067\""
        );
        assert_eq!(json(Decoder::Date, &Value::Date(0, 0, 0, 0, 0, 0, 0)), "\"0000-00-00\"");
        assert_eq!(json(Decoder::Time(0), &Value::Time(true, 34, 22, 59, 59, 0)), "\"-838:59:59\"");
    }

    #[test]
    fn what_is_no_json_is_never_written_as_json() {
        assert_eq!(json(Decoder::Json, &Value::Bytes(b"{\"a\": 1}".to_vec())), "{\"a\": 1}");
        assert_eq!(json(Decoder::Json, &Value::Bytes(b"{\r\n\"a\": \"\\n\"}\n".to_vec())), "{  \"a\": \"\\n\"} ");
        assert_eq!(json(Decoder::Json, &Value::Bytes(b"{broken".to_vec())), "\"{broken\"");
    }
}
