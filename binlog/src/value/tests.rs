//! Stored bytes and what a `SELECT` shows for them. `tests/binlog` compares many more with a server.

use super::*;
use crate::charset::Utf8;

fn column(column_type: ColumnType) -> Column {
    let members: [&[u8]; 3] = [b"a", b"", b"c"];
    Column {
        name: None,
        column_type,
        nullable: true,
        unsigned: Some(false),
        collation: Some(45),
        members: Some(members.map(Into::into).into()),
        geometry_type: None,
        visible: None,
    }
}

/// Returns the text of a value that has all of the bytes, or the rule that it breaks.
fn shown(column_type: ColumnType, bytes: &[u8]) -> Result<String, BrokenRule> {
    let column = column(column_type);
    let mut row = Reader::new(EventType::WRITE_ROWS_V1, 0, bytes);
    let value = read(&column, &mut row).map_err(|fault| fault.rule)?;
    assert!(row.is_empty(), "{column_type:?} leaves bytes of {bytes:02x?}");
    match value.to_utf8(1_000).map_err(|fault| fault.rule)? {
        Utf8::Text(text) => Ok(text.into_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_are_shown_as_a_select_shows_them() {
    use ColumnType::*;
    let old = |digits| OldTime { digits: Some(digits) };
    let money = Decimal { precision: 20, scale: 2 };
    let cases: &[(ColumnType, &[u8], &str)] = &[
        (Tiny, &[0x80], "-128"),
        (Int24, &[0xFF, 0xFF, 0x7F], "8388607"),
        (Int24, &[0, 0, 0x80], "-8388608"),
        (LongLong, &[0xFF; 8], "-1"),
        (Bit { bits: 9 }, &[1, 2], "258"),
        (Year, &[0], "0000"),
        (Year, &[255], "2155"),
        (Date, &[0x21, 0, 0], "0000-01-01"),
        (Date, &[0x9F, 0x1F, 0x4E], "9999-12-31"),
        (Time { digits: 0 }, &[0x7F, 0xFF, 0xFF], "-00:00:01"),
        (Time { digits: 1 }, &[0x80, 0, 1, 50], "00:00:01.5"),
        (Time { digits: 2 }, &[0x7F, 0x5D, 0x33, 0xDE], "-10:11:12.34"),
        (Time { digits: 2 }, &[0x7F, 0xFF, 0xFF, 0xFF], "-00:00:00.01"),
        (Time { digits: 4 }, &[0x7F, 0xFF, 0xFF, 0xFF, 0xFF], "-00:00:00.0001"),
        (Time { digits: 6 }, &[0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "-00:00:00.000001"),
        (old(0), &[0x08, 0x75, 0xFE], "-10:11:12"),
        (old(0), &[0xA7, 0xE3, 0x7F], "838:13:51"),
        (old(1), &[0x01, 0xC7, 0x47, 0xDD], "-10:11:12.3"),
        (old(3), &[0x00, 0xB4, 0x07, 0xA5, 0x80], "00:00:00.000"),
        (DateTime { digits: 0 }, &[0x80, 0, 0, 0, 0], "0000-00-00 00:00:00"),
        (OldDateTime { digits: Some(0) }, &[0x45, 0xEC, 0xE7, 0x33, 0x5F, 0x12, 0, 0], "2020-01-02 03:04:05"),
        (Timestamp { digits: 0 }, &[0; 4], "0000-00-00 00:00:00"),
        (Timestamp { digits: 0 }, &[0, 0, 0, 1], "1970-01-01 00:00:01"),
        (Timestamp { digits: 3 }, &[0x69, 0xA2, 0x2F, 0xBF, 0x26, 0x8E], "2026-02-27 23:58:55.987"),
        (Timestamp { digits: 0 }, &[0x38, 0xBB, 0x0B, 0xFF], "2000-02-28 23:59:59"),
        (Timestamp { digits: 0 }, &[0x38, 0xBC, 0x5D, 0x80], "2000-03-01 00:00:00"),
        (Timestamp { digits: 6 }, &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x42, 0x3F], "2106-02-07 06:28:15.999999"),
        (money, &[0x80, 0, 0, 0, 0, 0, 0, 0, 5], "0.05"),
        (money, &[0x80, 0, 0, 7, 0, 0, 0, 5, 9], "7000000005.09"),
        (money, &[0x7F, 0xFF, 0xFF, 0xF8, 0xFF, 0xFF, 0xFF, 0xFA, 0xF6], "-7000000005.09"),
        (Decimal { precision: 3, scale: 0 }, &[0x80, 0], "0"),
        (Enum { bytes: 1 }, &[0], ""),
        (Enum { bytes: 2 }, &[3, 0], "c"),
        (Set { bytes: 1 }, &[0b111], "a,,c"),
        (Set { bytes: 1 }, &[0b110], ",c"),
        (Char { max_bytes: 4 }, &[2, b'a', b'b'], "ab"),
        (VarChar { max_bytes: 255 }, &[1, b'a'], "a"),
        (VarChar { max_bytes: 256 }, &[1, 0, b'a'], "a"),
        (Blob { length_bytes: 3 }, &[1, 0, 0, b'a'], "a"),
        (VarCharCompressed { max_bytes: 20 }, &[0], ""),
        (VarCharCompressed { max_bytes: 20 }, &[2, 0, b'a'], "a"),
    ];
    for (column_type, bytes, expected) in cases {
        assert_eq!(shown(*column_type, bytes), Ok((*expected).to_owned()), "{column_type:?} {bytes:02x?}");
    }
}

#[test]
fn impossible_values_are_refused() {
    use ColumnType::*;
    let no_time = "a TIME is not between -838:59:59 and 838:59:59";
    let no_date = "a date is not between 0000-00-00 and 9999-12-31";
    let no_member = "an ENUM or SET has a member that its column does not have";
    let cases: &[(ColumnType, &[u8], &str)] = &[
        (Time { digits: 0 }, &[0xB4, 0x70, 0], no_time),
        (Time { digits: 0 }, &[0x80, 0x0F, 0], no_time),
        (Time { digits: 0 }, &[0x80, 0, 0x3C], no_time),
        (Time { digits: 2 }, &[0x80, 0, 0, 100], no_time),
        (Date, &[0, 0xFF, 0xFF], no_date),
        (Date, &[0xA1, 0x01, 0], no_date),
        (DateTime { digits: 0 }, &[0x7F, 0xFF, 0xFF, 0xFF, 0xFF], "a DATETIME is negative"),
        (DateTime { digits: 0 }, &[0x80, 0, 1, 0x80, 0], "a DATETIME has no time of a day"),
        (DateTime { digits: 0 }, &[0xFF, 0xFF, 0xFF, 0, 0], no_date),
        (Timestamp { digits: 2 }, &[0, 0, 0, 1, 100], "a TIMESTAMP has a fraction of a second or more"),
        (Decimal { precision: 2, scale: 0 }, &[0x80 + 100], "a DECIMAL has a group of too many digits"),
        (Enum { bytes: 1 }, &[4], no_member),
        (Set { bytes: 1 }, &[8], no_member),
        (VarChar { max_bytes: 1 }, &[2, b'a', b'b'], "a text is longer than its column allows"),
    ];
    for (column_type, bytes, expected) in cases {
        assert_eq!(shown(*column_type, bytes), Err(BrokenRule::Format(expected)), "{column_type:?} {bytes:02x?}");
    }
    assert_eq!(shown(Long, &[1, 2, 3]), Err(BrokenRule::EndsWithin("a value")));
}
