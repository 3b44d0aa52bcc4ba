//! A value of a column: how it compares, how it reads in SQL and how in JSON. Knows no table and no request.

use super::json::Json;
use std::cmp::Ordering;

/// The types of column that the test deals in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    BigInt,
    Unsigned,
    /// `DECIMAL(10,2)`, or what an aggregate makes of it, with so many digits behind the point.
    Decimal(u32),
    Double,
    Float,
    /// Compared by code point.
    Exact,
    /// The same, of any length.
    Long,
    /// ASCII, compared in any case.
    Loose,
    /// Compared as text, but sorted as its members are listed.
    Enum,
    Date,
    DateTime,
    /// With six digits of a second.
    Micro,
    /// A time of day or a span, before zero and beyond a day too.
    Time,
    Address,
    Bit,
    Year,
}

/// The members of every ENUM, in their order.
const MEMBERS: [&str; 4] = ["low", "high", "mid", "a"];

/// Times and addresses, whose texts do not sort as they do.
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

    /// Whether sums of it are exact: single precision is added up in double.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Unsigned | Self::BigInt | Self::Decimal(_) | Self::Double)
    }
}

/// A value, or none.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i128),
    /// A whole number, and how many of its digits stand behind the point.
    Decimal(i128, u32),
    Double(f64),
    /// Of both collations.
    Text(String),
    /// `2026-01-31` or `2026-01-31 10:20:30`: their texts sort as they do.
    Time(String),
}

/// The values of a kind that sorts as they are listed.
fn listed(kind: Kind) -> Option<&'static [&'static str]> {
    match kind {
        Kind::Enum => Some(&MEMBERS),
        Kind::Time => Some(&TIMES),
        Kind::Address => Some(&ADDRESSES),
        _ => None,
    }
}

/// The largest number that every JSON reader takes exactly.
const JSON_INTEGER_MAX: i128 = (1 << 53) - 1;

impl Cell {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// How two values of a column compare; with NULL it is unknown.
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
            // UTF-8 sorts as its code points do.
            (Self::Text(a), Self::Text(b)) | (Self::Time(a), Self::Time(b)) => a.cmp(b),
            _ => panic!("{self:?} and {other:?} are of different kinds"),
        })
    }

    /// How two values are sorted: NULL comes first.
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

    /// As a literal of SQL.
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

    /// As an answer has it.
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

    /// One text for all values that a column of this kind takes for equal.
    pub(super) fn representative(&self, kind: Kind) -> Self {
        match self {
            Self::Text(text) if kind == Kind::Loose => Self::Text(folded(text)),
            other => other.clone(),
        }
    }
}

/// The case that `utf8mb4_general_ci` compares in: it matters for what stands between `Z` and `a`.
pub(super) fn folded(text: &str) -> String {
    text.to_ascii_uppercase()
}

fn raised(number: i128, by: u32) -> i128 {
    number * 10_i128.pow(by)
}

/// `-150` with two digits behind the point is `-1.50`.
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

/// Values that columns hold and requests ask for: few, so that they meet, and next to every edge.
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
        // Sums of these are exact, in whatever order they are added.
        Kind::Double => {
            [-1.5, 0.0, 0.25, 0.5, 1.5, 2.0, 1_048_576.0, 1.0 / 1024.0].into_iter().map(Cell::Double).collect()
        }
        // None of these but one is what it says in the 24 bits that it is kept in.
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
