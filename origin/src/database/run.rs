//! Runs statements: reads of one record, streamed reads of many, and writes. Callers pass [`Statement`]s, not SQL text.
//! A streamed read encodes each row when it arrives; only rows with related records are collected, in batches. The
//! records that a write returns are held until the write ends.

pub mod images;
mod many;
mod progress;
pub(super) mod related;
mod rows;
pub mod snapshot;

use super::connection::{Connection, DefaultSchema, SessionState};
pub(super) use super::deadline::{within, within_since};
use super::error::DbError;
use super::json::Decoder;
use super::long_rows;
use super::pool::Lease;
use super::position::Position;
pub(super) use super::prepared_statements::{bind, values};
use crate::query::catalog::{Kind, Layout, Table};
use crate::query::plan::include::Included;
use crate::query::sql::{self, RecordColumns, ResultColumns, Statement};
use bytes::Bytes;
use futures_util::Stream;
pub use many::{Counting, NextPage, Reading, RowLimit, SecondConnection, many};
use mysql_async::prelude::{FromRow as _, Queryable as _};
use mysql_async::{Column, Row, Value};
pub use progress::{STEPS_MAX_COUNT, StatementStats, Step, StepKind};
use related::{CellWriter, size};
use shared::envelope::{ColumnLabels, Encoder, Shape, write_object, write_string};
use shared::format::Format;
use shared::limits::{BATCH_ANSWER_MAX_BYTES, BATCH_ANSWER_MAX_ROWS};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The size at which a chunk is sent. A chunk is larger by up to one row, or a batch of rows with related records.
pub(super) const CHUNK_BYTES: usize = 32 * 1024;
/// The initial capacity of a chunk's buffer: enough for most chunks with the row that completes them.
pub(super) const CHUNK_ROOM_BYTES: usize = CHUNK_BYTES + CHUNK_BYTES / 4;
const ONE_CAPACITY: usize = 1024;
/// Begins a snapshot, which MariaDB ignores at other isolation levels.
const SNAPSHOT: [&str; 2] =
    ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT"];

pub type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, DbError>> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEffect {
    Nothing,
    Anything,
}

