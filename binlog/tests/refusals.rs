//! What is refused, and what is told apart: encrypted logs, events of other types, broken and missing parts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use binlog::{
    Body, BrokenRule, Cell, Checksum, ColumnType, Decoder, Event, EventType, Gtid, Header, Rows, RowsKind, Table,
};

const MAGIC_BYTES: usize = 4;
const COMPRESSED: &[u8] = include_bytes!("data/compressed.binlog");
const ROWS: &[u8] = include_bytes!("data/rows-10.11.binlog");
const OLD_TIMES: &[u8] = include_bytes!("data/old-times.binlog");

/// Makes an event without a checksum.
fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(Header::BYTES + body.len()).unwrap();
    let mut event =
        [&7_u32.to_le_bytes()[..], &[event_type.0], &1_u32.to_le_bytes(), &size.to_le_bytes(), &[0; 6]].concat();
    event.extend_from_slice(body);
    event
}

fn events(log: &[u8]) -> Vec<&[u8]> {
    let (mut events, mut rest) = (Vec::new(), &log[MAGIC_BYTES..]);
    while !rest.is_empty() {
        let (event, after) = rest.split_at(Header::read(rest).unwrap().size as usize);
        events.push(event);
        rest = after;
    }
    events
}

fn rule(bytes: &[u8]) -> BrokenRule {
    Decoder::new(Checksum::None).read(bytes).unwrap_err().rule
}

/// Returns the rows of a log's first event of this type, with their table.
fn first_rows(log: &[u8], event_type: EventType) -> (Rows<'_>, Table) {
    let (mut decoder, mut table) = (Decoder::new(Checksum::None), None);
    for bytes in events(log) {
        match decoder.read(bytes).unwrap() {
            Event { body: Body::TableMap(map), .. } => table = Some(map.table().unwrap()),
            Event { header, body: Body::Rows(rows) } if header.event_type == event_type => {
                return (rows, table.unwrap());
            }
            _ => {}
        }
    }
    panic!("no {event_type}");
}

#[test]
fn an_encrypted_log_is_refused() {
    let encrypted = event(EventType::START_ENCRYPTION, &[1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(rule(&encrypted), BrokenRule::Encrypted);
    let fault = Decoder::new(Checksum::None).read(&encrypted).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "START_ENCRYPTION at byte 19: the log is encrypted, and can't be decoded from its file"
    );
}

#[test]
fn events_of_other_types_are_named_and_not_decoded() {
    for number in [5, 13, 14, 17, 18, 33, 34, 35, 39, 40, 172, 255] {
        let bytes = event(EventType(number), b"body");
        let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
        assert!(matches!(decoded.body, Body::Unknown(EventType(other)) if other == number), "{number}");
    }
}

#[test]
fn any_changed_bit_of_an_event_breaks_its_checksum() {
    for bytes in events(ROWS) {
        let mut decoder = Decoder::new(Checksum::Crc32);
        decoder.read(bytes).unwrap();
        // Bytes that say how to read the event are checked first.
        let is_format = Header::read(bytes).unwrap().event_type == EventType::FORMAT_DESCRIPTION;
        for at in (0..bytes.len()).filter(|at| !matches!(at, 4 | 9..=12) && !is_format) {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << (at % 8);
            assert_eq!(decoder.read(&changed).unwrap_err().rule, BrokenRule::Checksum, "byte {at}");
        }
    }
    let format = events(ROWS)[0];
    let mut in_use = format.to_vec();
    in_use[17] |= 1;
    assert!(Decoder::new(Checksum::None).read(&in_use).is_ok(), "a log that is being written");
    in_use[17] |= 2;
    assert_eq!(rule(&in_use), BrokenRule::Checksum);
}

#[test]
fn the_size_of_an_event_must_be_the_size_in_its_header() {
    let bytes = event(EventType::STOP, &[]);
    assert!(matches!(Decoder::new(Checksum::None).read(&bytes).unwrap().body, Body::Stop));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(rule(&longer), BrokenRule::Format("the size in the header is not the size of the event"));
    assert_eq!(rule(&bytes[..10]), BrokenRule::EndsWithin("the header"));
}

#[test]
fn decompression_has_a_limit() {
    let (rows, table) = first_rows(COMPRESSED, EventType::UPDATE_ROWS_COMPRESSED_V1);
    let data = rows.data(1_000).unwrap();
    assert_eq!(data.changes(&table).unwrap().count(), 1);
    assert!(matches!(rows.data(10).unwrap_err().rule, BrokenRule::TooLarge { bytes } if bytes > 10));
    // Table 1, no flags, one column, which is present; then four bytes of length, and no such number of bytes.
    let claims =
        event(EventType::WRITE_ROWS_COMPRESSED_V1, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0x78]);
    let decoded = Decoder::new(Checksum::None).read(&claims).unwrap();
    let Body::Rows(rows) = decoded.body else { panic!("no rows") };
    let expected = BrokenRule::Format("compressed bytes are not what their length says");
    assert_eq!(rows.data(usize::MAX).unwrap_err().rule, expected);
}

