//! A value of a column: how it is compared, and how it is written in SQL and JSON. Knows no table and no request.

use super::json::Json;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    BigInt,
    Unsigned,
    /// `DECIMAL(10,2)`, or an aggregate of it, with this many decimals.
    Decimal(u32),
    Double,
    Float,
    Exact,
    Long,
    Loose,
    /// An ENUM: compared as text, but sorted by the order of its members.
    Enum,
    Date,
    DateTime,
    Micro,
    /// A `TIME`: a time of day, or a span that may be negative or longer than a day.
    Time,
    Address,
    Bit,
    Year,
}

/// The members of every ENUM, in their order.
const MEMBERS: [&str; 4] = ["low", "high", "mid", "a"];

/// Values of `TIME` columns in ascending order, which is not the order of their texts.
const TIMES: [&str; 6] = ["-100:30:00", "-00:00:01", "00:00:00", "09:59:59", "23:00:00", "100:00:00"];
const ADDRESSES: [&str; 5] = ["::", "::1", "::a00", "2001:db8::1", "ff02::1"];

impl Kind {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Integer => "INT",
            Self::BigInt => "BIGINT",
            Self::Unsigned => "BIGINT UNSIGNED",
            Self::Decimal(_) => "DECIMAL(10,2)",
            Self::Double => "DOUBLE",
            Self::Float => "FLOAT",
            Self::Long => "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Self::Enum => "ENUM('low', 'high', 'mid', 'a')",
            Self::Micro => "DATETIME(6)",
            Self::Time => "TIME",
            Self::Address => "INET6",
            Self::Bit => "BIT(5)",
            Self::Year => "YEAR",
            Self::Exact => "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Self::Loose => "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            Self::Date => "DATE",
            Self::DateTime => "DATETIME",
        }
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Exact | Self::Long | Self::Loose)
    }

    /// Returns whether sums of the kind are exact; MariaDB adds FLOAT as DOUBLE.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Unsigned | Self::BigInt | Self::Decimal(_) | Self::Double)
    }
}

/// A value of a column, or NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i128),
    Decimal(i128, u32),
    Double(f64),
    Text(String),
    /// `2026-01-31` or `2026-01-31 10:20:30`: the texts sort as the times do.
    Time(String),
}

/// Returns all values of a kind that has a fixed list of values, in sort order; `None` for other kinds.
fn listed(kind: Kind) -> Option<&'static [&'static str]> {
    match kind {
        Kind::Enum => Some(&MEMBERS),
        Kind::Time => Some(&TIMES),
        Kind::Address => Some(&ADDRESSES),
        _ => None,
    }
}

/// The largest integer that every JSON parser reads exactly.
const JSON_INTEGER_MAX: i128 = (1 << 53) - 1;

impl Cell {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Compares two values of a column; `None` if either is NULL.
    pub(super) fn compare(&self, other: &Self, kind: Kind) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Null, _) | (_, Self::Null) => return None,
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Integer(a), Self::Decimal(b, scale)) => raised(*a, *scale).cmp(b),
            (Self::Decimal(a, scale), Self::Decimal(b, other)) => {
                let most = *scale.max(other);
                raised(*a, most - scale).cmp(&raised(*b, most - other))
            }
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b).expect("numbers"),
            (a, b) if listed(kind).is_some() && kind != Kind::Enum => a.ordinal(kind).cmp(&b.ordinal(kind)),
            (Self::Text(a), Self::Text(b)) if kind == Kind::Loose => folded(a).cmp(&folded(b)),
            // UTF-8 sorts by code point.
            (Self::Text(a), Self::Text(b)) | (Self::Time(a), Self::Time(b)) => a.cmp(b),
            _ => panic!("{self:?} and {other:?} are of different kinds"),
        })
    }

    pub(super) fn sort(&self, other: &Self, kind: Kind) -> Ordering {
        if kind == Kind::Enum {
            return self.ordinal(kind).cmp(&other.ordinal(kind));
        }
        self.compare(other, kind).unwrap_or_else(|| {
            let (a, b) = (*self != Self::Null, *other != Self::Null);
            a.cmp(&b)
        })
    }

    fn ordinal(&self, kind: Kind) -> Option<usize> {
        match self {
            Self::Text(text) => listed(kind)?.iter().position(|member| member == text),
            _ => None,
        }
    }

    /// Returns the value as an SQL literal.
    pub(super) fn sql(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Decimal(digits, scale) => decimal(*digits, *scale),
            Self::Double(number) => format!("{number:e}"),
            Self::Text(text) | Self::Time(text) => {
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
        }
    }

    /// Returns the value as an answer contains it.
    pub(super) fn json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Integer(number) if number.abs() <= JSON_INTEGER_MAX => Json::Number(number.to_string()),
            Self::Integer(number) => Json::Text(number.to_string()),
            Self::Decimal(digits, scale) => Json::Text(decimal(*digits, *scale)),
            Self::Double(number) => Json::double(*number),
            Self::Text(text) | Self::Time(text) => Json::Text(text.clone()),
        }
    }

    /// Returns one value that stands for all values that a column of this kind treats as equal.
    pub(super) fn representative(&self, kind: Kind) -> Self {
        match self {
            Self::Text(text) if kind == Kind::Loose => Self::Text(folded(text)),
            other => other.clone(),
        }
    }
}

