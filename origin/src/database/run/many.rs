//! Streams a read of many records row by row, then their total count and the cursor of the next page, if requested.

pub use super::rows::SecondConnection;
use super::rows::{RelatedReads, RowWriter};
use super::{CHUNK_BYTES, Chunks, SessionEffect, StatementStats, bind, values, within, within_since};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::pool::Lease;
use crate::query::catalog::Layout;
use crate::query::cursor::ReadCursors;
use crate::query::plan::include::Included;
use crate::query::sql::Statement;
use bytes::Bytes;
use mysql_async::prelude::{FromRow as _, Queryable as _};
use shared::envelope::Trailer;
use shared::format::Format;
use shared::limits::INCLUDE_BATCH_MAX_RECORDS;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Reading {
    pub statement: Statement,
    pub layout: Arc<Layout>,
    pub format: Format,
    pub limit: Option<RowLimit>,
    pub counting: Option<Counting>,
    pub includes: Vec<Included>,
    /// The source of a second connection. Needed if [`Reading::may_need_second_connection`].
    pub second_connection: Option<SecondConnection>,
}

impl Reading {
    /// Returns whether a second connection may have to read related records while the first one still streams.
    pub fn may_need_second_connection(&self) -> bool {
        let is_one_batch = self.limit.as_ref().is_some_and(|limit| limit.rows < INCLUDE_BATCH_MAX_RECORDS as u64);
        !self.includes.is_empty() && !is_one_batch
    }
}

#[derive(Debug)]
pub struct RowLimit {
    pub rows: u64,
    /// Whether `limit` is the maximum of the server or of the caller's role, and the request asks for more rows.
    pub is_maximum: bool,
    pub next: Option<NextPage>,
    /// Whether the response's head says that rows follow. Formats without a trailer fail if rows follow unannounced:
    /// tables of engines without transactions may get such rows in spite of the snapshot.
    pub is_announced: bool,
}

#[derive(Debug)]
pub struct NextPage {
    pub cells: Vec<usize>,
    pub cursors: ReadCursors,
}

#[derive(Debug)]
pub struct Counting {
    pub statement: Statement,
    /// The number of rows before the first returned row; `None` if unknown.
    pub before: Option<u64>,
    pub limit: Option<u64>,
}

impl Counting {
    fn known_count(&self, rows: u64, more: bool) -> Option<u64> {
        let before = self.before?;
        let ended = !more && self.limit != Some(0);
        (ended && (rows > 0 || before == 0)).then(|| before + rows)
    }
}

/// Streams the read. `limit` is the time limit for each chunk, for each batch of related records, and for the count.
pub fn many(
    mut lease: Lease,
    reading: Box<Reading>,
    effect: SessionEffect,
    limit: Duration,
    progress: Arc<StatementStats>,
) -> Chunks {
    Box::pin(async_stream::try_stream! {
        let Reading { statement, layout, format, limit: row_limit, counting, includes, second_connection } = *reading;
        let (text, params) = statement.into_parts();
        lease.expect(effect);
        lease.begin();
        let bound = lease.limit(limit);
        let mut started = Instant::now();
        let mut long_rows = lease.long_rows()?;
        let connection = lease.connection()?;
        let began = within(bound.clone(), connection.run(&text, bind(params))).await;
        let mut result = match began {
            Ok(result) => result,
            Err(error) => Err(lease.failed_and_reset(error).await)?,
        };
        let columns = result.columns().unwrap_or_default();
        let mut rows = RowWriter::new(&layout, &columns, format, RelatedReads { includes, second_connection, effect, limit });
        let page_rows = row_limit.as_ref().map_or(u64::MAX, |limit| limit.rows);
        let may_follow = format.has_trailer() || row_limit.as_ref().is_none_or(|limit| limit.is_announced);
        let mut more = false;
        loop {
            let next = async { long_rows.admit(result.next().await?).await };
            match within_since(started, bound.clone(), next).await {
                Ok(Some(_)) if rows.count() == page_rows => {
                    more = true;
                    if !may_follow {
                        // The response's head, which promises all rows, has already been sent.
                        drop(result);
                        Err(lease.failed_and_reset(DbError::RowsAdded).await)?;
                        return;
                    }
                }
                Ok(Some(row)) => {
                    rows.add(row);
                    if rows.is_batch_full() {
                        rows.relate_on_second_connection().await?;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    drop(result);
                    Err(lease.failed_and_reset(error).await)?;
                    return;
                }
            }
            if rows.encoder.len() >= CHUNK_BYTES {
                progress.add_time(started);
                progress.add_rows(rows.encoder.rows() - progress.rows());
                yield Bytes::from(rows.encoder.take());
                long_rows.release();
                started = Instant::now();
            }
        }
        if let Err(error) = rows.relate(&mut lease).await {
            Err(lease.failed_and_reset(error).await)?;
        }
        let ending = async {
            let count = count(&mut lease, counting.as_ref(), rows.encoder.rows(), more, (effect, limit)).await?;
            if !format.has_trailer() && row_limit.is_some() {
                end_snapshot(&mut lease, (effect, limit)).await?;
            }
            Ok(count)
        };
        let ended: Result<Option<u64>, DbError> = ending.await;
        let count = match ended {
            Ok(count) => count,
            Err(error) => Err(lease.failed_and_reset(error).await)?,
        };
        progress.add_time(started);
        progress.add_rows(rows.encoder.rows() - progress.rows());
        lease.end();
        lease.reset_if_dirty().await;
        drop(lease);
        let (encoder, last) = rows.finish();
        let limited = more && row_limit.as_ref().is_some_and(|limit| limit.is_maximum);
        let next = match (more, row_limit.and_then(|limit| limit.next), last) {
            (true, Some(page), Some(row)) => Some(page.cursors.token(&values(&row, &page.cells))),
            _ => None,
        };
        let more = more && next.is_none();
        yield Bytes::from(encoder.finish_with(&Trailer { count, limited, next, more, ..Trailer::default() }));
    })
}

async fn count(
    lease: &mut Lease,
    counting: Option<&Counting>,
    rows: u64,
    more: bool,
    (effect, limit): (SessionEffect, Duration),
) -> Result<Option<u64>, DbError> {
    let Some(counting) = counting else {
        return Ok(None);
    };
    if let Some(count) = counting.known_count(rows, more) {
        return Ok(Some(count));
    }
    let work = async |connection: &mut Connection| number(connection, &counting.statement).await;
    lease.run(effect, limit, None, work).await
}

/// Commits the transaction that `has_row` began.
async fn end_snapshot(lease: &mut Lease, (effect, limit): (SessionEffect, Duration)) -> Result<(), DbError> {
    let commit = async |connection: &mut Connection| Ok(connection.conn.query_drop("COMMIT").await?);
    lease.run(effect, limit, None, commit).await?;
    if effect == SessionEffect::Nothing {
        lease.mark_clean();
    }
    Ok(())
}

async fn number(connection: &mut Connection, statement: &Statement) -> Result<Option<u64>, DbError> {
    let params = bind(statement.params().to_vec());
    let mut result = connection.run(statement.text(), params).await?;
    let row = result.next().await?;
    result.drop_result().await?;
    Ok(row.and_then(|row| u64::from_row_opt(row).ok()))
}