#[test]
fn times_of_mariadb_5_3_are_refused_without_their_digits() {
    let (rows, mut table) = first_rows(OLD_TIMES, EventType::WRITE_ROWS_V1);
    let data = rows.data(0).unwrap();
    let mut changes = data.changes(&table).unwrap();
    let expected = BrokenRule::Unknown("the digits of a TIME, DATETIME or TIMESTAMP");
    assert_eq!(changes.next().unwrap().unwrap_err().rule, expected);
    assert!(changes.next().is_none(), "an iterator ends after an error");
    assert!(!table.set_fraction_digits(0, 2), "not a time");
    assert!(!table.set_fraction_digits(2, 7), "more than six digits");
    assert!(!table.set_fraction_digits(99, 2), "no column");
}

#[test]
fn rows_are_decoded_by_their_own_table_only() {
    let (rows, mut table) = first_rows(ROWS, EventType::WRITE_ROWS_V1);
    let data = rows.data(0).unwrap();
    assert_eq!(data.changes(&table).unwrap().count(), 2);
    let removed = table.columns.pop().unwrap();
    let expected = BrokenRule::Format("the rows are of another table than the TABLE_MAP");
    assert_eq!(data.changes(&table).unwrap_err().rule, expected);
    table.columns.push(removed);
    table.id += 1;
    assert_eq!(data.changes(&table).unwrap_err().rule, expected);
}

#[test]
fn rows_of_a_table_are_known_by_the_first_bytes() {
    let (rows, _) = first_rows(ROWS, EventType::DELETE_ROWS_V1);
    let delete = |bytes: &&&[u8]| bytes[4] == EventType::DELETE_ROWS_V1.0;
    let whole = events(ROWS);
    let bytes = whole.iter().find(delete).unwrap();
    assert_eq!(Decoder::rows_of_table(&bytes[..25]), Some(rows.table_id));
    assert_eq!(Decoder::rows_of_table(&bytes[..24]), None);
    assert_eq!(Decoder::rows_of_table(whole[0]), None);
}

#[test]
fn rows_of_version_2_have_more_data_before_their_columns() {
    for (log, first) in [(ROWS, EventType::WRITE_ROWS_V1), (COMPRESSED, EventType::WRITE_ROWS_COMPRESSED_V1)] {
        let (expected, table) = first_rows(log, first);
        let whole = events(log);
        let bytes = whole.iter().find(|bytes| bytes[4] == first.0).unwrap();
        let checksum = if log == ROWS { 4 } else { 0 };
        let body = &bytes[Header::BYTES..bytes.len() - checksum];
        // The distance of both versions, compressed ones apart.
        let second = EventType(first.0 + if log == ROWS { 7 } else { 3 });
        for extra in [&[2, 0][..], &[5, 0, 0, 1, 2]] {
            let made = event(second, &[&body[..8], extra, &body[8..]].concat());
            let decoded = Decoder::new(Checksum::None).read(&made).unwrap();
            let Body::Rows(rows) = decoded.body else { panic!("no rows") };
            assert_eq!(rows.kind, RowsKind::Insert);
            let show = |rows: &Rows<'_>| -> Vec<String> {
                let data = rows.data(1_000).unwrap();
                let changes = data.changes(&table).unwrap();
                changes.map(|change| show_cells(change.unwrap().after.unwrap().cells())).collect()
            };
            assert_eq!(show(&rows), show(&expected));
        }
        let short = event(second, &[&body[..8], &[1, 0], &body[8..]].concat());
        assert_eq!(rule(&short), BrokenRule::Format("the length is less than 2"));
    }
}

fn show_cells<'a>(cells: impl Iterator<Item = Result<Cell<'a>, binlog::Error>>) -> String {
    let show = |cell| match cell {
        Ok(Cell::Value(value)) => format!("{:?}", value.to_utf8(1_000)),
        other => format!("{other:?}"),
    };
    cells.map(show).collect::<Vec<_>>().join(",")
}

