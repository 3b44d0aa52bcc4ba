//! Writes values as literals of an INSERT.

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Row, Value};

#[derive(Clone, Copy)]
pub(super) enum Literal {
    /// Written without quotes: MariaDB would take a string for the name of an ENUM's or SET's member.
    Integer,
    Text,
    /// Bytes, which MariaDB stores in any column without a conversion.
    Binary,
}

impl Literal {
    pub(super) fn of(column: &Column) -> Self {
        /// MariaDB's number of the character set `binary`, which numbers and times have too.
        const BINARY: u16 = 63;
        use ColumnType as T;
        match column.column_type() {
            T::MYSQL_TYPE_TINY
            | T::MYSQL_TYPE_SHORT
            | T::MYSQL_TYPE_INT24
            | T::MYSQL_TYPE_LONG
            | T::MYSQL_TYPE_LONGLONG => Self::Integer,
            T::MYSQL_TYPE_STRING
            | T::MYSQL_TYPE_VAR_STRING
            | T::MYSQL_TYPE_VARCHAR
            | T::MYSQL_TYPE_TINY_BLOB
            | T::MYSQL_TYPE_BLOB
            | T::MYSQL_TYPE_MEDIUM_BLOB
            | T::MYSQL_TYPE_LONG_BLOB
            | T::MYSQL_TYPE_GEOMETRY
            | T::MYSQL_TYPE_BIT
                if column.character_set() == BINARY =>
            {
                Self::Binary
            }
            _ => Self::Text,
        }
    }
}

pub(super) fn write_row(statement: &mut Vec<u8>, row: &Row, kinds: &[Literal]) {
    statement.push(b'(');
    for (at, kind) in kinds.iter().enumerate() {
        if at > 0 {
            statement.push(b',');
        }
        match row.as_ref(at) {
            Some(Value::Bytes(bytes)) => match kind {
                Literal::Integer => statement.extend_from_slice(bytes),
                Literal::Text => write_text(statement, bytes),
                Literal::Binary => {
                    statement.extend_from_slice(b"_binary");
                    write_text(statement, bytes);
                }
            },
            // Without a prepared statement, each value that is not NULL is text.
            _ => statement.extend_from_slice(b"NULL"),
        }
    }
    statement.push(b')');
}

/// Writes a string. The session that reads it has no `NO_BACKSLASH_ESCAPES`, and in utf8mb4 no quote or backslash is a
/// part of another character.
pub(super) fn write_text(statement: &mut Vec<u8>, text: &[u8]) {
    statement.push(b'\'');
    for part in text.split_inclusive(|byte| matches!(byte, b'\'' | b'\\')) {
        match part {
            [before @ .., special @ (b'\'' | b'\\')] => {
                statement.extend_from_slice(before);
                statement.extend_from_slice(&[b'\\', *special]);
            }
            part => statement.extend_from_slice(part),
        }
    }
    statement.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_can_not_end_its_quotes() {
        for (text, written) in
            [("a", "'a'"), ("'", "'\\''"), ("\\", "'\\\\'"), ("\\';--\x01", "'\\\\\\';--\x01'"), ("", "''")]
        {
            let mut statement = Vec::new();
            write_text(&mut statement, text.as_bytes());
            assert_eq!(statement, written.as_bytes());
        }
    }
}
