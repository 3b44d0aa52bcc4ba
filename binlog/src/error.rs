//! Why bytes are not a log that this crate can decode.

use crate::EventType;
use std::fmt;

/// Bytes that can't be decoded. `offset` counts from the first byte of the event or, in compressed rows and texts, from
/// the first decompressed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    pub event: EventType,
    pub offset: usize,
    pub rule: BrokenRule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenRule {
    /// The bytes end within this part.
    EndsWithin(&'static str),
    /// A part has another value than the format allows.
    Format(&'static str),
    Checksum,
    Encrypted,
    /// The log is valid, but of a kind that this crate does not decode.
    Unsupported(&'static str),
    ColumnType(u8),
    /// The `TABLE_MAP` lacks what is needed to read a value: `binlog_row_metadata` is not `FULL`, or a column has the temporal
    /// format of MariaDB 5.3.
    Unknown(&'static str),
    /// The decompressed size, which is above the limit.
    TooLarge {
        bytes: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.event, self.offset, self.rule)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsWithin(part) => write!(f, "the bytes end within {part}"),
            Self::Format(rule) => f.write_str(rule),
            Self::Checksum => f.write_str("the CRC32 of the event is not its checksum"),
            Self::Encrypted => f.write_str("the log is encrypted, and can't be decoded from its file"),
            Self::Unsupported(what) => write!(f, "{what} can't be decoded"),
            Self::ColumnType(number) => write!(f, "columns of type {number} can't be decoded"),
            Self::Unknown(what) => write!(f, "the TABLE_MAP does not tell {what}"),
            Self::TooLarge { bytes } => write!(f, "{bytes} decompressed bytes are more than the limit"),
        }
    }
}
