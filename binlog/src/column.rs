//! A column as a `TABLE_MAP` describes it, and where its value ends in a row.

use crate::bytes::Reader;
use crate::{BrokenRule, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The column's name; `None` if `binlog_row_metadata` is not `FULL`.
    pub name: Option<String>,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// Whether a number is unsigned; `None` for other types, or if `binlog_row_metadata=NO_LOG`.
    pub unsigned: Option<bool>,
    /// Number of the collation of a text, ENUM or SET(63 for a binary string); `None` if the log lacks it.
    pub collation: Option<u16>,
    /// Members of an ENUM or SET, in the collation's character set; `None` if `binlog_row_metadata` is not `FULL`.
    pub members: Option<Box<[Box<[u8]>]>>,
    /// Number of a geometry's type.
    pub geometry_type: Option<u64>,
    /// `Some(false)` if the log says that the column is invisible. MariaDB's log does not say so.
    pub visible: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Tiny,
    Short,
    Int24,
    Long,
    LongLong,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Bit {
        bits: u16,
    },
    Year,
    Date,
    Time {
        digits: u8,
    },
    DateTime {
        digits: u8,
    },
    Timestamp {
        digits: u8,
    },
    /// The format of MariaDB 5.3. The log does not contain its `digits`.
    OldTime {
        digits: Option<u8>,
    },
    OldDateTime {
        digits: Option<u8>,
    },
    OldTimestamp {
        digits: Option<u8>,
    },
    /// CHAR and BINARY, UUID, INET4 and INET6. Trailing spaces (of BINARY: zeros) are not in the log.
    Char {
        max_bytes: u16,
    },
    VarChar {
        max_bytes: u16,
    },
    VarCharCompressed {
        max_bytes: u16,
    },
    Blob {
        length_bytes: u8,
    },
    BlobCompressed {
        length_bytes: u8,
    },
    Geometry {
        length_bytes: u8,
    },
    Enum {
        bytes: u8,
    },
    Set {
        bytes: u8,
    },
}

const DIGITS_MAX: u8 = 6;

impl ColumnType {
    /// Reads the metadata of a column with this type number.
    pub(crate) fn read(number: u8, metadata: &mut Reader<'_>) -> Result<Self, Error> {
        let part = "the metadata of a column";
        Ok(match number {
            1 => Self::Tiny,
            2 => Self::Short,
            3 => Self::Long,
            4 if metadata.u8(part)? == 4 => Self::Float,
            5 if metadata.u8(part)? == 8 => Self::Double,
            7 => Self::OldTimestamp { digits: None },
            8 => Self::LongLong,
            9 => Self::Int24,
            10 | 14 => Self::Date,
            11 => Self::OldTime { digits: None },
            12 => Self::OldDateTime { digits: None },
            13 => Self::Year,
            15 | 253 => Self::VarChar { max_bytes: metadata.u16(part)? },
            16 => {
                let (bits, bytes) = (metadata.u8(part)?, metadata.u8(part)?);
                let bits = u16::from(bytes) * 8 + u16::from(bits);
                if !(1..=64).contains(&bits) {
                    return Err(metadata.fail(BrokenRule::Format("a BIT column has 1 to 64 bits")));
                }
                Self::Bit { bits }
            }
            17 => Self::Timestamp { digits: digits(metadata)? },
            18 => Self::DateTime { digits: digits(metadata)? },
            19 => Self::Time { digits: digits(metadata)? },
            140 => Self::BlobCompressed { length_bytes: length_bytes(metadata)? },
            141 => Self::VarCharCompressed { max_bytes: metadata.u16(part)? },
            246 => {
                let (precision, scale) = (metadata.u8(part)?, metadata.u8(part)?);
                if precision == 0 || precision > 65 || scale > precision {
                    return Err(metadata.fail(BrokenRule::Format("a DECIMAL column has 1 to 65 digits")));
                }
                Self::Decimal { precision, scale }
            }
            247 | 248 | 254 => Self::read_string(metadata)?,
            249..=252 => Self::Blob { length_bytes: length_bytes(metadata)? },
            255 => Self::Geometry { length_bytes: length_bytes(metadata)? },
            other => return Err(metadata.fail(BrokenRule::ColumnType(other))),
        })
    }

