//! Runs users' own SQL: one statement, isolated from every other request. The statement is prepared first, so that
//! MariaDB refuses a text with a second statement before anything runs. A statement that may read or leave session
//! state runs in a newly reset session, which is reset again afterwards.

use super::connection::{Connection, DefaultSchema, SessionState};
use super::deadline::Limit;
use super::errno;
use super::error::DbError;
use super::json::Decoder;
use super::long_rows::AnswersLongRows;
use super::pool::Lease;
use super::run::related::size;
use super::run::{self, CHUNK_BYTES, CHUNK_ROOM_BYTES, Chunks, StatementStats, within};
use super::schema_cache::SchemaChange;
use crate::query::sql::Statement;
use crate::query::sql::session::{Effects, Results, Session, combines_rows};
use crate::query::unique_names::UniqueNames;
use bytes::Bytes;
use mysql_async::prelude::{Protocol, Queryable as _};
use mysql_async::{Column, QueryResult, Value};
use shared::envelope::{ColumnLabels, Encoder, Shape, Trailer};
use shared::format::Format;
use shared::ident::DatabaseName;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum encoded size of held results. The result sets of a statement such as CALL are held, because the format
/// of the response depends on their number, which is only known at the end.
const RESULTS_HELD_MAX_BYTES: usize = 16 * 1024 * 1024;

pub struct UserSql {
    pub statement: Statement,
    pub schema: Option<DatabaseName>,
    /// What the statement may do. If several result sets are possible, the format must be the envelope.
    pub effects: Effects,
    /// A guard that is dropped before the last chunk is sent, or when the statement fails or is cancelled. `None` if
    /// the statement can't change the schema.
    pub change: Option<SchemaChange>,
    pub format: Format,
    /// Maximum number of rows of the only result. The format must be the envelope, which tells that more are left.
    pub max_rows: Option<u64>,
}

/// Streams the statement's response. `limit` includes the time that the client takes to receive the response.
pub fn run(mut lease: Lease, call: UserSql, limit: Duration, progress: Arc<StatementStats>) -> Chunks {
    let UserSql { statement, schema, effects, change, format, max_rows } = call;
    let may_be_unprepared = statement.params().is_empty() && format == Format::Envelope && max_rows.is_none();
    Box::pin(async_stream::try_stream! {
        let deadline = Deadline { at: Instant::now() + limit, host: lease.limit(limit) };
        within(deadline.left(), prepare_session(&mut lease, schema, effects)).await?;
        let (text, params) = statement.into_parts();
        let writes = may_write(&text);
        let started = Instant::now();
        let long_rows = lease.long_rows()?;
        let connection = lease.connection()?;
        let params = run::bind(params);
        let preparing = connection.prepare_checked(&text, &params, effects.is_wide);
        let prepared = match within(deadline.left(), preparing).await {
            Ok(prepared) => prepared,
            Err(error) if error.errno() == Some(errno::UNSUPPORTED_PS) && may_be_unprepared => {
                let tail = within(deadline.left(), unprepared(&mut lease, &text, &progress)).await;
                progress.add_time(started);
                if tail.is_ok() && writes {
                    lease.note_position(&progress).await;
                }
                let tail = reset_after(&mut lease, tail).await?;
                drop(change);
                yield Bytes::from(tail);
                return;
            }
            Err(error) => {
                change.into_iter().for_each(SchemaChange::did_not_run);
                Err(lease.failed_and_reset(error).await)?;
                return;
            }
        };
        let began = within(deadline.left(), connection.execute(prepared, params)).await;
        progress.add_time(started);
        let mut result = match began {
            Ok(result) => result,
            Err(error) => Err(lease.failed_and_reset(error).await)?,
        };
        let columns = result.columns().unwrap_or_default();
        let tail = if effects.results == Results::Any {
            let all = within(deadline.left(), several(&mut result, &progress)).await;
            drop(result);
            if all.is_ok() && writes {
                lease.note_position(&progress).await;
            }
            reset_after(&mut lease, all).await?
        } else if columns.is_empty() {
            progress.add_rows(result.affected_rows());
            done(&result, format)
        } else {
            let (keys, decoders) = (unique_keys(&columns), decoders(&text, &columns));
            let encoder = Encoder::begin_as(format, Shape::Rows, &keys, CHUNK_ROOM_BYTES);
            let mut rows = StatementRows { encoder, keys, decoders, long_rows, max_rows, is_cut: false };
            loop {
                let filled = rows.fill(&mut result, &deadline).await;
                progress.add_rows(rows.encoder.rows() - progress.rows());
                match filled {
                    Ok(Filled::Chunk) => yield Bytes::from(rows.encoder.take()),
                    Ok(Filled::Last) => break,
                    Err(error) => {
                        drop(result);
                        Err(lease.failed_and_reset(error).await)?;
                        return;
                    }
                }
            }
            drop(result);
            if rows.is_cut {
                // The rest may be large, so it is not received.
                lease.kill();
            }
            rows.encoder.finish_with(&Trailer { limited: rows.is_cut, ..Trailer::default() })
        };
        lease.end();
        if writes {
            lease.note_position(&progress).await;
        }
        lease.reset_if_dirty().await;
        drop(lease);
        drop(change);
        yield Bytes::from(tail);
    })
}

