//! One record by its number: by a statement of its own, or by one that reads several.

use super::{Found, Progress, found, single, within};
use crate::catalog::Layout;
use crate::db::error::DbError;
use crate::db::pool::Pools;
use crate::db::together::Turn;
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
    let (flight, mut lease) = match pools.turn(project, access, read)? {
        Turn::Now(flight) => {
            let lease = flight.lease().await?;
            (Some(flight), lease)
        }
        Turn::Later(later) => match tokio::time::timeout(pools.answer_timeout(), later).await {
            Ok(Ok(answer)) => {
                let (row, spent) = answer?;
                progress.add(spent);
                return Ok(match row {
                    Some(row) => found(&row, layout, format, progress),
                    None => Found::Nothing,
                });
            }
            // Nobody pays for a neighbour's error: each by itself.
            Ok(Err(_)) => (None, pools.lease(project, access).await?),
            Err(_) => return Err(DbError::Timeout),
        },
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
