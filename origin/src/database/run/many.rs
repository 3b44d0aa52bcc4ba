//! Streams a read of many records row by row, followed by their total count and the cursor of the next page, if
//! requested.

use super::related::{Members, members};
use super::{
    CHUNK_BYTES, CHUNK_ROOM_BYTES, Chunks, Progress, SessionEffect, bind, decoders, driver, values, within,
    within_since, write_row, write_rows,
};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::pool::{Lease, Pools};
use crate::query::catalog::Layout;
use crate::query::cursor::Seal;
use crate::query::plan::include::Included;
use crate::query::sql::Statement;
use crate::shares::Guard;
use bytes::Bytes;
use mysql_async::Row;
use mysql_async::prelude::FromRow as _;
use shared::envelope::{Encoder, Shape, Trailer};
use shared::format::Format;
use shared::ident::ProjectName;
use shared::key::Access;
use shared::limits::INCLUDE_BATCH_MAX_RECORDS;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A read of many records, ready to run.
#[derive(Debug)]
pub struct Reading {
    pub statement: Statement,
    /// The names and kinds of the statement's columns.
    pub layout: Arc<Layout>,
    pub format: Format,
    /// Set if another page may follow.
    pub page: Option<Page>,
    /// Set if the maximum of all reads may withhold rows.
    pub max_rows: Option<MaxRows>,
    /// Set if the total count is requested.
    pub counting: Option<Counting>,
    /// The reads of related records.
    pub includes: Vec<Included>,
    /// Set if the read may return more records than [`INCLUDE_BATCH_MAX_RECORDS`] with related ones.
    pub spare: Option<Spare>,
}

/// A second connection, on which related records are read while the first one still streams.
#[derive(Debug)]
pub struct Spare {
    pub pools: Arc<Pools>,
    pub project: ProjectName,
    pub access: Access,
    /// Bounds the requests that wait for a second connection while they hold the first, so that they can't take all.
    pub guard: Guard,
}

impl Spare {
    async fn lease(&self) -> Result<Lease, DbError> {
        self.pools.lease(&self.project, self.access).await
    }
}

/// A page that another page may follow: its statement reads one row more than `limit`.
#[derive(Debug)]
pub struct Page {
    /// The maximum number of rows to return.
    pub limit: u64,
    /// The indexes of the sort values in a row.
    pub cells: Vec<usize>,
    /// Creates the cursor of the next page.
    pub seal: Seal,
}

/// The maximum of all reads, which is less than the request asks for: the statement reads one row more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRows {
    /// The maximum number of rows to return.
    pub rows: u64,
    /// Whether the response's head says that rows are withheld. Only formats without a trailer need it.
    pub is_announced: bool,
}

/// How to find the total number of records, without limit and offset.
#[derive(Debug)]
pub struct Counting {
    pub statement: Statement,
    /// The number of rows before the first one returned; `None` if unknown.
    pub before: Option<u64>,
    /// The maximum number of rows that the read returns; `None` if unlimited.
    pub limit: Option<u64>,
}

impl Counting {
    /// Returns the total count if it follows from the rows, because they include the last record; `None` otherwise.
    fn known_count(&self, rows: u64, more: bool) -> Option<u64> {
        let before = self.before?;
        let ended = !more && self.limit.is_none_or(|limit| rows < limit);
        (ended && (rows > 0 || before == 0)).then(|| before + rows)
    }
}

