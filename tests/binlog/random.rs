//! Random tables with columns of every type, and random changes of their rows: a copy of each table that is kept by the
//! decoded changes alone must always equal the table. `SELKIE_BINLOG_SEED=… SELKIE_BINLOG_ROUNDS=1` repeats a failure.

use crate::dice::Dice;
use crate::kinds::{Column, Shown};
use crate::literals::Values;
use crate::log_file::{DECOMPRESSED_MAX_BYTES, LogFile};
use binlog::charset::Utf8;
use binlog::{Cell, EventType, Image, Table, Value, address};
use machines::logged::Logged;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::collections::{BTreeMap, BTreeSet};

const ROUNDS: u64 = 60;
const COLUMNS_MAX_COUNT: usize = 14;
const STATEMENTS: usize = 10;

/// A value as text, or NULL; `None` if an image lacked the column.
type Known = Option<Option<String>>;
type Rows = BTreeMap<String, Vec<Known>>;

#[tokio::test]
async fn decoded_changes_are_what_a_select_shows() {
    let arguments = ["--log-bin-compress-min-len=10", "--innodb-strict-mode=OFF"];
    let server = Logged::start(&arguments).await.unwrap();
    let setting = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, rounds) =
        (setting("SELKIE_BINLOG_SEED").unwrap_or(1), setting("SELKIE_BINLOG_ROUNDS").unwrap_or(ROUNDS));
    let mut seen = BTreeSet::new();
    for seed in first..first + rounds {
        println!("SELKIE_BINLOG_SEED={seed} SELKIE_BINLOG_ROUNDS=1");
        seen.extend(round(&server, seed).await);
    }
    let kinds = [EventType::WRITE_ROWS_V1, EventType::WRITE_ROWS_COMPRESSED_V1];
    let mut all = kinds.iter().flat_map(|kind| kind.0..kind.0 + 3);
    assert!(rounds < ROUNDS || all.all(|kind| seen.contains(&kind)), "a kind of rows was never logged: {seen:?}");
}

struct Round<'a> {
    server: &'a Logged,
    conn: Conn,
    log: LogFile,
    columns: Vec<Column>,
    is_old: bool,
    has_full_images: bool,
    rows: Rows,
}

/// Returns the numbers of the types of events that were decoded.
async fn round(server: &Logged, seed: u64) -> BTreeSet<u8> {
    let mut dice = Dice::new(seed);
    let mut conn = server.server().connect().await.unwrap();
    let version: String = conn.query_first("SELECT VERSION()").await.unwrap().unwrap();
    let is_11 = version.starts_with("11.");
    let mut count = dice.between(1, COLUMNS_MAX_COUNT);
    // Rows of more than 65,535 bytes are refused by MariaDB; a table of this many columns has more bits than a byte.
    if dice.chance(10) {
        count = 40;
    }
    let columns: Vec<Column> = (0..count).map(|_| Column::random(&mut dice, is_11)).collect();
    let is_old = dice.chance(20);
    let images: &[&str] = if is_11 {
        &["FULL", "FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"]
    } else {
        &["FULL", "FULL", "MINIMAL", "NOBLOB"]
    };
    let image = *dice.pick(images);
    let settings = [
        format!("SET GLOBAL mysql56_temporal_format = {}", if is_old { "OFF" } else { "ON" }),
        format!("SET GLOBAL log_bin_compress = {}", if dice.chance(50) { "ON" } else { "OFF" }),
        format!("SET GLOBAL binlog_checksum = {}", if dice.chance(30) { "NONE" } else { "CRC32" }),
        format!("SET SESSION binlog_row_image = {image}"),
        "SET SESSION sql_mode = '', time_zone = '+00:00', binlog_format = ROW".to_owned(),
        "SET NAMES utf8mb4".to_owned(),
        "FLUSH BINARY LOGS".to_owned(),
        "CREATE DATABASE IF NOT EXISTS random".to_owned(),
        "USE random".to_owned(),
        create(&columns),
    ];
    for setting in settings {
        conn.query_drop(&setting).await.unwrap_or_else(|fault| panic!("{fault}: {setting}"));
    }
    let mut round = Round {
        server,
        conn,
        log: LogFile::new(),
        columns,
        is_old,
        has_full_images: image == "FULL",
        rows: Rows::new(),
    };
    for _ in 0..STATEMENTS {
        let statement = round.statement(&mut dice);
        round.conn.query_drop(&statement).await.unwrap_or_else(|fault| panic!("{fault}: {statement}"));
        round.follow(&statement).await;
    }
    round.conn.query_drop("DROP TABLE t").await.unwrap();
    round.conn.disconnect().await.unwrap();
    round.log.seen
}