    fn read_string(metadata: &mut Reader<'_>) -> Result<Self, Error> {
        let part = "the metadata of a column";
        let (real_type, length) = (metadata.u8(part)?, metadata.u8(part)?);
        match (real_type, length) {
            (247, 1 | 2) => Ok(Self::Enum { bytes: length }),
            (248, 1..=8) => Ok(Self::Set { bytes: length }),
            // Two bits of the type, inverted, are the ninth and tenth of the length.
            (high, low) if high | 0x30 == 254 => {
                Ok(Self::Char { max_bytes: u16::from(!high & 0x30) << 4 | u16::from(low) })
            }
            (other, _) => Err(metadata.fail(BrokenRule::ColumnType(other))),
        }
    }

    pub(crate) fn is_numeric(self) -> bool {
        matches!(
            self,
            Self::Tiny
                | Self::Short
                | Self::Int24
                | Self::Long
                | Self::LongLong
                | Self::Float
                | Self::Double
                | Self::Decimal { .. }
                | Self::Year
        )
    }

    /// Returns whether the list of character sets has an item for the column. Binary strings and geometries have one.
    pub(crate) fn has_charset(self) -> bool {
        matches!(
            self,
            Self::Char { .. }
                | Self::VarChar { .. }
                | Self::VarCharCompressed { .. }
                | Self::Blob { .. }
                | Self::BlobCompressed { .. }
                | Self::Geometry { .. }
        )
    }

    pub(crate) fn has_members(self) -> bool {
        matches!(self, Self::Enum { .. } | Self::Set { .. })
    }

    /// Reads the bytes of a value, without the length before them.
    pub(crate) fn take<'a>(self, row: &mut Reader<'a>) -> Result<&'a [u8], Error> {
        let part = "a value";
        let known = |digits: Option<u8>| {
            digits
                .map(usize::from)
                .ok_or_else(|| row.fail(BrokenRule::Unknown("the digits of a TIME, DATETIME or TIMESTAMP")))
        };
        let count = match self {
            Self::Tiny | Self::Year => 1,
            Self::Short => 2,
            Self::Int24 | Self::Date => 3,
            Self::Long | Self::Float => 4,
            Self::LongLong | Self::Double => 8,
            Self::Decimal { precision, scale } => {
                crate::value::Decimal::stored_bytes(usize::from(precision), usize::from(scale))
            }
            Self::Bit { bits } => usize::from(bits.div_ceil(8)),
            Self::Time { digits } => 3 + usize::from(digits.div_ceil(2)),
            Self::DateTime { digits } => 5 + usize::from(digits.div_ceil(2)),
            Self::Timestamp { digits } => 4 + usize::from(digits.div_ceil(2)),
            Self::OldTime { digits } => [3, 4, 4, 5, 5, 5, 6].get(known(digits)?).copied().unwrap_or_default(),
            Self::OldDateTime { digits } => [8, 6, 6, 7, 7, 7, 8].get(known(digits)?).copied().unwrap_or_default(),
            Self::OldTimestamp { digits } => 4 + known(digits)?.div_ceil(2),
            Self::Enum { bytes } | Self::Set { bytes } => usize::from(bytes),
            Self::Char { max_bytes } | Self::VarChar { max_bytes } | Self::VarCharCompressed { max_bytes } => {
                let length = row.little(if max_bytes > 255 { 2 } else { 1 }, part)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > usize::from(max_bytes) {
                    return Err(row.fail(BrokenRule::Format("a text is longer than its column allows")));
                }
                length
            }
            Self::Blob { length_bytes } | Self::BlobCompressed { length_bytes } | Self::Geometry { length_bytes } => {
                usize::try_from(row.little(usize::from(length_bytes), part)?).unwrap_or(usize::MAX)
            }
        };
        row.take(count, part)
    }

    /// Sets the digits of a column in the format of MariaDB 5.3. Returns `false` for another type or more than 6
    /// digits.
    pub(crate) fn set_digits(&mut self, number: u8) -> bool {
        match self {
            Self::OldTime { digits } | Self::OldDateTime { digits } | Self::OldTimestamp { digits }
                if number <= DIGITS_MAX =>
            {
                *digits = Some(number);
                true
            }
            _ => false,
        }
    }
}

fn digits(metadata: &mut Reader<'_>) -> Result<u8, Error> {
    let digits = metadata.u8("the digits of a column")?;
    if digits > DIGITS_MAX {
        return Err(metadata.fail(BrokenRule::Format("a time has at most 6 fraction digits")));
    }
    Ok(digits)
}

fn length_bytes(metadata: &mut Reader<'_>) -> Result<u8, Error> {
    let length_bytes = metadata.u8("the metadata of a column")?;
    if !(1..=4).contains(&length_bytes) {
        return Err(metadata.fail(BrokenRule::Format("the length of a BLOB has 1 to 4 bytes")));
    }
    Ok(length_bytes)
}
