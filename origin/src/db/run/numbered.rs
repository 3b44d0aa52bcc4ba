//! One record by its number: by a statement of its own, or by one that reads several.

use super::{Found, Progress, found, single, within};
use crate::catalog::Layout;
use crate::db::error::DbError;
use crate::db::pool::Pools;
use crate::db::together::{Boarded, Reads};
use crate::sql::numbered::Numbered;
use shared::format::Format;
use shared::ident::ProjectName;
use shared::key::Access;
use std::sync::Arc;
use std::time::Instant;

/// Runs a read of one record that may gather with others of its account.
///
/// # Errors
/// What MariaDB or the connection gave.
pub async fn numbered(
    pools: &Arc<Pools>,
    (project, access): (&ProjectName, Access),
    read: &Numbered,
    layout: &Layout,
    format: Format,
    progress: &Progress,
) -> Result<Found, DbError> {
    let limit = pools.query_timeout();
    let boarded = pools.board::<Reads>(project, access, &read.shape, || read.number);
    let (flight, mut lease) = match boarded.await? {
        Boarded::Served(row, spent) => {
            progress.add(spent);
            return Ok(match row {
                Some(row) => found(&row, layout, format, progress),
                None => Found::Nothing,
            });
        }
        Boarded::Alone(flight, lease) => (flight, lease),
    };
    let started = Instant::now();
    let step = single(&mut lease, read.alone());
    let row = match flight {
        Some(flight) => flight.during(limit, step).await,
        None => within(limit, step).await,
    };
    progress.add_time(started);
    drop(lease);
    Ok(match row? {
        (None, _) => Found::Nothing,
        (Some(_), Some(_)) => Found::Several,
        (Some(row), None) => found(&row, layout, format, progress),
    })
}
