//! One new record: by a statement of its own, or by one that inserts several.

use super::{Progress, Written, alone, within};
use crate::db::error::DbError;
use crate::db::pool::Pools;
use crate::db::together::{Boarded, Inserts};
use crate::sql::row::NewRow;
use shared::ident::ProjectName;
use shared::key::Access;
use std::sync::Arc;
use std::time::Instant;

/// Runs an insert of one record that may gather with others of its account. A deadlock is tried once
/// more.
///
/// # Errors
/// What MariaDB or the connection gave; then nothing is written, unless the connection broke.
pub async fn row(
    pools: &Arc<Pools>,
    (project, access): (&ProjectName, Access),
    row: NewRow,
    progress: &Progress,
) -> Result<Written, DbError> {
    let limit = pools.query_timeout();
    let boarded = pools.board::<Inserts>(project, access, &row.shape, || row.values());
    let (flight, mut lease) = match boarded.await? {
        Boarded::Served(key, spent) => {
            progress.add(spent);
            progress.add_rows(1);
            return Ok(Written {
                affected: 1,
                keys: vec![key],
                last_insert_id: 0,
            });
        }
        Boarded::Alone(flight, lease) => (flight, lease),
    };
    let statement = row.alone();
    let started = Instant::now();
    let step = alone(&mut lease, &statement);
    let mut written = match flight {
        Some(flight) => flight.during(limit, step).await,
        None => within(limit, step).await,
    };
    if written.as_ref().is_err_and(DbError::is_deadlock) {
        written = within(limit, alone(&mut lease, &statement)).await;
    }
    progress.add_time(started);
    written.inspect(|written| progress.add_rows(written.affected))
}
