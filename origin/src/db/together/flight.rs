//! A statement under way, and those that follow it for as long as reads gather meanwhile.

use super::batch::Batch;
use super::{Answer, Turn, Waiter};
use crate::db::DbError;
use crate::db::connection::Connection;
use crate::db::pool::{Account, Lease, Pools};
use crate::db::run::{bind, ended, value, within};
use crate::sql::Statement;
use crate::sql::numbered::{Numbered, Shape};
use mysql_async::{Row, Value};
use shared::limits::TOGETHER_MAX_RECORDS;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a statement may take before others of its shape no longer wait for its end: a few times as
/// long as one takes when nothing is in its way.
const SLOW_AFTER: Duration = Duration::from_millis(10);

type Caller = oneshot::Sender<Answer>;

/// That a statement of a shape is under way. Dropped, in whatever way, it hands over to the next one for
/// those who have gathered.
pub(in crate::db) struct Flight {
    pools: Arc<Pools>,
    account: Arc<Account>,
    shape: Shape,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It goes on in a task that has not begun.
    HandedOver,
    UnderWay,
    Landed,
}

impl Flight {
    /// Whether a read goes now, or with the next statement of its shape.
    pub(in crate::db) fn turn(
        pools: &Arc<Pools>,
        account: Arc<Account>,
        read: &Numbered,
    ) -> Result<Turn, DbError> {
        let waiter = || {
            let (answer, later) = oneshot::channel();
            let waiter = Waiter {
                number: read.number,
                answer,
                _place: pools.place(&account)?,
            };
            Ok((waiter, later))
        };
        Ok(match account.together().turn(&read.shape, waiter)? {
            Some(later) => Turn::Later(later),
            None => Turn::Now(Self {
                pools: Arc::clone(pools),
                account,
                shape: read.shape.clone(),
                stage: Stage::UnderWay,
            }),
        })
    }

    /// A connection of its account.
    pub(in crate::db) async fn lease(&self) -> Result<Lease, DbError> {
        let _place = self.pools.place(&self.account)?;
        self.connection().await
    }

    /// The same for those who wait, who have places. If there is none, they do not wait for another.
    async fn connection(&self) -> Result<Lease, DbError> {
        let lease = self.pools.connection(&self.account).await;
        if let Err(error) = &lease {
            for waiter in self.account.together().take(&self.shape, usize::MAX) {
                if matches!(error, DbError::Overloaded) {
                    let _ = waiter.answer.send(Err(DbError::Overloaded));
                }
            }
        }
        lease
    }

    /// Waits for its statement.
    pub(in crate::db) async fn during<T>(
        self,
        limit: Duration,
        step: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        let mut step = pin!(step);
        let soon = SLOW_AFTER.min(limit);
        if let Ok(outcome) = tokio::time::timeout(soon, &mut step).await {
            return outcome;
        }
        drop(self);
        within(limit.saturating_sub(soon), step).await
    }

    /// Runs statement after statement until nobody waits, or one is slow.
    async fn go_on(mut self) {
        self.stage = Stage::UnderWay;
        loop {
            if let Ok(lease) = self.connection().await {
                // Who came before there was a connection comes along.
                let waiters = (self.account.together()).take(&self.shape, TOGETHER_MAX_RECORDS);
                let mut batch = Batch::of(waiters.into_iter().filter_map(Waiter::called));
                if !batch.is_empty() {
                    let statement = self.shape.together(&batch.numbers());
                    let read = (statement, self.shape.number_cell());
                    let limit = self.pools.query_timeout();
                    let mut step = Box::pin(serve(lease, read, &mut batch, limit));
                    if tokio::time::timeout(SLOW_AFTER, &mut step).await.is_err() {
                        drop(self);
                        return step.await;
                    }
                }
            }
            if self.account.together().land(&self.shape) {
                self.stage = Stage::Landed;
                return;
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let together = self.account.together();
        match (self.stage, tokio::runtime::Handle::try_current()) {
            (Stage::Landed, _) => {}
            (Stage::UnderWay, _) if together.land(&self.shape) => {}
            (Stage::UnderWay, Ok(runtime)) => {
                let next = Self {
                    pools: Arc::clone(&self.pools),
                    account: Arc::clone(&self.account),
                    shape: self.shape.clone(),
                    stage: Stage::HandedOver,
                };
                runtime.spawn(next.go_on());
            }
            // The program ends: there is nobody to go on. Who waits is told nothing.
            (Stage::UnderWay | Stage::HandedOver, _) => together.give_up(&self.shape),
        }
    }
}

/// Runs the statement of a batch and gives each caller its answer. Those who have none in the end are
/// told nothing. It is killed when all callers have left, as one of a single caller would be.
async fn serve(
    mut lease: Lease,
    (statement, cell): (Statement, usize),
    batch: &mut Batch<Caller>,
    limit: Duration,
) {
    let started = Instant::now();
    match within(limit, fly(&mut lease, statement, cell, batch, started)).await {
        Ok(Ended::Read) => {
            let spent = started.elapsed();
            for caller in batch.rest() {
                // One who has left needs no answer.
                let _ = caller.send(Ok((None, spent)));
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
    batch: &mut Batch<Caller>,
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
    batch: &mut Batch<Caller>,
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
fn give(row: Row, cell: usize, batch: &mut Batch<Caller>, spent: Duration) -> bool {
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
        let _ = caller.send(Ok((Some(row.clone()), spent)));
        caller = next;
    }
    let _ = caller.send(Ok((Some(row), spent)));
    true
}

/// Until all callers that have no answer yet have left.
async fn left(batch: &mut Batch<Caller>) {
    for caller in batch.waiting() {
        caller.closed().await;
    }
}

fn fail(batch: &mut Batch<Caller>, error: impl Fn() -> DbError) {
    for caller in batch.rest() {
        let _ = caller.send(Err(error()));
    }
}
