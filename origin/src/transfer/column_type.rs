//! Infers a column's type from its values: a set of types that is narrowed by each value.

use jiff::civil::Date;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::query::sql::create_table::{ColumnType, VARCHAR_CHARS};

/// A set of the types that all values fit. Only text types fit an empty set ([`Types::TEXT`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const BOOLEAN: Self = Self(1);
    const INTEGER: Self = Self(2);
    const DECIMAL: Self = Self(4);
    const DOUBLE: Self = Self(8);
    const DATE: Self = Self(16);
    const DATE_TIME: Self = Self(32);
    const TIME: Self = Self(64);
    const JSON: Self = Self(128);
    const TEXT: Self = Self(0);
    const ALL: Self = Self(255);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// MariaDB's maximum numbers of digits, and of digits after the decimal point.
const DECIMAL_MAX_DIGITS: usize = 65;
const DECIMAL_MAX_SCALE: usize = 38;

/// Additional digits of a `DECIMAL` that is inferred from a sample, so that later rows fit.
const SPARE_DIGITS: usize = 20;
const SPARE_SCALE: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValuesRead {
    Whole,
    Sample,
}

#[derive(Clone, Debug)]
pub(super) struct Values {
    types: Types,
    count: u64,
    nulls: u64,
    integers: (i128, i128),
    whole_digits: usize,
    scale: usize,
    fraction: usize,
    chars: usize,
    bytes: usize,
    /// The first value that only a text column can hold, cut to 40 characters.
    text: Option<String>,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            types: Types::ALL,
            count: 0,
            nulls: 0,
            integers: (0, 0),
            whole_digits: 0,
            scale: 0,
            fraction: 0,
            chars: 0,
            bytes: 0,
            text: None,
        }
    }
}

impl Values {
    pub(super) fn add_null(&mut self) {
        self.nulls += 1;
    }

    pub(super) fn add_text(&mut self, text: &str) {
        let types = self.types_of(text);
        self.learn_from_text(types, text);
        self.add(types, text);
    }