/// Folds case as `utf8mb4_general_ci` does, which affects the order of characters between `Z` and `a`.
pub(super) fn folded(text: &str) -> String {
    text.to_ascii_uppercase()
}

fn raised(number: i128, by: u32) -> i128 {
    number * 10_i128.pow(by)
}

/// Formats a decimal: `-150` with two decimals is `-1.50`.
pub(super) fn decimal(digits: i128, scale: u32) -> String {
    if scale == 0 {
        return digits.to_string();
    }
    let unit = 10_u128.pow(scale);
    let (whole, part) = (digits.unsigned_abs() / unit, digits.unsigned_abs() % unit);
    let sign = if digits < 0 { "-" } else { "" };
    let width = usize::try_from(scale).expect("a small number");
    format!("{sign}{whole}.{part:0width$}")
}

/// Returns values for columns and requests: few, so that they match, and near every boundary.
pub(super) fn pool(kind: Kind) -> Vec<Cell> {
    const BIG: [i128; 11] = [
        -9_223_372_036_854_775_808,
        -9_007_199_254_740_993,
        -9_007_199_254_740_991,
        -1,
        0,
        1,
        2,
        9_007_199_254_740_991,
        9_007_199_254_740_992,
        9_007_199_254_740_993,
        9_223_372_036_854_775_807,
    ];
    const EXACT: [&str; 21] = [
        "", "a", "b", "B", "ab", "aB", "ba", "a%b", "a_b", "a\\b", "é", "e", "🦭", "'q'", "10", "9", "a,b", "%", "_",
        "\\", " a",
    ];
    const LOOSE: [&str; 12] = ["", "a", "A", "b", "B", "ab", "Ab", "a_b", "a%b", "Zed", "zed", "10"];
    const DATES: [&str; 6] = ["2024-02-29", "2026-01-01", "2026-01-31", "2026-02-01", "2026-12-31", "1970-01-01"];
    const MOMENTS: [&str; 6] = [
        "2026-01-01 00:00:00",
        "2026-01-01 00:00:01",
        "2026-01-31 23:59:59",
        "2026-02-01 00:00:00",
        "2026-02-01 12:30:00",
        "1999-12-31 23:59:59",
    ];
    const MICROS: [&str; 4] = [
        "2026-01-01 00:00:00.000000",
        "2026-01-01 00:00:00.000001",
        "2026-01-01 00:00:00.500000",
        "2026-02-01 12:30:00.999999",
    ];
    let texts = |of: &[&str]| of.iter().map(|text| Cell::text(text)).collect();
    let times = |of: &[&str]| of.iter().map(|text| Cell::Time((*text).to_owned())).collect();
    match kind {
        Kind::Integer => (-3..=5).map(Cell::Integer).collect(),
        Kind::BigInt => BIG.into_iter().map(Cell::Integer).collect(),
        Kind::Decimal(scale) => [-150, -5, 0, 5, 100, 150, 225, 9_999_999_999]
            .into_iter()
            .map(|digits| Cell::Decimal(digits, scale))
            .collect(),
        // The sum of any of these values is exact in any order.
        Kind::Double => {
            [-1.5, 0.0, 0.25, 0.5, 1.5, 2.0, 1_048_576.0, 1.0 / 1024.0].into_iter().map(Cell::Double).collect()
        }
        // Single precision represents half of these values only approximately.
        Kind::Float => [0.1, -2.7, 1.5, 16_777_216.0, 3.4e-5, 0.0].into_iter().map(Cell::Double).collect(),
        Kind::Unsigned => {
            [0, 1, 2, 1 << 53, (1 << 53) + 1, 1 << 63, (1 << 64) - 1].into_iter().map(Cell::Integer).collect()
        }
        Kind::Enum => texts(&MEMBERS),
        Kind::Time => texts(&TIMES),
        Kind::Address => texts(&ADDRESSES),
        Kind::Bit => [0, 1, 7, 31].into_iter().map(Cell::Integer).collect(),
        Kind::Year => [1970, 1999, 2026].into_iter().map(Cell::Integer).collect(),
        Kind::Micro => times(&MICROS),
        Kind::Exact | Kind::Long => texts(&EXACT),
        Kind::Loose => texts(&LOOSE),
        Kind::Date => times(&DATES),
        Kind::DateTime => times(&MOMENTS),
    }
}