fn create(columns: &[Column]) -> String {
    let columns: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let null = if column.is_generated() { "" } else { " NULL" };
            format!("c{at} {}{null}", column.definition)
        })
        .collect();
    format!("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, {}) CHARACTER SET utf8mb4", columns.join(", "))
}

impl Round<'_> {
    fn statement(&self, dice: &mut Dice) -> String {
        let settable = || self.columns.iter().enumerate().filter(|(_, column)| !column.is_generated());
        let names: Vec<String> = settable().map(|(at, _)| format!(", c{at}")).collect();
        match dice.below(10) {
            0..=4 => {
                let row = |_| {
                    let values: Vec<String> =
                        settable().map(|(_, column)| format!(", {}", column.values.literal(dice))).collect();
                    format!("({}{})", dice.below(1_000_000), values.concat())
                };
                let rows: Vec<String> = (0..3).map(row).collect();
                format!("INSERT IGNORE INTO t (id{}) VALUES {}", names.concat(), rows.join(", "))
            }
            5..=8 => {
                let changed: Vec<(usize, &Column)> = settable().filter(|_| dice.chance(60)).collect();
                let changed: Vec<String> =
                    changed.iter().map(|(at, column)| format!(", c{at} = {}", column.values.literal(dice))).collect();
                let remainder = dice.below(3);
                format!("UPDATE IGNORE t SET id = id + 1000000{} WHERE id % 3 = {remainder}", changed.concat())
            }
            _ => format!("DELETE FROM t WHERE id % 4 = {}", dice.below(4)),
        }
    }

    /// Applies the changes that were logged, and compares with the table.
    async fn follow(&mut self, statement: &str) {
        let path = self.server.log().unwrap();
        let (columns, is_old, is_full, rows) = (&self.columns, self.is_old, self.has_full_images, &mut self.rows);
        let describe = |table: &mut Table| {
            assert!(table.has_names(), "{table:?}");
            for (at, column) in columns.iter().enumerate().filter(|_| is_old) {
                table.set_fraction_digits(at + 1, column.digits);
            }
        };
        self.log.each_change(&path, describe, |table, change| {
            assert_eq!(table.primary_key.len(), 1, "{table:?}");
            let before = change.before.map(|image| printed(columns, &image));
            let mut after = change.after.map(|image| printed(columns, &image));
            // MariaDB 11.8 leaves generated columns out of the first image of an update.
            for image in before.iter().chain(&after).filter(|_| is_full) {
                let absent = |(known, column): (&Known, &Column)| known.is_none() && !column.is_generated();
                assert!(!image.iter().skip(1).zip(columns).any(absent), "a column is absent: {statement}: {image:?}");
            }
            if let Some(before) = &before {
                let known = rows.remove(&id(before)).unwrap_or_else(|| panic!("no such row: {before:?}"));
                assert_agrees(columns, &known, before, statement);
                // A virtual column may be absent though it changed.
                let is_generated = |at: &usize| at.checked_sub(1).is_some_and(|at| columns[at].is_generated());
                for (at, (after, known)) in after.iter_mut().flatten().zip(known).enumerate() {
                    if after.is_none() && !is_generated(&at) {
                        *after = known;
                    }
                }
            }
            if let Some(after) = after {
                assert!(rows.insert(id(&after), after).is_none(), "a row was inserted twice: {statement}");
            }
        });
        let selected = self.select().await;
        assert_eq!(
            self.rows.keys().collect::<Vec<_>>(),
            selected.keys().collect::<Vec<_>>(),
            "other rows than the table's: {statement}"
        );
        for (id, selected) in &selected {
            assert_agrees(&self.columns, &self.rows[id], selected, statement);
        }
        self.rows = selected;
    }

    async fn select(&mut self) -> Rows {
        let shown = self.columns.iter().enumerate().map(|(at, column)| match column.shown {
            Shown::Text if matches!(column.values, Values::Bits(_)) => format!(", c{at} + 0"),
            Shown::Text | Shown::Uuid | Shown::Inet4 | Shown::Inet6 => format!(", c{at}"),
            Shown::Number => format!(", CAST(c{at} AS DOUBLE)"),
            Shown::Foreign | Shown::Binary => format!(", HEX(c{at})"),
        });
        let query = format!("SELECT id{} FROM t", shown.collect::<String>());
        let rows: Vec<mysql_async::Row> = self.conn.query(query).await.unwrap();
        rows.into_iter()
            .map(|row| {
                let text = |value| match value {
                    mysql_async::Value::NULL => Some(None),
                    mysql_async::Value::Bytes(bytes) => Some(Some(String::from_utf8(bytes).unwrap())),
                    other => panic!("not text: {other:?}"),
                };
                let mut row: Vec<Known> = row.unwrap().into_iter().map(text).collect();
                for (value, column) in row.iter_mut().skip(1).zip(&self.columns) {
                    if let (Shown::Number, Some(Some(text))) = (column.shown, value) {
                        *text = number(text);
                    }
                }
                (id(&row), row)
            })
            .collect()
    }
}

