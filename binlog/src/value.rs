//! The value of a column in a row.

mod decimal;
mod list;
mod temporal;
mod text;

#[cfg(test)]
mod tests;

pub use decimal::Decimal;
pub use list::{Enum, Set};
pub use temporal::{Date, DateTime, Time, Timestamp, Year};
pub use text::Text;

use crate::bytes::{Reader, big, little};
use crate::charset::Utf8;
use crate::{BrokenRule, Column, ColumnType, Error, EventType};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal<'a>),
    Bit(Bit),
    Year(Year),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Timestamp(Timestamp),
    Enum(Enum<'a>),
    Set(Set<'a>),
    /// CHAR, VARCHAR, TEXT, JSON; BINARY, VARBINARY, BLOB, UUID, INET4, INET6, VECTOR.
    Text(Text<'a>),
    /// The SRID, four bytes in little-endian order, and WKB.
    Geometry(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the text that a `SELECT` shows in a session at UTC, except that FLOAT and DOUBLE have the fewest digits
    /// that read back equal, and that ZEROFILL adds no zeros. Decompresses to at most `limit` bytes.
    pub fn to_utf8(&self, limit: usize) -> Result<Utf8<'a>, Error> {
        let shown: &dyn fmt::Display = match self {
            Self::Signed(number) => number,
            Self::Unsigned(number) => number,
            Self::Float(number) => number,
            Self::Double(number) => number,
            Self::Decimal(number) => number,
            Self::Bit(number) => number,
            Self::Year(year) => year,
            Self::Date(date) => date,
            Self::Time(time) => time,
            Self::DateTime(time) => time,
            Self::Timestamp(time) => time,
            Self::Enum(value) => return value.to_utf8().ok_or(NO_MEMBERS),
            Self::Set(value) => return value.to_utf8().ok_or(NO_MEMBERS),
            Self::Text(text) => return text.to_utf8(limit),
            Self::Geometry(_) => return Ok(Utf8::Binary),
        };
        Ok(Utf8::Text(Cow::Owned(shown.to_string())))
    }
}

const NO_MEMBERS: Error =
    Error { event: EventType::TABLE_MAP, offset: 0, rule: BrokenRule::Unknown("the members of an ENUM or SET") };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bit {
    pub value: u64,
    /// Number of bits of the column.
    pub bits: u16,
}

impl fmt::Display for Bit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

pub(crate) fn read<'a>(column: &'a Column, row: &mut Reader<'a>) -> Result<Value<'a>, Error> {
    let stored = column.column_type.take(row)?;
    let offset = row.offset().saturating_sub(stored.len());
    let text = |width, is_compressed| {
        Value::Text(Text {
            stored,
            collation: column.collation,
            width,
            is_compressed,
            at: Error { event: row.event(), offset, rule: BrokenRule::Unknown("the collation of a text") },
        })
    };
    let decoded = match column.column_type {
        ColumnType::Tiny
        | ColumnType::Short
        | ColumnType::Int24
        | ColumnType::Long
        | ColumnType::LongLong
        | ColumnType::Bit { .. } => integer(column, stored),
        ColumnType::Float => stored
            .try_into()
            .map(|bytes| Value::Float(f32::from_le_bytes(bytes)))
            .map_err(|_| BrokenRule::EndsWithin("a FLOAT")),
        ColumnType::Double => stored
            .try_into()
            .map(|bytes| Value::Double(f64::from_le_bytes(bytes)))
            .map_err(|_| BrokenRule::EndsWithin("a DOUBLE")),
        ColumnType::Decimal { precision, scale } => Decimal::new(stored, precision, scale).map(Value::Decimal),
        ColumnType::Year => Ok(Value::Year(Year::new(stored))),
        ColumnType::Date => Date::new(stored).map(Value::Date),
        ColumnType::Time { digits } => Time::new(stored, digits).map(Value::Time),
        ColumnType::DateTime { digits } => DateTime::new(stored, digits).map(Value::DateTime),
        ColumnType::Timestamp { digits } => Timestamp::new(stored, digits).map(Value::Timestamp),
        ColumnType::OldTime { digits } => Time::old(stored, digits.unwrap_or_default()).map(Value::Time),
        ColumnType::OldDateTime { digits } => DateTime::old(stored, digits.unwrap_or_default()).map(Value::DateTime),
        ColumnType::OldTimestamp { digits } => Timestamp::old(stored, digits.unwrap_or_default()).map(Value::Timestamp),
        ColumnType::Char { max_bytes } => Ok(text(Some(max_bytes), false)),
        ColumnType::VarChar { .. } | ColumnType::Blob { .. } => Ok(text(None, false)),
        ColumnType::VarCharCompressed { .. } | ColumnType::BlobCompressed { .. } => Ok(text(None, true)),
        ColumnType::Geometry { .. } => Ok(Value::Geometry(stored)),
        ColumnType::Enum { .. } => Enum::new(stored, column).map(Value::Enum),
        ColumnType::Set { .. } => Set::new(stored, column).map(Value::Set),
    };
    decoded.map_err(|rule| Error { event: row.event(), offset, rule })
}

fn integer<'a>(column: &Column, stored: &[u8]) -> Result<Value<'a>, BrokenRule> {
    if let ColumnType::Bit { bits } = column.column_type {
        return Ok(Value::Bit(Bit { value: big(stored), bits }));
    }
    let number = little(stored);
    if column.unsigned.ok_or(BrokenRule::Unknown("whether a number is unsigned"))? {
        return Ok(Value::Unsigned(number));
    }
    // Moves the sign to the highest bit and back, over as many bytes as the number has.
    let shift = 64_u32.saturating_sub(u32::try_from(stored.len()).unwrap_or(8) * 8);
    Ok(Value::Signed((number << shift).cast_signed() >> shift))
}
