//! Reads of single records by their numbers, each given its row by the number that comes back with it.

use super::batch::Batch;
use super::queue::Served;
use super::{Answer, Caller, Kind, Together, Told};
use crate::db::DbError;
use crate::db::connection::Connection;
use crate::db::pool::{Account, Lease};
use crate::db::run::{bind, ended, value, within};
use crate::sql::Statement;
use crate::sql::numbered::Shape;
use mysql_async::{Row, Value};
use shared::limits::TOGETHER_MAX_RECORDS;
use std::time::{Duration, Instant};

/// Reads of single records.
#[derive(Debug)]
pub(in crate::db) struct Reads;

impl Kind for Reads {
    type Shape = Shape;
    type Part = i64;
    /// The row, if there is one.
    type Gain = Option<Row>;

    /// docs/decisions/0012.
    const FLIGHTS_MAX: usize = 2;

    fn of(account: &Account) -> &Together<Self> {
        account.reads()
    }

    fn share(_: &Shape, waiting: usize) -> usize {
        waiting.min(TOGETHER_MAX_RECORDS)
    }

    fn untold() -> Result<(), DbError> {
        Ok(())
    }

    async fn serve(
        lease: Lease,
        shape: Shape,
        parts: Vec<(i64, Caller<Self>)>,
        limit: Duration,
    ) -> Served {
        let mut batch = Batch::of(parts);
        let statement = shape.together(&batch.numbers());
        serve(lease, (statement, shape.number_cell()), &mut batch, limit).await;
        Served::Together
    }
}

/// Runs the statement of a batch and gives each caller its answer. Those who have none in the end are
/// told nothing. It is killed when all callers have left, as one of a single caller would be.
async fn serve(
    mut lease: Lease,
    (statement, cell): (Statement, usize),
    batch: &mut Batch<Caller<Reads>>,
    limit: Duration,
) {
    let started = Instant::now();
    match within(limit, fly(&mut lease, statement, cell, batch, started)).await {
        Ok(Ended::Read) => {
            let spent = started.elapsed();
            for caller in batch.rest() {
                // One who has left needs no answer.
                let _ = caller.send(gain(None, spent));
            }
        }
        Err(DbError::Timeout) => fail(batch, || DbError::Timeout),
        Ok(Ended::Strange | Ended::Left) | Err(_) => {}
    }
}

/// How the statement of a batch ended.
enum Ended {
    /// All that there is was given.
    Read,
    /// With rows that nobody asked for: the table is not what it was taken for.
    Strange,
    /// All callers have left.
    Left,
}

async fn fly(
    lease: &mut Lease,
    statement: Statement,
    cell: usize,
    batch: &mut Batch<Caller<Reads>>,
    started: Instant,
) -> Result<Ended, DbError> {
    lease.begin();
    let outcome = rows(lease.connection()?, statement, cell, batch, started).await;
    match outcome {
        // It still runs: the lease kills it.
        Ok(Ended::Left) => Ok(Ended::Left),
        outcome => ended(lease, outcome),
    }
}

async fn rows(
    connection: &mut Connection,
    statement: Statement,
    cell: usize,
    batch: &mut Batch<Caller<Reads>>,
    started: Instant,
) -> mysql_async::Result<Ended> {
    let (text, params) = statement.into_parts();
    let mut result = tokio::select! {
        biased;
        result = connection.run(&text, bind(params)) => result?,
        () = left(batch) => return Ok(Ended::Left),
    };
    let mut end = Ended::Read;
    loop {
        let row = tokio::select! {
            biased;
            row = result.next() => row?,
            () = left(batch), if batch.waiting().next().is_some() => return Ok(Ended::Left),
        };
        let Some(row) = row else {
            break;
        };
        if !give(row, cell, batch, started.elapsed()) {
            end = Ended::Strange;
        }
    }
    result.drop_result().await?;
    Ok(end)
}

/// Gives a row to those who asked for it; `false` if nobody did.
fn give(row: Row, cell: usize, batch: &mut Batch<Caller<Reads>>, spent: Duration) -> bool {
    let number = match value(&row, cell) {
        Value::Int(number) => *number,
        Value::UInt(number) => match i64::try_from(*number) {
            Ok(number) => number,
            Err(_) => return false,
        },
        _ => return false,
    };
    let mut callers = batch.take(number);
    let Some(mut caller) = callers.next() else {
        return false;
    };
    for next in callers {
        let _ = caller.send(gain(Some(row.clone()), spent));
        caller = next;
    }
    let _ = caller.send(gain(Some(row), spent));
    true
}

/// Until all callers that have no answer yet have left.
async fn left(batch: &mut Batch<Caller<Reads>>) {
    for caller in batch.waiting() {
        caller.closed().await;
    }
}

fn fail(batch: &mut Batch<Caller<Reads>>, error: impl Fn() -> DbError) {
    for caller in batch.rest() {
        let _ = caller.send(Err(error()));
    }
}

fn gain(row: Option<Row>, spent: Duration) -> Answer<Reads> {
    Ok(Told::Gain(row, spent))
}