/// The rows of a statement with one result.
struct StatementRows {
    encoder: Encoder,
    keys: ColumnLabels,
    decoders: Vec<Decoder>,
    long_rows: AnswersLongRows,
    max_rows: Option<u64>,
    is_cut: bool,
}

#[derive(Clone, Copy)]
enum Filled {
    Chunk,
    Last,
}

impl StatementRows {
    /// Encodes rows until a chunk is full. Must be called when the client has taken the chunk before.
    async fn fill<P: Protocol>(
        &mut self,
        result: &mut QueryResult<'_, '_, P>,
        deadline: &Deadline,
    ) -> Result<Filled, DbError> {
        self.long_rows.release();
        while self.encoder.len() < CHUNK_BYTES {
            let next = async { self.long_rows.admit(result.next().await?).await };
            match within(deadline.left(), next).await? {
                Some(_) if self.max_rows.is_some_and(|most| self.encoder.rows() >= most) => {
                    self.is_cut = true;
                    return Ok(Filled::Last);
                }
                Some(row) => run::write_row(&mut self.encoder, &self.keys, &self.decoders, &row),
                None => return Ok(Filled::Last),
            }
        }
        Ok(Filled::Chunk)
    }
}

/// Returns whether the response gets a position: false for a statement that begins with a word in `READS`, even if the
/// statement calls a function that writes.
fn may_write(text: &str) -> bool {
    const READS: [&str; 6] = ["select", "show", "explain", "describe", "desc", "table"];
    // Skips the comment that this program puts before the statement.
    let own = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/")).map_or(text, |(_, own)| own);
    let word = own.trim_start().split(|char: char| !char.is_ascii_alphabetic()).next().unwrap_or_default();
    !READS.iter().any(|read| word.eq_ignore_ascii_case(read))
}

async fn reset_after<T>(lease: &mut Lease, outcome: Result<T, DbError>) -> Result<T, DbError> {
    match outcome {
        Ok(value) => {
            lease.reset_if_dirty().await;
            Ok(value)
        }
        Err(error) => Err(lease.failed_and_reset(error).await),
    }
}

struct Deadline {
    at: Instant,
    /// The host's limit, of which only [`Limit::left`] is used: `time` is replaced by the time until `at`.
    host: Limit,
}

impl Deadline {
    fn left(&self) -> Limit {
        Limit { time: self.at.saturating_duration_since(Instant::now()), ..self.host.clone() }
    }
}

async fn prepare_session(lease: &mut Lease, schema: Option<DatabaseName>, effects: Effects) -> Result<(), DbError> {
    lease.begin();
    let connection = lease.connection()?;
    let prepared = async {
        if schema.is_none() && connection.schema != DefaultSchema::Unset {
            connection.leave_schema().await.map_err(DbError::connecting)?;
        }
        if effects.session == Session::Stateful && connection.session != SessionState::Pristine {
            connection.reset().await.map_err(DbError::connecting)?;
        }
        match schema {
            Some(name) => choose(connection, name).await,
            None => Ok(()),
        }
    }
    .await;
    prepared.map_err(|error| lease.failed(error))?;
    if effects.session == Session::Stateful {
        lease.mark_dirty();
        run::forget_schema(lease);
    }
    Ok(())
}

