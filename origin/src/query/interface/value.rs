//! The types of a column's values in JSON, as documented in docs/api/values.md.

use crate::query::catalog::{Column, Kind, Members};
use serde_json::{Value, json};

/// The greatest integer that responses have as a number: not every JSON client reads greater numbers exactly.
const EXACT_MAX: i64 = (1 << 53) - 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueType<'a> {
    /// Always a number: the range is within ±(2^53−1).
    Integer {
        min: i64,
        max: i64,
    },
    /// A number up to ±(2^53−1), a string of digits beyond.
    Long {
        min: i64,
        max: u64,
    },
    Float,
    /// A string with `scale` digits after the point.
    Decimal {
        scale: u32,
    },
    Text {
        max: Option<u32>,
    },
    Enum(&'a Members),
    Set(&'a Members),
    Formed(&'static str, &'static str),
    DateTime {
        digits: u32,
    },
    Time {
        digits: u32,
    },
    Json,
    Bytes,
    Geometry,
}

impl<'a> ValueType<'a> {
    pub(super) fn of(column: &'a Column) -> Self {
        let text: &str = &column.type_text;
        let numbers = Numbers::of(text);
        match column.kind {
            Kind::Integer => integer(text),
            Kind::Bit => match numbers.first.unwrap_or(1) {
                bits @ 0..=53 => Self::Integer { min: 0, max: (1 << bits) - 1 },
                bits => Self::Long { min: 0, max: u64::MAX >> (64 - bits.min(64)) },
            },
            Kind::Decimal => Self::Decimal { scale: numbers.second.unwrap_or(0) },
            Kind::Float | Kind::Double => Self::Float,
            Kind::Text => {
                let is_limited = text.starts_with("char") || text.starts_with("varchar");
                Self::Text { max: numbers.first.filter(|_| is_limited) }
            }
            Kind::Enum => Self::Enum(&column.values),
            Kind::Set => Self::Set(&column.values),
            Kind::Uuid => {
                Self::Formed("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "0197c2a0-6f3e-7c51-9d0b-3a5d8e1f2b4c")
            }
            Kind::Inet4 => Self::Formed("^[0-9]{1,3}(\\.[0-9]{1,3}){3}$", "192.0.2.1"),
            Kind::Inet6 => Self::Formed("^[0-9a-f:.]+$", "2001:db8::1"),
            Kind::Date => Self::Formed("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "2026-11-20"),
            Kind::DateTime => Self::DateTime { digits: numbers.first.unwrap_or(0) },
            Kind::Time => Self::Time { digits: numbers.first.unwrap_or(0) },
            Kind::Json => Self::Json,
            Kind::Bytes => Self::Bytes,
            Kind::Geometry => Self::Geometry,
        }
    }

    pub(super) fn schema_of_output(self) -> Value {
        match self {
            Self::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Long { min, max } => json!({"anyOf": [
                {"type": "integer", "minimum": min.max(-EXACT_MAX), "maximum": max.min(EXACT_MAX.unsigned_abs())},
                {"type": "string", "pattern": "^-?[0-9]+$"},
            ]}),
            Self::Float => json!({"type": "number"}),
            Self::Decimal { scale: 0 } => json!({"type": "string", "pattern": "^-?[0-9]+$"}),
            Self::Decimal { scale } => json!({"type": "string", "pattern": format!("^-?[0-9]+\\.[0-9]{{{scale}}}$")}),
            Self::Text { max: Some(max) } => json!({"type": "string", "maxLength": max}),
            Self::Text { max: None } => json!({"type": "string"}),
            Self::Enum(members) => json!({"type": "string", "enum": members}),
            Self::Set(members) => json!({"type": "string", "description": of_set(members)}),
            Self::Formed(pattern, example) => json!({"type": "string", "pattern": pattern, "examples": [example]}),
            Self::DateTime { digits } => {
                let pattern = format!("^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} {}$", clock("[0-9]{2}", digits));
                json!({"type": "string", "pattern": pattern})
            }
            Self::Time { digits } => {
                json!({"type": "string", "pattern": format!("^-?{}$", clock("[0-9]{2,3}", digits))})
            }
            Self::Json => json!({}),
            Self::Bytes => {
                json!({"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/]*={0,2}$"})
            }
            Self::Geometry => json!({"$ref": "#/components/schemas/GeoJson"}),
        }
    }

    pub(super) fn schema_of_input(self) -> Value {
        let integer = |min: i64, max: u64| {
            json!({"anyOf": [
                {"type": "integer", "minimum": min, "maximum": max},
                {"type": "string", "pattern": "^(-?[0-9]+|true|false)$"},
                {"type": "boolean"},
            ]})
        };
        let number = || {
            let text = json!({"type": "string", "pattern": "^[-+0-9.eE]+$"});
            json!({"anyOf": [{"type": "number"}, text, {"type": "boolean"}]})
        };
        let text = |text: Value| json!({"anyOf": [text, {"type": "number"}]});
        match self {
            Self::Integer { min, max } => integer(min, max.unsigned_abs()),
            Self::Long { min, max } => integer(min, max),
            Self::Float | Self::Decimal { .. } => number(),
            Self::Text { .. } => text(self.schema_of_output()),
            Self::Formed(_, example) => json!({"type": "string", "examples": [example]}),
            Self::DateTime { .. } => {
                json!({"type": "string", "examples": ["2026-11-20 08:36:16", "2026-11-20T10:36:16+02:00"]})
            }
            Self::Time { .. } => json!({"type": "string", "examples": ["08:36:16"]}),
            Self::Bytes => {
                json!({"type": "string", "contentEncoding": "base64", "pattern": "^[-_A-Za-z0-9+/]*={0,2}$"})
            }
            Self::Set(members) => {
                json!({"type": "string", "description": of_set(members), "examples": members.iter().take(1).collect::<Vec<_>>()})
            }
            Self::Enum(_) | Self::Json | Self::Geometry => self.schema_of_output(),
        }
    }

    pub(super) fn is_number(self, column: &Column) -> bool {
        column.kind != Kind::Bit
            && matches!(self, Self::Integer { .. } | Self::Long { .. } | Self::Float | Self::Decimal { .. })
    }
}

/// Allows null too. Uses `anyOf`, since several generators and testers fail at lists in `type`.
pub(super) fn or_null(mut schema: Value) -> Value {
    let is_null = json!({"type": "null"});
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.push(is_null);
        return schema;
    }
    // The schema of a JSON field allows every value.
    if schema == json!({}) { schema } else { json!({"anyOf": [schema, is_null]}) }
}

fn of_set(members: &Members) -> String {
    format!("Any of {}, separated by commas", members.iter().collect::<Vec<_>>().join(", "))
}

fn clock(hours: &str, digits: u32) -> String {
    let fraction = if digits == 0 { String::new() } else { format!("\\.[0-9]{{{digits}}}") };
    format!("{hours}:[0-9]{{2}}:[0-9]{{2}}{fraction}")
}

fn integer(type_text: &str) -> ValueType<'static> {
    let unsigned = type_text.contains("unsigned") || type_text.contains("zerofill");
    let bits = match type_text.split(['(', ' ']).next().unwrap_or_default() {
        "year" => return ValueType::Integer { min: 0, max: 2155 },
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        _ if unsigned => return ValueType::Long { min: 0, max: u64::MAX },
        _ => return ValueType::Long { min: i64::MIN, max: i64::MAX.unsigned_abs() },
    };
    match unsigned {
        true => ValueType::Integer { min: 0, max: (1 << bits) - 1 },
        false => ValueType::Integer { min: -(1 << (bits - 1)), max: (1 << (bits - 1)) - 1 },
    }
}

/// The numbers between the parentheses of a type, such as `decimal(10,2)`.
struct Numbers {
    first: Option<u32>,
    second: Option<u32>,
}

impl Numbers {
    fn of(type_text: &str) -> Self {
        let inside = type_text.split(['(', ')']).nth(1).unwrap_or_default();
        let mut numbers = inside.split(',').map(|number| number.trim().parse().ok());
        Self { first: numbers.next().flatten(), second: numbers.next().flatten() }
    }
}
