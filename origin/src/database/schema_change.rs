//! Runs a change of a table under the caller's account: the first of several forms of one statement that MariaDB
//! accepts. A form that MariaDB refuses, because it can't change the table by that algorithm, changes nothing.

use super::connection::Connection;
use super::errno;
use super::error::DbError;
use super::pool::Lease;
use super::run::{SessionEffect, StatementStats};
use super::typed_rows;
use crate::query::sql::Statement;
use mysql_async::Params;
use mysql_async::prelude::Queryable as _;
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct SchemaChangeDone {
    /// The index of the form that was run.
    pub form: usize,
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Serialize)]
pub struct Warning {
    pub level: String,
    pub code: u16,
    pub message: String,
}

/// `forms` must not be empty. The session is reset afterwards, since expressions of the caller may have been evaluated.
pub async fn run(
    mut lease: Lease,
    forms: Vec<Statement>,
    limit: Duration,
    progress: &StatementStats,
) -> Result<SchemaChangeDone, DbError> {
    let work = async |connection: &mut Connection| {
        let last = forms.len().saturating_sub(1);
        for (form, statement) in forms.into_iter().enumerate() {
            let (text, _) = statement.into_parts();
            match connection.run(&text, Params::Empty).await {
                Ok(result) => {
                    result.drop_result().await?;
                    return Ok(SchemaChangeDone { form, warnings: warnings(connection).await? });
                }
                Err(error) if form < last && errno::OTHER_ALGORITHM.iter().any(|one| error.errno() == Some(*one)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(DbError::Unavailable("no form of the statement was given".into()))
    };
    let outcome = lease.run(SessionEffect::Anything, limit, Some(progress), work).await;
    if outcome.is_ok() {
        lease.note_position(progress).await;
    }
    lease.reset_if_dirty().await;
    outcome
}

/// Has MariaDB parse the statement, without running it.
pub async fn check(lease: &mut Lease, statement: Statement, limit: Duration) -> Result<(), DbError> {
    let (text, _) = statement.into_parts();
    let work = async |connection: &mut Connection| connection.prepare(&text, &Params::Empty).await.map(drop);
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

async fn warnings(connection: &mut Connection) -> Result<Vec<Warning>, DbError> {
    let rows = typed_rows::all::<(String, u16, String), _>(connection.conn.query_iter("SHOW WARNINGS LIMIT 100"));
    let warning = |(level, code, message): (String, _, _)| Warning { level: level.to_lowercase(), code, message };
    Ok(rows.await?.into_iter().map(warning).collect())
}
