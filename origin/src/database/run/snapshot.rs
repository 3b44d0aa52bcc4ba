//! Reads whole lists as they were at one position of the log, without locking tables.

use super::images::SeenRows;
use super::related::size;
use super::{SNAPSHOT, SessionEffect, bind, decoders, within, within_since};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::log_position::LogPosition;
use crate::database::log_reader::LogFacts;
use crate::database::pool::Lease;
use crate::database::typed_rows;
use crate::query::catalog::Layout;
use crate::query::sql::Statement;
use futures_util::Stream;
use mysql_async::prelude::Queryable as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct SnapshotList {
    pub statement: Statement,
    pub layout: Arc<Layout>,
    /// The maximum number of rows, which the statement may exceed.
    pub maximum: Option<u64>,
}

/// Some rows of a list.
#[derive(Debug)]
pub struct SnapshotPart {
    /// The index of the list.
    pub list: usize,
    pub rows: SeenRows,
    /// Whether the list has more rows than its maximum.
    pub is_cut: bool,
}

/// Rows, and bytes of rows, at which a part ends.
const PART_ROWS: usize = 64;
const PART_BYTES: usize = 128 * 1024;

/// Returns what MariaDB says of its log at the lease's host.
pub async fn log_facts(
    lease: &mut Lease,
    limit: Duration,
) -> Result<Result<LogFacts, crate::database::log_reader::LogError>, DbError> {
    let work = async |connection: &mut Connection| Ok(LogFacts::ask(&mut connection.conn).await);
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

/// Begins a transaction that sees the database as it was at one position of the log, and returns the position; `None`
/// if MariaDB tells none.
pub async fn begin_snapshot(lease: &mut Lease, limit: Duration) -> Result<Option<LogPosition>, DbError> {
    // The transaction must not outlast the lease.
    lease.mark_dirty();
    let work = async |connection: &mut Connection| {
        for command in SNAPSHOT {
            connection.conn.query_drop(command).await?;
        }
        let query = "SHOW STATUS LIKE 'binlog_snapshot_%'";
        let found: Vec<(String, String)> = typed_rows::all(connection.conn.query_iter(query)).await?;
        let value =
            |name: &str| found.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let (file, offset) = (value("binlog_snapshot_file").cloned(), value("binlog_snapshot_position").cloned());
        let query = "SELECT BINLOG_GTID_POS(?, CAST(? AS UNSIGNED))";
        let position: Option<Option<String>> =
            typed_rows::first(connection.conn.exec_iter(query, (file, offset))).await?;
        Ok(position.flatten().as_deref().and_then(LogPosition::parse))
    };
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

/// Streams the rows of the lists, some at a time. `limit` is the time limit for each step.
pub fn snapshot(
    mut lease: Lease,
    lists: Vec<SnapshotList>,
    limit: Duration,
) -> impl Stream<Item = Result<SnapshotPart, DbError>> + Send {
    async_stream::try_stream! {
        for (list, SnapshotList { statement, layout, maximum }) in lists.into_iter().enumerate() {
            let (text, params) = statement.into_parts();
            lease.begin();
            let bound = lease.limit(limit);
            let connection = lease.connection()?;
            let began = within(bound.clone(), connection.run(&text, bind(params))).await;
            let mut result = match began {
                Ok(result) => result,
                Err(error) => Err(lease.failed_and_reset(error).await)?,
            };
            let decoders = decoders(Some(&layout.kinds), &result.columns().unwrap_or_default());
            let (mut rows, mut bytes) = (Vec::with_capacity(PART_ROWS), 0);
            let (mut count, mut is_cut) = (0, false);
            loop {
                match within_since(Instant::now(), bound.clone(), result.next()).await {
                    Ok(Some(_)) if maximum == Some(count) => is_cut = true,
                    Ok(Some(row)) => {
                        count += 1;
                        bytes += size(&row);
                        rows.push(Some(row));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        drop(result);
                        Err(lease.failed_and_reset(error).await)?;
                        return;
                    }
                }
                if rows.len() == PART_ROWS || bytes >= PART_BYTES {
                    bytes = 0;
                    let rows = SeenRows::of_list(std::mem::take(&mut rows), decoders.clone(), &layout);
                    yield SnapshotPart { list, rows, is_cut };
                }
            }
            drop(result);
            lease.end();
            if is_cut || !rows.is_empty() {
                yield SnapshotPart { list, rows: SeenRows::of_list(rows, decoders, &layout), is_cut };
            }
        }
        lease.reset_if_dirty().await;
    }
}