#[test]
fn gtids_have_what_their_flags_say() {
    let head = |flags: u8| [&9_u64.to_le_bytes()[..], &3_u32.to_le_bytes(), &[flags]].concat();
    let read = |body: &[u8]| {
        let bytes = event(EventType::GTID, body);
        let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
        let Body::Gtid(gtid) = decoded.body else { panic!("no GTID") };
        (gtid.sequence, gtid.domain, gtid.commit_id, gtid.alter_start)
    };
    assert_eq!(read(&[&head(1)[..], &[0; 6]].concat()), (9, 3, None, None));
    assert_eq!(read(&[&head(2)[..], &5_u64.to_le_bytes()].concat()), (9, 3, Some(5), None));
    // An `ALTER` that ends: a byte of engines, then the number of its begin.
    assert_eq!(read(&[&head(0)[..], &[4 | 1, 2], &8_u64.to_le_bytes()].concat()), (9, 3, None, Some(8)));
    let entry = [&3_u32.to_le_bytes()[..], &7_u32.to_le_bytes(), &9_u64.to_le_bytes()].concat();
    let list = event(EventType::GTID_LIST, &[&2_u32.to_le_bytes()[..], &entry, &entry].concat());
    let decoded = Decoder::new(Checksum::None).read(&list).unwrap();
    let Body::GtidList(list) = decoded.body else { panic!("no list") };
    assert_eq!(list.gtids().collect::<Vec<_>>(), [Gtid { domain: 3, server: 7, sequence: 9 }; 2]);
    let short = event(EventType::GTID_LIST, &[&3_u32.to_le_bytes()[..], &entry].concat());
    assert_eq!(rule(&short), BrokenRule::EndsWithin("a GTID"));
}

#[test]
fn incidents_and_heartbeats_are_read() {
    let bytes = event(EventType::INCIDENT, &[1, 0, 4, b'l', b'o', b's', b't']);
    let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
    assert!(matches!(decoded.body, Body::Incident(incident) if incident.number == 1 && incident.message == b"lost"));
    let bytes = event(EventType::HEARTBEAT, b"bin.000001");
    let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
    assert!(matches!(decoded.body, Body::Heartbeat(beat) if beat.file == b"bin.000001"));
}

#[test]
fn tables_with_columns_of_other_types_are_refused() {
    let table_map = |types: &[u8], metadata: &[u8]| {
        let (count, length) = (u8::try_from(types.len()).unwrap(), u8::try_from(metadata.len()).unwrap());
        let body =
            [&[1, 0, 0, 0, 0, 0, 0, 0, 1, b'd', 0, 1, b't', 0, count][..], types, &[length], metadata, &[0]].concat();
        let bytes = event(EventType::TABLE_MAP, &body);
        let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
        let Body::TableMap(map) = decoded.body else { panic!("no TABLE_MAP") };
        map.table().map(|table| table.columns.len()).map_err(|fault| fault.rule)
    };
    assert_eq!(table_map(&[3, 15], &[10, 0]), Ok(2));
    // MySQL's JSON; the decimals before MySQL 5.0; no type at all.
    for number in [245, 0, 6, 200] {
        assert_eq!(table_map(&[3, number], &[4]), Err(BrokenRule::ColumnType(number)));
    }
    assert_eq!(table_map(&[254], &[200, 1]), Err(BrokenRule::ColumnType(200)));
    assert_eq!(table_map(&[], &[]), Err(BrokenRule::Format("a table has 1 to 4,096 columns")));
    assert_eq!(table_map(&[15], &[10]), Err(BrokenRule::EndsWithin("the metadata of a column")));
    assert_eq!(table_map(&[3], &[1]), Err(BrokenRule::Format("the columns have more metadata than their types")));
    assert_eq!(table_map(&[19], &[7]), Err(BrokenRule::Format("a time has at most 6 fraction digits")));
    assert_eq!(table_map(&[246], &[66, 0]), Err(BrokenRule::Format("a DECIMAL column has 1 to 65 digits")));
    assert_eq!(table_map(&[16], &[1, 8]), Err(BrokenRule::Format("a BIT column has 1 to 64 bits")));
    assert_eq!(table_map(&[252], &[5]), Err(BrokenRule::Format("the length of a BLOB has 1 to 4 bytes")));
}