    /// Adds a JSON value. A string may be a date or a time, but never a number, since its writer put it in quotes.
    pub(super) fn add_json(&mut self, value: &RawValue) {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'n') => self.add_null(),
            Some(b'{' | b'[') => self.add(Types::JSON, text),
            Some(b'"') => {
                let Ok(Value::String(text)) = serde_json::from_str(text) else {
                    return self.add(Types::TEXT, text);
                };
                let types = self.types_of(&text);
                self.learn_from_text(types, &text);
                let moment = Types::DATE.or(Types::DATE_TIME).or(Types::TIME);
                self.add(Types(types.0 & moment.0), &text);
            }
            _ => self.add_text(text),
        }
    }

    fn add(&mut self, types: Types, text: &str) {
        self.count += 1;
        self.types = Types(self.types.0 & types.0);
        self.bytes = self.bytes.max(text.len());
        if self.chars < text.len() {
            self.chars = self.chars.max(text.chars().count());
        }
    }

    fn learn_from_text(&mut self, types: Types, text: &str) {
        if types == Types::TEXT && self.text.is_none() {
            self.text = Some(text.chars().take(40).collect());
        }
    }

    fn types_of(&mut self, text: &str) -> Types {
        match text.as_bytes().first() {
            Some(b't' | b'f') if text == "true" || text == "false" => return Types::BOOLEAN,
            Some(b'{' | b'[') if serde_json::from_str::<&RawValue>(text).is_ok() => return Types::JSON,
            Some(b'-' | b'0'..=b'9') => {}
            _ => return Types::TEXT,
        }
        if let Some(types) = self.number(text) {
            return types;
        }
        if let Some(fraction) = time_fraction(text) {
            self.fraction = self.fraction.max(fraction);
            return Types::TIME;
        }
        let (date, rest) = text.split_at_checked(10).unwrap_or((text, ""));
        if !is_date(date) {
            return Types::TEXT;
        }
        if rest.is_empty() {
            return Types::DATE.or(Types::DATE_TIME);
        }
        let Some(time) = rest.strip_prefix(['T', ' ']) else {
            return Types::TEXT;
        };
        let time = match time.find(['Z', '+', '-']) {
            Some(at) if is_offset(&time[at..]) => &time[..at],
            Some(_) => return Types::TEXT,
            None => time,
        };
        match time_fraction(time) {
            Some(fraction) if time.len() >= 8 && time.as_bytes()[2] == b':' => {
                self.fraction = self.fraction.max(fraction);
                Types::DATE_TIME
            }
            _ => Types::TEXT,
        }
    }

    /// Returns the types that fit a number; `None` for leading zeros, too many digits, too large an exponent, and `-0`.
    fn number(&mut self, text: &str) -> Option<Types> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (digits, None),
        };
        let (whole, scale) = mantissa.split_once('.').map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole)
            || (whole.len() > 1 && whole.starts_with('0'))
            || scale.is_some_and(|rest| !are_digits(rest))
        {
            return None;
        }
        if let Some(exponent) = exponent {
            let is_finite = text.parse::<f64>().is_ok_and(f64::is_finite);
            return (are_digits(exponent.trim_start_matches(['+', '-'])) && is_finite).then_some(Types::DOUBLE);
        }
        let scale_len = scale.map_or(0, str::len);
        if whole.len() + scale_len > DECIMAL_MAX_DIGITS || scale_len > DECIMAL_MAX_SCALE {
            return None;
        }
        self.whole_digits = self.whole_digits.max(whole.len());
        self.scale = self.scale.max(scale_len);
        let real = Types::DECIMAL.or(Types::DOUBLE);
        if scale.is_some() {
            return Some(real);
        }
        // MariaDB stores no sign of a zero, so `-0` fits no number type.
        let number: i128 = if text == "-0" { return None } else { text.parse().unwrap_or(i128::MAX) };
        self.integers = (self.integers.0.min(number), self.integers.1.max(number));
        Some(if number > u64::MAX.into() || number < i64::MIN.into() { real } else { Types::INTEGER.or(real) })
    }

    pub(super) fn is_whole_key(&self) -> bool {
        self.nulls == 0 && self.count > 0 && self.types.has(Types::INTEGER)
    }

    /// Returns the inferred type, with room for larger values after a sample. A column without values is a text column.
    pub(super) fn column_type(&self, extent: ValuesRead) -> ColumnType {
        let is_whole = extent == ValuesRead::Whole;
        let (least, most) = self.integers;
        let fraction = if is_whole { self.fraction } else { 6 };
        let (before, behind) = match is_whole {
            true => (self.whole_digits, self.scale),
            false => (self.whole_digits.max(SPARE_DIGITS), self.scale.max(SPARE_SCALE)),
        };
        let types = self.types;
        if self.count == 0 || types == Types::TEXT {
            return self.text_type(extent);
        }
        if types.has(Types::BOOLEAN) {
            ColumnType::Boolean
        } else if types.has(Types::INTEGER) && is_whole && least >= i32::MIN.into() && most <= i32::MAX.into() {
            ColumnType::Int
        } else if types.has(Types::INTEGER) && most <= i64::MAX.into() {
            ColumnType::BigInt
        } else if types.has(Types::INTEGER) && least >= 0 {
            ColumnType::BigIntUnsigned
        } else if types.has(Types::DECIMAL) && before + behind <= DECIMAL_MAX_DIGITS {
            ColumnType::Decimal { digits: before + behind, scale: behind }
        } else if types.has(Types::DOUBLE) && !types.has(Types::DECIMAL) {
            ColumnType::Double
        } else if types.has(Types::DATE) {
            ColumnType::Date
        } else if types.has(Types::DATE_TIME) {
            ColumnType::DateTime { fraction }
        } else if types.has(Types::TIME) {
            ColumnType::Time { fraction }
        } else if types.has(Types::JSON) {
            ColumnType::Json
        } else {
            self.text_type(extent)
        }
    }

    fn text_type(&self, extent: ValuesRead) -> ColumnType {
        match self.bytes {
            _ if extent == ValuesRead::Sample => ColumnType::LongText,
            _ if self.chars <= VARCHAR_CHARS => ColumnType::VarChar,
            0..=0xffff => ColumnType::Text,
            0x1_0000..=0xff_ffff => ColumnType::MediumText,
            _ => ColumnType::LongText,
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        let types = self.types;
        match () {
            () if self.count == 0 => "no values",
            () if types.has(Types::BOOLEAN) => "true and false",
            () if types.has(Types::INTEGER) => "whole numbers",
            () if types.has(Types::DECIMAL.or(Types::DOUBLE)) => "numbers",
            () if types.has(Types::DATE) => "dates",
            () if types.has(Types::DATE_TIME) => "dates and times",
            () if types.has(Types::TIME) => "times",
            () if types.has(Types::JSON) => "JSON",
            () => "text",
        }
    }

    /// Returns a value, cut to 40 characters, that a number, date or time column can't store.
    pub(super) fn misfit(&self, sql_type: &str) -> Option<&str> {
        const NUMBERS: [&str; 9] =
            ["int", "tinyint", "smallint", "mediumint", "bigint", "decimal", "float", "double", "year"];
        const MOMENTS: [&str; 4] = ["date", "datetime", "timestamp", "time"];
        let word = sql_type.split(['(', ' ']).next().unwrap_or_default();
        let text = self.text.as_deref()?;
        // MariaDB takes dates with zeros for unknown parts, so any text that begins with a digit may be a date.
        let begins_as_date = text.starts_with(|c: char| c.is_ascii_digit());
        (NUMBERS.contains(&word) || (MOMENTS.contains(&word) && !begins_as_date)).then_some(text)
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-' && text.parse::<Date>().is_ok()
}

/// Parses `[-]HH[H]:MM:SS[.f]` in the range of TIME, and returns the number of digits after the point.
fn time_fraction(text: &str) -> Option<usize> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (hours, rest) = text.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let (seconds, fraction) = rest.split_once('.').map_or((rest, ""), |(seconds, fraction)| (seconds, fraction));
    let number = |text: &str, lengths: std::ops::RangeInclusive<usize>, most: u32| {
        let are_digits = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        are_digits && text.parse::<u32>().is_ok_and(|number| number <= most)
    };
    let is_time = number(hours, 2..=3, 838) && number(minutes, 2..=2, 59) && number(seconds, 2..=2, 59);
    let is_fraction = rest == seconds || number(fraction, 1..=6, 999_999);
    (is_time && is_fraction).then_some(fraction.len())
}