/// Sets the default database. [`DbError::NoDatabase`]: it does not exist, or the account may not use it.
async fn choose(connection: &mut Connection, name: DatabaseName) -> Result<(), DbError> {
    let wanted = DefaultSchema::Set(name);
    if connection.schema == wanted {
        return Ok(());
    }
    let DefaultSchema::Set(name) = &wanted else {
        return Ok(());
    };
    match connection.conn.query_drop(use_schema(name)).await {
        Ok(()) => {
            connection.schema = wanted;
            Ok(())
        }
        Err(mysql_async::Error::Server(error)) if matches!(error.code, errno::DBACCESS_DENIED | errno::BAD_DB) => {
            Err(DbError::NoDatabase(name.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

fn use_schema(name: &DatabaseName) -> String {
    format!("USE `{}`", name.as_str().replace('`', "``"))
}

fn done<P: Protocol>(result: &QueryResult<'_, '_, P>, format: Format) -> Vec<u8> {
    let keys = ColumnLabels::new(["affectedRows", "insertId", "warnings"]);
    let values = [
        Value::UInt(result.affected_rows()),
        Value::UInt(result.last_insert_id().unwrap_or_default()),
        Value::UInt(result.warnings().into()),
    ];
    let mut encoder = Encoder::begin_as(format, Shape::Row, &keys, 128);
    run::write_cells(&mut encoder, &keys, &[Decoder::Integer; 3], |at| &values[at]);
    encoder.finish()
}

/// Runs a statement that can't be prepared, such as EXECUTE. The text is a single statement: MariaDB parses a text
/// before it refuses to prepare the statement.
async fn unprepared(lease: &mut Lease, text: &str, progress: &StatementStats) -> Result<Vec<u8>, DbError> {
    let conn = &mut lease.connection()?.conn;
    let mut result = conn.query_iter(text).await?;
    let tail = several(&mut result, progress).await?;
    lease.end();
    Ok(tail)
}

async fn several<P: Protocol>(
    result: &mut QueryResult<'_, '_, P>,
    progress: &StatementStats,
) -> Result<Vec<u8>, DbError> {
    let mut encoder = Encoder::begin(Shape::Sets, CHUNK_BYTES);
    let outcome = loop {
        let columns = result.columns().unwrap_or_default();
        if columns.is_empty() {
            let outcome = done(result, Format::Envelope);
            progress.add_rows(result.affected_rows());
            let last = result.is_empty();
            // Reading an empty set moves on to the next one, or returns the error that ended the call.
            result.next().await?;
            if last {
                break outcome;
            }
            continue;
        }
        encoder.next_set();
        let (keys, decoders) = (unique_keys(&columns), run::decoders(None, &columns));
        while let Some(row) = result.next().await? {
            if size(&row) <= RESULTS_HELD_MAX_BYTES {
                run::write_row(&mut encoder, &keys, &decoders, &row);
            }
            if size(&row).max(encoder.len()) > RESULTS_HELD_MAX_BYTES {
                return Err(DbError::ResultsTooLarge);
            }
        }
    };
    progress.add_rows(encoder.rows());
    Ok(if encoder.result_set_count() == 0 { outcome } else { encoder.finish() })
}

fn decoders(text: &str, columns: &[Column]) -> Vec<Decoder> {
    let mut decoders = run::decoders(None, columns);
    if decoders.contains(&Decoder::BitExpression) && combines_rows(text) {
        for (decoder, column) in decoders.iter_mut().zip(columns) {
            *decoder = decoder.combined(column);
        }
    }
    decoders
}

/// Returns the columns' names; a repeated name becomes `name_2`, `name_3`, ….
fn unique_keys(columns: &[Column]) -> ColumnLabels {
    let mut known = UniqueNames::default();
    let names: Vec<_> = columns.iter().map(|column| known.unique(&column.name_str(), "_")).collect();
    ColumnLabels::new(names.iter().map(String::as_str))
}