/// Runs a read of many records. `limit` is the time limit for each chunk.
pub fn many(
    mut lease: Lease,
    reading: Box<Reading>,
    effect: SessionEffect,
    limit: Duration,
    progress: Arc<Progress>,
) -> Chunks {
    Box::pin(async_stream::try_stream! {
        let Reading { statement, layout, format, page, max_rows, counting, includes, spare } = *reading;
        let (text, params) = statement.into_parts();
        lease.expect(effect);
        lease.begin();
        let mut started = Instant::now();
        let connection = lease.connection()?;
        let began = within(limit, driver(connection.run(&text, bind(params)))).await;
        let mut result = match began {
            Ok(result) => result,
            Err(error) => Err(lease.failed_and_reset(error).await)?,
        };
        let columns = result.columns().unwrap_or_default();
        let decoders = decoders(Some(&layout.kinds), &columns);
        let mut encoder = Encoder::begin_as(format, Shape::Rows, &layout.keys, CHUNK_ROOM_BYTES);
        let page_rows = page.as_ref().map(|page| page.limit).or(max_rows.map(|most| most.rows)).unwrap_or(u64::MAX);
        let may_be_limited = format.has_trailer() || max_rows.is_none_or(|most| most.is_announced);
        let (mut last, mut more) = (None, false);
        // Rows whose related records are not read yet.
        let mut batch: Vec<Row> = Vec::new();
        let mut second: Option<Lease> = None;
        loop {
            match within_since(started, limit, driver(result.next())).await {
                Ok(Some(_)) if encoder.rows() + batch.len() as u64 == page_rows => {
                    more = true;
                    if !may_be_limited {
                        // The head is sent, and would be wrong.
                        drop(result);
                        Err(lease.failed_and_reset(DbError::RowsAdded).await)?;
                        return;
                    }
                }
                Ok(Some(row)) if !includes.is_empty() => {
                    batch.push(row);
                    if batch.len() == INCLUDE_BATCH_MAX_RECORDS
                        && let Some(spare) = &spare
                    {
                        let reader = match second.take() {
                            Some(reader) => reader,
                            None => spare.lease().await?,
                        };
                        let reader = second.insert(reader);
                        reader.expect(effect);
                        let outcome = related(reader, &includes, &batch, format, limit).await;
                        write_rows(&mut encoder, &layout, &decoders, &batch, &outcome?);
                        last = batch.pop();
                        batch.clear();
                    }
                }
                Ok(Some(row)) => {
                    write_row(&mut encoder, &layout.keys, &decoders, &row);
                    last = Some(row);
                }
                Ok(None) => break,
                Err(error) => {
                    drop(result);
                    Err(lease.failed_and_reset(error).await)?;
                    return;
                }
            }
            if encoder.len() >= CHUNK_BYTES {
                progress.add_time(started);
                progress.add_rows(encoder.rows() - progress.rows());
                yield Bytes::from(encoder.take());
                started = Instant::now();
            }
        }
        if !batch.is_empty() {
            let outcome = related(&mut lease, &includes, &batch, format, limit).await;
            // Reads after this one count as part of it.
            lease.begin();
            let members = match outcome {
                Ok(members) => members,
                Err(error) => Err(lease.failed_and_reset(error).await)?,
            };
            write_rows(&mut encoder, &layout, &decoders, &batch, &members);
            last = batch.pop();
        }
        drop(second);
        let count = match &counting {
            None => None,
            Some(counting) => match counting.known_count(encoder.rows(), more) {
                Some(count) => Some(count),
                None => {
                    let connection = lease.connection()?;
                    match within(limit, driver(number(connection, &counting.statement))).await {
                        Ok(count) => count,
                        Err(error) => Err(lease.failed_and_reset(error).await)?,
                    }
                }
            },
        };
        progress.add_time(started);
        progress.add_rows(encoder.rows() - progress.rows());
        lease.end();
        lease.reset_if_dirty().await;
        drop(lease);
        let next = match (more, page, last) {
            (true, Some(page), Some(row)) => Some(page.seal.token(&values(&row, &page.cells))),
            _ => None,
        };
        let limited = more && max_rows.is_some();
        yield Bytes::from(encoder.finish_with(&Trailer { count, limited, next }));
    })
}

/// Reads and encodes the records that are related to `rows`. `limit` is the time limit.
async fn related(
    lease: &mut Lease,
    includes: &[Included],
    rows: &[Row],
    format: Format,
    limit: Duration,
) -> Result<Vec<Members>, DbError> {
    lease.begin();
    let members = within(limit, async { members(lease.connection()?, includes, rows, format).await }).await;
    match members {
        Ok(members) => {
            lease.end();
            Ok(members)
        }
        Err(error) => Err(lease.failed(error)),
    }
}

async fn number(connection: &mut Connection, statement: &Statement) -> mysql_async::Result<Option<u64>> {
    let params = bind(statement.params().to_vec());
    let mut result = connection.run(statement.text(), params).await?;
    let row = result.next().await?;
    result.drop_result().await?;
    Ok(row.and_then(|row| u64::from_row_opt(row).ok()))
}