fn is_offset(text: &str) -> bool {
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.strip_prefix(['+', '-']) {
        Some(rest) => rest.split_once(':').is_some_and(|(hours, minutes)| digits(hours) && digits(minutes)),
        None => text == "Z",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_holds_all_values_of_its_column() {
        for (cells, expected) in [
            (&["1", "-2147483648"][..], "INT"),
            (&["1", "2147483648"], "BIGINT"),
            (&["18446744073709551615", "0"], "BIGINT UNSIGNED"),
            (&["18446744073709551615", "-1"], "DECIMAL(20,0)"),
            (&["18446744073709551616"], "DECIMAL(20,0)"),
            (&["1", "12.50"], "DECIMAL(4,2)"),
            (&["0.5", "1e3"], "DOUBLE"),
            (&["1e999"], "VARCHAR(255)"),
            (&["007"], "VARCHAR(255)"),
            (&["+1"], "VARCHAR(255)"),
            (&["-0"], "VARCHAR(255)"),
            (&["1", "x"], "VARCHAR(255)"),
            (&["true", "false"], "BOOLEAN"),
            (&["true", "1"], "VARCHAR(255)"),
            (&["2024-02-29", "2024-01-01"], "DATE"),
            (&["2024-02-30"], "VARCHAR(255)"),
            (&["2024-02-29", "2024-01-01 08:30:00.25"], "DATETIME(2)"),
            (&["2024-01-01T08:30:00+02:00", "2024-01-01T08:30:00Z"], "DATETIME"),
            (&["2024-01-01 08:30:00.1234567"], "VARCHAR(255)"),
            (&["2024-01-01 108:30:00"], "VARCHAR(255)"),
            (&["-27:30:00.5", "838:00:00"], "TIME(1)"),
            (&["08:30"], "VARCHAR(255)"),
            (&["{\"a\":1}", "[]"], "JSON"),
            (&["{a}"], "VARCHAR(255)"),
            (&[], "VARCHAR(255)"),
            (&[&"é".repeat(255)], "VARCHAR(255)"),
            (&[&"é".repeat(256)], "TEXT"),
            (&[&"x".repeat(65_536)], "MEDIUMTEXT"),
        ] {
            let mut values = Values::default();
            cells.iter().for_each(|cell| values.add_text(cell));
            assert_eq!(values.column_type(ValuesRead::Whole).to_string(), expected, "{:.60}", format!("{cells:?}"));
        }
    }

    #[test]
    fn a_type_from_some_rows_leaves_room() {
        for (cell, expected) in
            [("1", "BIGINT"), ("1.5", "DECIMAL(30,10)"), ("2024-01-01 08:30:00", "DATETIME(6)"), ("x", "LONGTEXT")]
        {
            let mut values = Values::default();
            values.add_text(cell);
            assert_eq!(values.column_type(ValuesRead::Sample).to_string(), expected);
        }
    }

    #[test]
    fn strings_of_json_are_texts_or_dates() {
        for (json, expected) in [
            ("\"12\"", "VARCHAR(255)"),
            ("12", "INT"),
            ("\"2024-01-01\"", "DATE"),
            ("true", "BOOLEAN"),
            ("null", "VARCHAR(255)"),
            ("{\"a\": [1]}", "JSON"),
        ] {
            let mut values = Values::default();
            values.add_json(serde_json::from_str(json).unwrap());
            assert_eq!(values.column_type(ValuesRead::Whole).to_string(), expected, "{json}");
        }
    }
}
