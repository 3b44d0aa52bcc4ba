//! Deletes expired idempotency receipts, under the project's own account: the project could replace the table of
//! receipts by a view of another table, so an account with more rights must not access the table.

use crate::database::connection::Connection;
use crate::database::error::DbError;
use crate::database::pool::{Lease, Pools};
use crate::database::run::{self, SessionEffect, StatementStats};
use crate::database::transaction;
use crate::query::sql::{Statement, receipt};
use mysql_async::Value;
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;
use std::time::{Duration, Instant};

/// The size of a batch. The connection is returned after each batch, for waiting requests.
const SWEPT_AT_ONCE: usize = 500;

/// The time limit for a project, so that one with many receipts does not keep the sweep from the others.
const SWEEP_MAX: Duration = Duration::from_secs(60);

/// Deletes a project's expired receipts, and returns their number. After an error, goes on with the next database.
pub async fn sweep(pools: &Pools, project: &ProjectName) -> Result<u64, DbError> {
    let limit = pools.query_timeout();
    let mut lease = pools.lease(project, Access::Full).await?;
    let databases = first_column(&mut lease, receipt::databases(), limit).await?;
    drop(lease);
    let (mut swept, until) = (0, Instant::now() + SWEEP_MAX);
    for database in databases {
        let name = String::from_utf8(database).unwrap_or_default();
        let Ok(database) = DatabaseName::parse(&name) else {
            continue;
        };
        while Instant::now() < until {
            let step = async {
                let mut lease = pools.lease(project, Access::Full).await?;
                sweep_some(&mut lease, &database, limit).await
            };
            match step.await {
                Ok(0) => break,
                Ok(count) => swept += count,
                Err(error) => {
                    tracing::debug!(%error, %project, %database, "receipts could not be swept");
                    break;
                }
            }
        }
    }
    Ok(swept)
}

async fn sweep_some(lease: &mut Lease, database: &DatabaseName, limit: Duration) -> Result<u64, DbError> {
    let old = receipt::outlived(database, SWEPT_AT_ONCE);
    let mut swept = 0;
    for key in first_column(lease, old, limit).await? {
        let statement = vec![receipt::delete(database, key)];
        let progress = StatementStats::default();
        let deleted = transaction::write(lease, statement, SessionEffect::Anything, limit, &progress).await?;
        swept += deleted.affected;
    }
    Ok(swept)
}

async fn first_column(lease: &mut Lease, statement: Statement, limit: Duration) -> Result<Vec<Vec<u8>>, DbError> {
    let (text, params) = statement.into_parts();
    let work = async |connection: &mut Connection| {
        let mut result = connection.run(&text, run::bind(params)).await?;
        let mut values = Vec::new();
        while let Some(row) = result.next().await? {
            if let Value::Bytes(bytes) = run::value(&row, 0) {
                values.push(bytes.clone());
            }
        }
        Ok(values)
    };
    // The project may have replaced the table by a view, which can run stored code.
    let values = lease.run(SessionEffect::Anything, limit, None, work).await?;
    lease.reset_if_dirty().await;
    Ok(values)
}
