//! Decodes logs that MariaDB 10.11 and 11.8 have written, and compares with what was checked by eye:
//! `SELKIE_BLESS=1 cargo test -p selkie-binlog` writes the texts again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use binlog::charset::Utf8;
use binlog::{Body, Cell, Checksum, Decoder, Event, Header, Image, Rows, Table, Value};
use std::fmt::Write as _;
use std::path::PathBuf;

const MAGIC_BYTES: usize = 4;
const DECOMPRESSED_MAX_BYTES: usize = 1 << 20;
/// Files, and a stream whose connection asked for checksums, over logs with and without them.
const LOGS: [(&str, Checksum); 6] = [
    ("rows-10.11", Checksum::None),
    ("rows-11.8", Checksum::None),
    ("compressed", Checksum::None),
    ("partial", Checksum::None),
    ("old-times", Checksum::None),
    ("stream", Checksum::Crc32),
];
/// Fraction digits of the columns of table `t`, for the format of MariaDB 5.3.
const DIGITS: [u8; 7] = [0, 0, 2, 6, 0, 3, 6];

#[test]
fn logs_of_mariadb_are_decoded() {
    for (name, checksum) in LOGS {
        let golden = data(&format!("{name}.txt"));
        let shown = show(name, checksum);
        if std::env::var_os("SELKIE_BLESS").is_some() {
            std::fs::write(&golden, &shown).unwrap();
        }
        assert_eq!(shown, std::fs::read_to_string(&golden).unwrap(), "{name}");
    }
}

#[test]
fn a_transaction_is_the_same_from_both_versions_and_compressed() {
    let rows = |name: &str| -> Vec<String> {
        let shown = show(name, Checksum::None);
        let until_xa = shown.lines().take_while(|line| !line.contains("xid: Some"));
        until_xa.filter(|line| line.starts_with("  ") && !line.starts_with("    ")).map(str::to_owned).collect()
    };
    assert_eq!(rows("rows-10.11").len(), 8);
    assert_eq!(rows("rows-10.11"), rows("rows-11.8"));
    assert_eq!(rows("rows-10.11"), rows("compressed"));
}

fn data(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

fn show(name: &str, checksum: Checksum) -> String {
    let log = std::fs::read(data(&format!("{name}.binlog"))).unwrap();
    let mut decoder = Decoder::new(checksum);
    let (mut at, mut shown, mut tables) = (MAGIC_BYTES, String::new(), Vec::new());
    while at < log.len() {
        let size = Header::read(&log[at..]).unwrap().size as usize;
        let event = decoder.read(&log[at..at + size]).unwrap_or_else(|fault| panic!("{fault}"));
        show_event(&event, &mut tables, &mut shown);
        at += size;
    }
    shown
}

fn show_event(event: &Event<'_>, tables: &mut Vec<Table>, shown: &mut String) {
    let Header { event_type, server_id, log_pos, flags, .. } = event.header;
    write!(shown, "{event_type} server {server_id} end {log_pos} flags {flags}: ").unwrap();
    match &event.body {
        Body::Gtid(gtid) => writeln!(shown, "{gtid:?}"),
        Body::GtidList(list) => writeln!(shown, "{:?}", list.gtids().collect::<Vec<_>>()),
        Body::Query(query) => {
            let statement = query.statement(DECOMPRESSED_MAX_BYTES).unwrap();
            let (database, statement) = (lossy(query.database), lossy(&statement));
            writeln!(shown, "[{database}] error {} collation {:?}: {statement}", query.error_code, query.collation())
        }
        Body::AnnotateRows(statement) => writeln!(shown, "{}", lossy(statement)),
        Body::FormatDescription(format) => writeln!(shown, "{} {:?}", lossy(format.server_version), format.checksum),
        Body::Rotate(rotate) => writeln!(shown, "{} {}", lossy(rotate.file), rotate.position),
        Body::BinlogCheckpoint(file) => writeln!(shown, "{}", lossy(file)),
        Body::TableMap(map) => {
            let mut table = map.table().unwrap();
            if table.name == "t" {
                for (column, digits) in DIGITS.iter().enumerate() {
                    table.set_fraction_digits(column, *digits);
                }
            }
            show_table(&table, shown);
            tables.push(table);
            Ok(())
        }
        Body::Rows(rows) => {
            let table = tables.iter().rfind(|table| table.id == rows.table_id).unwrap();
            show_rows(rows, table, shown);
            Ok(())
        }
        other => writeln!(shown, "{other:?}"),
    }
    .unwrap();
}

fn show_table(table: &Table, shown: &mut String) {
    writeln!(shown, "{}.{} key {:?}", table.database, table.name, table.primary_key).unwrap();
    for column in &table.columns {
        let members: Option<Vec<String>> =
            column.members.as_ref().map(|members| members.iter().map(|member| lossy(member)).collect());
        let (name, column_type) = (column.name.as_deref().unwrap_or("?"), column.column_type);
        write!(shown, "    {name} {column_type:?} null {} unsigned {:?}", column.nullable, column.unsigned).unwrap();
        writeln!(shown, " collation {:?} members {members:?} geometry {:?}", column.collation, column.geometry_type)
            .unwrap();
    }
}

fn show_rows(rows: &Rows<'_>, table: &Table, shown: &mut String) {
    writeln!(shown, "{:?} flags {}", rows.kind, rows.flags).unwrap();
    let data = rows.data(DECOMPRESSED_MAX_BYTES).unwrap();
    for change in data.changes(table).unwrap() {
        let change = change.unwrap();
        let image = |image: Option<Image<'_>>| image.map_or(String::new(), |image| show_image(&image));
        writeln!(shown, "  {} → {}", image(change.before), image(change.after)).unwrap();
    }
}

fn show_image(image: &Image<'_>) -> String {
    let cells = image.cells().map(|cell| match cell {
        Ok(Cell::Absent) => "-".to_owned(),
        Ok(Cell::Null) => "NULL".to_owned(),
        Ok(Cell::Value(value)) => show_value(&value),
        Err(fault) => format!("<{fault}>"),
    });
    cells.collect::<Vec<_>>().join("|")
}

fn show_value(value: &Value<'_>) -> String {
    match value.to_utf8(DECOMPRESSED_MAX_BYTES) {
        Ok(Utf8::Text(text)) => text.into_owned(),
        Ok(other) => match value {
            Value::Text(text) => format!("{other:?} {:02x?}", text.bytes(DECOMPRESSED_MAX_BYTES).unwrap()),
            other => format!("{other:02x?}"),
        },
        Err(fault) => format!("<{fault}>"),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