#[test]
fn formats_of_other_servers_are_refused() {
    let format = |at: usize, value: u8| {
        let mut bytes = events(COMPRESSED)[0].to_vec();
        bytes[at] = value;
        Decoder::new(Checksum::None).read(&bytes).map(|_| ()).map_err(|fault| fault.rule)
    };
    let size = events(COMPRESSED)[0].len();
    assert_eq!(format(19, 4), Ok(()));
    assert_eq!(format(19, 3), Err(BrokenRule::Unsupported("a log of another version than 4")));
    assert_eq!(format(75, 20), Err(BrokenRule::Unsupported("a log whose headers don't have 19 bytes")));
    assert_eq!(format(size - 5, 2), Err(BrokenRule::Unsupported("a checksum other than CRC32")));
    assert_eq!(format(size - 5, 1), Err(BrokenRule::Checksum));
    // The size of the fixed part of a TABLE_MAP, by which the events behind are read.
    for other in [6, 9] {
        let mut bytes = events(COMPRESSED)[0].to_vec();
        bytes[76 + usize::from(EventType::TABLE_MAP.0) - 1] = other;
        let mut decoder = Decoder::new(Checksum::None);
        decoder.read(&bytes).unwrap();
        let fault = decoder.read(&event(EventType::TABLE_MAP, &[0; 40])).unwrap_err();
        assert_eq!(fault.rule, BrokenRule::Unsupported("an event whose fixed part has another size than MariaDB's"));
    }
}

#[test]
fn metadata_of_columns_that_a_table_does_not_have_is_refused() {
    let table = |optional: &[u8]| {
        let body = [&[1, 0, 0, 0, 0, 0, 0, 0, 1, b'd', 0, 1, b't', 0, 2, 3, 15, 2, 10, 0, 0][..], optional].concat();
        let bytes = event(EventType::TABLE_MAP, &body);
        let decoded = Decoder::new(Checksum::None).read(&bytes).unwrap();
        let Body::TableMap(map) = decoded.body else { panic!("no TABLE_MAP") };
        map.table().map_err(|fault| fault.rule)
    };
    let outside = BrokenRule::Format("metadata is of a column that the table does not have");
    let more = BrokenRule::Format("metadata is of more columns than the table has");
    let named = table(&[1, 1, 0x80, 2, 1, 45, 4, 4, 1, b'a', 1, b'b', 8, 1, 1]).unwrap();
    assert!(named.has_names());
    assert_eq!(named.columns[0].unsigned, Some(true));
    assert_eq!((named.columns[0].collation, named.columns[1].collation), (None, Some(45)));
    assert_eq!((named.primary_key[0].column, named.primary_key[0].prefix), (1, None));
    assert_eq!(table(&[9, 2, 0, 7]).unwrap().primary_key[0].prefix, Some(7));
    assert_eq!(table(&[12, 1, 0x40]).unwrap().columns[1].visible, Some(true));
    assert_eq!(table(&[8, 1, 2]), Err(outside));
    assert_eq!(table(&[2, 3, 45, 1, 8]), Err(outside));
    assert_eq!(table(&[3, 2, 45, 8]), Err(more));
    assert_eq!(table(&[4, 2, 1, b'a']), Err(BrokenRule::EndsWithin("the name of a column")));
    assert_eq!(table(&[4, 4, 1, 0xFF, 1, b'b']), Err(BrokenRule::Format("a name is not UTF-8")));
    assert_eq!(table(&[3, 4, 253, 1, 0, 1]), Err(BrokenRule::Format("the number of a collation is more than 65,535")));
    assert_eq!(table(&[1, 9, 0]), Err(BrokenRule::EndsWithin("metadata")));
    assert_eq!(table(&[77, 1, 0]).map(|table| table.has_names()), Ok(false), "a kind of later servers");
}

#[test]
fn a_char_may_be_longer_than_255_bytes() {
    // The ninth and tenth bit of the length are in the type: 0xEE is 254 with one of them inverted.
    let map = event(EventType::TABLE_MAP, &[1, 0, 0, 0, 0, 0, 0, 0, 1, b'd', 0, 1, b't', 0, 1, 254, 2, 0xEE, 0x90, 0]);
    let decoded = Decoder::new(Checksum::None).read(&map).unwrap();
    let Body::TableMap(map) = decoded.body else { panic!("no TABLE_MAP") };
    assert_eq!(map.table().unwrap().columns[0].column_type, ColumnType::Char { max_bytes: 400 });
}