impl SessionEffect {
    pub fn of(table: &Table) -> Self {
        match table.traits().stored_code {
            true => Self::Anything,
            false => Self::Nothing,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    One(Vec<u8>),
    Several,
}

#[derive(Debug)]
pub struct ReadingOne {
    pub statement: Statement,
    pub layout: Arc<Layout>,
    pub includes: Vec<Included>,
    pub format: Format,
}

pub async fn one(
    mut lease: Lease,
    reading: ReadingOne,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<Found, DbError> {
    let ReadingOne { statement, layout, includes, format } = reading;
    let mut long_rows = lease.long_rows()?;
    let work = async |connection: &mut Connection| {
        let (first, second) = first_two_rows(connection, statement).await?;
        match (long_rows.admit(first).await?, second) {
            (Some(row), None) if !includes.is_empty() => {
                with_related(connection, row, &layout, &includes, format, progress).await
            }
            (Some(row), None) => Ok(encode_record(&row, &layout, format, progress)),
            (Some(_), Some(_)) => Ok(Found::Several),
            (None, _) => Ok(Found::Nothing),
        }
    };
    let found = lease.run(effect, limit, Some(progress), work).await;
    lease.reset_if_dirty().await;
    found
}

async fn with_related(
    connection: &mut Connection,
    row: Row,
    layout: &Layout,
    includes: &[Included],
    format: Format,
    progress: &StatementStats,
) -> Result<Found, DbError> {
    let decoders = decoders(Some(&layout.kinds), row.columns_ref());
    let rows = [row];
    let members = related::members(connection, includes, &rows).await?;
    let mut encoder = Encoder::begin_as(format, Shape::Row, &layout.keys, ONE_CAPACITY);
    write_rows(&mut encoder, layout, &decoders, &rows, &members);
    progress.add_rows(1);
    Ok(Found::One(encoder.finish()))
}

pub(super) fn encode_record(row: &Row, layout: &Layout, format: Format, progress: &StatementStats) -> Found {
    let decoders = decoders(Some(&layout.kinds), row.columns_ref());
    let mut encoder = Encoder::begin_as(format, Shape::Row, &layout.keys, ONE_CAPACITY);
    write_row(&mut encoder, &layout.keys, &decoders, row);
    progress.add_rows(1);
    Found::One(encoder.finish())
}

/// Returns whether the read has a row. Begins the snapshot in which [`many()`] then reads the rows with the same lease.
pub async fn has_row(
    lease: &mut Lease,
    statement: Statement,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<bool, DbError> {
    let work = async |connection: &mut Connection| {
        for command in SNAPSHOT {
            connection.conn.query_drop(command).await?;
        }
        Ok(first_two_rows(connection, statement).await?.0)
    };
    // The transaction must not outlast the lease.
    lease.mark_dirty();
    match lease.run(effect, limit, Some(progress), work).await {
        Ok(row) => Ok(row.is_some()),
        Err(error) => {
            lease.reset_if_dirty().await;
            Err(error)
        }
    }
}

async fn first(
    lease: &mut Lease,
    statement: Statement,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<Option<Row>, DbError> {
    let work = async |connection: &mut Connection| Ok(first_two_rows(connection, statement).await?.0);
    lease.run(effect, limit, Some(progress), work).await
}

/// Returns the first two rows. The second row costs no round trip, and tells whether there are several.
pub(super) async fn first_two_rows(
    connection: &mut Connection,
    statement: Statement,
) -> Result<(Option<Row>, Option<Row>), DbError> {
    let (text, params) = statement.into_parts();
    let mut result = connection.run(&text, bind(params)).await?;
    let first = result.next().await?;
    let second = match first {
        Some(_) => result.next().await?,
        None => None,
    };
    result.drop_result().await?;
    Ok((first, second))
}

/// Returns the first cell of the first row; an empty text if there is no row or the cell is NULL, a number or a date.
pub async fn text(
    mut lease: Lease,
    statement: Statement,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<String, DbError> {
    let row = first(&mut lease, statement, effect, limit, progress).await;
    lease.reset_if_dirty().await;
    let row = row?;
    Ok(match row.as_ref().and_then(|row| row.as_ref(0)) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of rows inserted, deleted, or matched by an UPDATE. An upsert that returns no rows counts a changed
    /// row twice.
    pub affected: u64,
    /// The keys as JSON texts; `null` for a row that was skipped because its key exists.
    pub keys: Vec<Vec<u8>>,
    /// The records as JSON texts; `null` for a skipped row and a record that the caller may not read.
    pub records: Vec<Vec<u8>>,
    pub last_insert_id: u64,
    /// The position of the write, set only for an insert that `database::coalesce` ran.
    pub(super) position: Option<Position>,
    /// A rule of the caller's role that a record breaks: then the transaction must be rolled back.
    pub(super) denied: Option<Denied>,
}

/// Why a role does not allow a written record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    Rule,
    /// The field is a foreign key that points to a record that the caller may not read.
    Reference(Box<str>),
}

impl Denied {
    fn of(verdict: &Value, references: &[Box<str>]) -> Self {
        let number = match verdict {
            Value::Int(number) => usize::try_from(*number).ok(),
            _ => None,
        };
        let at = number.and_then(|number| number.checked_sub(ResultColumns::FIRST_REFERENCE));
        at.and_then(|at| references.get(at)).map_or(Self::Rule, |field| Self::Reference(field.clone()))
    }
}

impl Written {
    pub fn and(&mut self, next: Self) {
        self.affected += next.affected;
        self.keys.extend(next.keys);
        self.records.extend(next.records);
        self.last_insert_id = next.last_insert_id;
        self.denied = self.denied.take().or(next.denied);
    }

    fn skip(&mut self, returns_record: bool) {
        self.keys.push(NULL.to_vec());
        self.records.extend(returns_record.then(|| NULL.to_vec()));
    }
}

/// Runs a write. A duplicate that the statement skips is returned as a skipped row, not as an error. For a list of
/// rows, the error names the row at fault if MariaDB tells which one.
pub(super) async fn execute(connection: &mut Connection, statement: Statement) -> Result<Written, DbError> {
    let (skips_duplicates, sets_variables) = (statement.skips_duplicates(), statement.sets_variables());
    let (batch_offset, returns_record) = (statement.batch_offset(), statement.columns().record.is_some());
    let outcome = read_write_result(connection, statement).await;
    if sets_variables && outcome.as_ref().map_or(true, |written| written.denied.is_some()) {
        connection.session = SessionState::Dirty;
    }
    match outcome {
        Err(error) if skips_duplicates && error.is_duplicate() => {
            let mut written = Written::default();
            written.skip(returns_record);
            Ok(written)
        }
        Err(error @ DbError::Refused(..)) if batch_offset.is_some() => {
            let at = failed_row(connection).await?;
            Err(error.in_row(at.and_then(|at| Some(batch_offset? + usize::try_from(at).ok()?.checked_sub(1)?))))
        }
        outcome => outcome,
    }
}

/// Returns the number of the row at fault, counted from 1; `None` if MariaDB does not tell, as before 10.7.
async fn failed_row(connection: &mut Connection) -> Result<Option<u64>, DbError> {
    connection.session = SessionState::Dirty;
    let [find, read] = sql::failed_row();
    match connection.conn.query_drop(find).await {
        Err(mysql_async::Error::Server(_)) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(()) => {
            let mut result = connection.conn.query_iter(read).await?;
            let row = result.next().await?;
            result.drop_result().await?;
            Ok(row.and_then(|row| u64::from_row_opt(row).ok()))
        }
    }
}

const NULL: &[u8] = b"null";

async fn read_write_result(connection: &mut Connection, statement: Statement) -> Result<Written, DbError> {
    let mut written = Written::default();
    let ResultColumns { skipped, key, record, rule, references, is_check } = statement.columns().clone();
    let (text, params) = statement.into_parts();
    let mut result = connection.run(&text, bind(params)).await?;
    let columns = result.columns().unwrap_or_default();
    let part = |range: &Range<usize>| columns.get(range.clone()).unwrap_or_default();
    let key_decoders = decoders(None, part(&key));
    let record = record.map(|record| (decoders(Some(&record.layout.kinds), part(&record.cells)), record));
    let is_one = |row: &Row, at: usize| *value(row, at) == Value::Int(1);
    let mut bytes = 0;
    while let Some(row) = result.next().await? {
        if skipped.is_some_and(|at| *value(&row, at) != Value::NULL) {
            written.skip(record.is_some());
            continue;
        }
        if let Some(at) = rule.filter(|at| !is_one(&row, *at)) {
            written.denied = Some(Denied::of(value(&row, at), &references));
        }
        if is_check {
            continue;
        }
        if !key_decoders.is_empty() {
            written.keys.push(key_json(&key_decoders, &row, key.start));
        }
        if let Some((decoders, record)) = &record {
            let json = match record.readable {
                Some(at) if !is_one(&row, at) => NULL.to_vec(),
                _ => record_json(record, decoders, &row),
            };
            bytes += json.len();
            written.records.push(json);
            let count = written.records.len();
            if count > 1 && (count > BATCH_ANSWER_MAX_ROWS || bytes > BATCH_ANSWER_MAX_BYTES) {
                return Err(DbError::AnswerTooLarge);
            }
        }
        written.affected += 1;
    }
    if columns.is_empty() {
        written.affected = result.affected_rows();
        written.last_insert_id = result.last_insert_id().unwrap_or_default();
    }
    result.drop_result().await?;
    Ok(written)
}

fn record_json(record: &RecordColumns, decoders: &[Decoder], row: &Row) -> Vec<u8> {
    let cell = |at: usize| value(row, record.cells.start + at);
    let mut out = Vec::new();
    let is_null = |at| *cell(at) == Value::NULL;
    long_rows::encode(size(row), || {
        write_object(&mut out, &record.layout.keys, is_null, |at, out| decoders[at].write(cell(at), out));
    });
    out
}

/// Returns a key as JSON: a single column's value, or the values as a string joined by commas, as in `{id}`.
fn key_json(decoders: &[Decoder], row: &Row, first: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if let [decoder] = decoders {
        decoder.write(value(row, first), &mut out);
        return out;
    }
    let mut joined = String::new();
    for (at, decoder) in decoders.iter().enumerate() {
        let mut part = Vec::new();
        decoder.write(value(row, first + at), &mut part);
        let part = String::from_utf8_lossy(&part).into_owned();
        let part = serde_json::from_str::<String>(&part).unwrap_or(part);
        if at > 0 {
            joined.push(',');
        }
        joined.push_str(&part);
    }
    write_string(&mut out, &joined);
    out
}

/// Returns the number as JSON: a string of digits if the number exceeds 2^53 − 1.
pub fn integer_json(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Decoder::Integer.write(&Value::UInt(number), &mut out);
    out
}

pub(super) fn value(row: &Row, at: usize) -> &Value {
    row.as_ref(at).unwrap_or(&Value::NULL)
}

pub(super) fn write_row(encoder: &mut Encoder, keys: &ColumnLabels, decoders: &[Decoder], row: &Row) {
    long_rows::encode(size(row), || write_cells(encoder, keys, decoders, |at| value(row, at)));
}

pub(super) fn write_rows(
    encoder: &mut Encoder,
    layout: &Layout,
    decoders: &[Decoder],
    rows: &[Row],
    members: &[related::Members],
) {
    let cells = CellWriter { decoders, members };
    let keys = &layout.keys;
    for (at, row) in rows.iter().enumerate() {
        let is_null = |cell| *value(row, cell) == Value::NULL;
        long_rows::encode(size(row), || {
            encoder.row(keys, is_null, |cell, out| cells.write((row, at), (cell, keys.len()), out));
        });
    }
}

pub(super) fn write_cells<'a>(
    encoder: &mut Encoder,
    keys: &ColumnLabels,
    decoders: &[Decoder],
    cell: impl Fn(usize) -> &'a Value,
) {
    let is_null = |at| *cell(at) == Value::NULL;
    match encoder.format() {
        Format::Envelope | Format::NdJson => encoder.row(keys, is_null, |at, out| {
            decoders[at].write(cell(at), out);
        }),
        Format::Csv => encoder.row(keys, is_null, |at, out| {
            decoders[at].write_csv(cell(at), out);
        }),
    }
}

pub(super) fn decoders(kinds: Option<&[Option<Kind>]>, columns: &[Column]) -> Vec<Decoder> {
    columns
        .iter()
        .enumerate()
        .map(|(at, column)| Decoder::new(kinds.and_then(|kinds| kinds.get(at).copied().flatten()), column))
        .collect()
}

pub(super) fn forget_schema(lease: &mut Lease) {
    if let Ok(connection) = lease.connection() {
        connection.schema = DefaultSchema::Unknown;
    }
}