fn id(row: &[Known]) -> String {
    row[0].clone().flatten().expect("an id")
}

fn assert_agrees(columns: &[Column], one: &[Known], other: &[Known], statement: &str) {
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        let definition = at.checked_sub(1).map(|at| &columns[at].definition);
        let agrees = one.is_none() || other.is_none() || one == other;
        assert!(agrees, "{definition:?}: {one:?} is not {other:?}: {statement}");
    }
}

/// Prints each column of an image as [`Round::select`] does.
fn printed(columns: &[Column], image: &Image<'_>) -> Vec<Known> {
    let shown = std::iter::once(Shown::Text).chain(columns.iter().map(|column| column.shown));
    let cells = image.cells().map(|cell| cell.unwrap_or_else(|fault| panic!("{fault}: {image:?}")));
    cells
        .zip(shown)
        .map(|(cell, shown)| match cell {
            Cell::Absent => None,
            Cell::Null => Some(None),
            Cell::Value(value) => Some(Some(print(&value, shown))),
        })
        .collect()
}

fn print(value: &Value<'_>, shown: Shown) -> String {
    let bytes = || match value {
        Value::Text(text) => text.bytes(DECOMPRESSED_MAX_BYTES).unwrap().into_owned(),
        Value::Enum(value) => value.member().unwrap().to_vec(),
        Value::Set(value) => value.members().unwrap().collect::<Vec<_>>().join(&b','),
        Value::Geometry(bytes) => bytes.to_vec(),
        other => panic!("no bytes: {other:?}"),
    };
    let hex = || bytes().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let utf8 = value.to_utf8(DECOMPRESSED_MAX_BYTES).unwrap();
    match (shown, utf8) {
        (Shown::Text, Utf8::Text(text)) => text.into_owned(),
        (Shown::Number, Utf8::Text(text)) => match value {
            Value::Float(single) => number(&f64::from(*single).to_string()),
            _ => number(&text),
        },
        (Shown::Binary, Utf8::Binary) => hex(),
        (Shown::Uuid, Utf8::Binary) => address::uuid(&bytes()).unwrap(),
        (Shown::Inet4, Utf8::Binary) => address::inet4(&bytes()).unwrap(),
        (Shown::Inet6, Utf8::Binary) => address::inet6(&bytes()).unwrap(),
        (Shown::Foreign, Utf8::NeedsServer) => hex(),
        // An empty set or an invalid member has no text that could need the server.
        (Shown::Foreign, Utf8::Text(text)) if text.is_empty() => hex(),
        (shown, utf8) => panic!("{utf8:?} for {shown:?}: {value:?}"),
    }
}

/// Equal texts for equal numbers.
fn number(text: &str) -> String {
    format!("{:e}", text.parse::<f64>().unwrap())
}
