//! Runs several statements in one transaction. (MariaDB can't roll back tables whose engine has no transactions, such
//! as Aria.) The lease counts as busy from the first statement to the last: dropping a transaction midway (client
//! disconnect, timeout) kills its connection, so that MariaDB rolls back and no other request gets the connection.

use super::connection::Connection;
use super::deadline::Limit;
use super::error::DbError;
use super::pool::Lease;
use super::run::related::{CellWriter, Members, members, size};
use super::run::{self, SessionEffect, StatementStats, Written, within};
use crate::query::catalog::Layout;
use crate::query::plan::Param;
use crate::query::plan::include::Included;
use crate::query::sql::Statement;
use mysql_async::Row;
use mysql_async::prelude::Queryable as _;
use shared::limits::{BATCH_ANSWER_MAX_BYTES, BATCH_ANSWER_MAX_ROWS, INCLUDE_BATCH_MAX_RECORDS};
use std::time::{Duration, Instant};

/// The time limit of a rollback. Then the connection is killed, and MariaDB rolls back by itself.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// An open transaction. Dropping it kills the connection, so that MariaDB rolls back.
pub struct Transaction<'a> {
    lease: &'a mut Lease,
    progress: &'a StatementStats,
    until: Instant,
    rows: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerBudget {
    pub rows: usize,
    pub bytes: usize,
}

impl AnswerBudget {
    pub const WHOLE: Self = Self { rows: BATCH_ANSWER_MAX_ROWS, bytes: BATCH_ANSWER_MAX_BYTES };

    pub fn take(&mut self, rows: usize, bytes: usize) -> Result<(), DbError> {
        self.rows = self.rows.checked_sub(rows).ok_or(DbError::AnswerTooLarge)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(DbError::AnswerTooLarge)?;
        Ok(())
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct EncodedRows {
    pub json: Vec<u8>,
    pub count: usize,
    pub has_more: bool,
}

/// Runs statements, in a transaction if there are several or the caller's role has rules for the records.
pub async fn write(
    lease: &mut Lease,
    statements: Vec<Statement>,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<Written, DbError> {
    let statement = match <[Statement; 1]>::try_from(statements) {
        Ok([statement]) if statement.columns().rule.is_none() => statement,
        // `run_in_transaction` is boxed: otherwise the future of every single statement would reserve space for it.
        Ok(checked) => return Box::pin(run_in_transaction(lease, checked.into(), effect, limit, progress)).await,
        Err(several) => return Box::pin(run_in_transaction(lease, several, effect, limit, progress)).await,
    };
    let work = async |connection: &mut Connection| run::execute(connection, statement).await;
    let written = lease.run(effect, limit, Some(progress), work).await;
    if written.is_ok() {
        lease.note_position(progress).await;
    }
    lease.reset_if_dirty().await;
    written.inspect(|written| progress.add_rows(written.affected))
}

pub async fn run_in_transaction(
    lease: &mut Lease,
    statements: Vec<Statement>,
    effect: SessionEffect,
    limit: Duration,
    progress: &StatementStats,
) -> Result<Written, DbError> {
    let mut transaction = Transaction::begin(lease, limit, progress).await?;
    let outcome = transaction.execute_all(statements, effect).await;
    transaction.end(outcome).await
}

impl<'a> Transaction<'a> {
    /// Begins a transaction. `limit` is the time limit from BEGIN to COMMIT.
    pub async fn begin(lease: &'a mut Lease, limit: Duration, progress: &'a StatementStats) -> Result<Self, DbError> {
        lease.begin();
        let mut transaction = Self { lease, progress, until: Instant::now() + limit, rows: 0, stage: Stage::Open };
        let started = Instant::now();
        let limit = transaction.left();
        let begun = transaction.command("START TRANSACTION", limit).await;
        transaction.heed(started, begun)?;
        Ok(transaction)
    }

    pub async fn execute(&mut self, statement: Statement, effect: SessionEffect) -> Result<Written, DbError> {
        self.lease.expect(effect);
        let written = self.step(statement).await?;
        if let Some(denied) = written.denied {
            return Err(DbError::RoleForbids(denied));
        }
        self.rows += written.affected;
        Ok(written)
    }

    /// Runs the statements in order and adds up their results. After an error, the caller must roll back.
    pub async fn execute_all(&mut self, statements: Vec<Statement>, effect: SessionEffect) -> Result<Written, DbError> {
        let (mut written, mut bytes) = (Written::default(), 0);
        for statement in statements {
            let next = self.execute(statement, effect).await?;
            bytes += next.records.iter().map(Vec::len).sum::<usize>();
            written.and(next);
            if written.records.len() > 1
                && (written.records.len() > BATCH_ANSWER_MAX_ROWS || bytes > BATCH_ANSWER_MAX_BYTES)
            {
                return Err(DbError::AnswerTooLarge);
            }
        }
        Ok(written)
    }

    /// Runs a statement without counting its rows. Resets the session later, since the project may have added triggers.
    pub(super) async fn execute_internal(&mut self, statement: Statement) -> Result<Written, DbError> {
        self.lease.expect(SessionEffect::Anything);
        self.step(statement).await
    }

    async fn step(&mut self, statement: Statement) -> Result<Written, DbError> {
        let (started, left) = (Instant::now(), self.left());
        let connection = self.lease.connection()?;
        let written = within(left, run::execute(connection, statement)).await;
        self.heed(started, written)
    }

    /// Reads rows, counts and encodes them. After an error, the caller must roll back.
    pub async fn rows(
        &mut self,
        statement: Statement,
        layout: &Layout,
        includes: &[Included],
        effect: SessionEffect,
        max_rows: Option<u64>,
        budget: &mut AnswerBudget,
    ) -> Result<EncodedRows, DbError> {
        self.lease.expect(effect);
        let (started, left) = (Instant::now(), self.left());
        let rows = within(left, self.collect(statement, layout, includes, max_rows, budget)).await;
        let rows = self.heed(started, rows)?;
        self.rows += rows.count as u64;
        Ok(rows)
    }

    /// Returns the first `width` values of each row. The read must have a LIMIT, since all rows are held in memory.
    /// After an error, the caller must roll back.
    pub async fn values(
        &mut self,
        statement: Statement,
        width: usize,
        effect: SessionEffect,
    ) -> Result<Vec<Vec<Param>>, DbError> {
        self.lease.expect(effect);
        let (started, left) = (Instant::now(), self.left());
        let cells: Vec<_> = (0..width).collect();
        let rows = async {
            let (text, params) = statement.into_parts();
            let connection = self.lease.connection()?;
            let mut result = connection.run(&text, run::bind(params)).await?;
            let mut rows = Vec::new();
            while let Some(row) = result.next().await? {
                rows.push(run::values(&row, &cells));
            }
            Ok::<_, DbError>(rows)
        };
        let rows = within(left, rows).await;
        self.heed(started, rows)
    }

    pub async fn save(&mut self) -> Result<(), DbError> {
        self.timed("SAVEPOINT selkie_dry_run").await
    }

    pub async fn undo(&mut self) -> Result<(), DbError> {
        self.timed("ROLLBACK TO SAVEPOINT selkie_dry_run").await
    }

    async fn timed(&mut self, words: &'static str) -> Result<(), DbError> {
        let (started, left) = (Instant::now(), self.left());
        let done = self.command(words, left).await;
        self.heed(started, done)
    }

    /// Returns the first row. The session is reset afterwards, since the project may have replaced the table by a view,
    /// which can run stored code.
    pub(super) async fn first(&mut self, statement: Statement) -> Result<Option<Row>, DbError> {
        self.lease.expect(SessionEffect::Anything);
        let (started, left) = (Instant::now(), self.left());
        let connection = self.lease.connection()?;
        let rows = within(left, run::first_two_rows(connection, statement)).await;
        self.heed(started, rows).map(|(first, _)| first)
    }

    async fn collect(
        &mut self,
        statement: Statement,
        layout: &Layout,
        includes: &[Included],
        max_rows: Option<u64>,
        budget: &mut AnswerBudget,
    ) -> Result<EncodedRows, DbError> {
        let (text, params) = statement.into_parts();
        let connection = self.lease.connection()?;
        let mut result = connection.run(&text, run::bind(params)).await?;
        let columns = result.columns().unwrap_or_default();
        let decoders = run::decoders(Some(&layout.kinds), &columns);
        let mut rows = EncodedRows::default();
        let add = |rows: &mut EncodedRows, row: &Row, members: &[Members], at: usize| {
            let cells = CellWriter { decoders: &decoders, members };
            if rows.count > 0 {
                rows.json.push(b',');
            }
            cells.append(&mut rows.json, layout, row, at);
            rows.count += 1;
            match rows.count > budget.rows || rows.json.len() > budget.bytes {
                true => Err(DbError::AnswerTooLarge),
                false => Ok(()),
            }
        };
        let (mut waiting, mut bytes) = (Vec::new(), 0);
        while let Some(row) = result.next().await? {
            if max_rows.is_some_and(|most| (rows.count + waiting.len()) as u64 >= most) {
                rows.has_more = true;
                continue;
            }
            if includes.is_empty() {
                if size(&row) > budget.bytes {
                    return Err(DbError::AnswerTooLarge);
                }
                add(&mut rows, &row, &[], 0)?;
                continue;
            }
            bytes += size(&row);
            if waiting.len() >= budget.rows || bytes > budget.bytes {
                return Err(DbError::AnswerTooLarge);
            }
            waiting.push(row);
        }
        drop(result);
        for part in waiting.chunks(INCLUDE_BATCH_MAX_RECORDS) {
            let members = members(self.lease.connection()?, includes, part).await?;
            for (at, row) in part.iter().enumerate() {
                add(&mut rows, row, &members, at)?;
            }
        }
        budget.rows -= rows.count;
        budget.bytes -= rows.json.len();
        Ok(rows)
    }

    pub async fn commit(mut self) -> Result<(), DbError> {
        let (started, left) = (Instant::now(), self.left());
        let committed = self.command("COMMIT", left).await;
        match self.heed(started, committed) {
            Ok(()) => {
                self.progress.add_rows(self.rows);
                self.lease.note_position(self.progress).await;
                self.release().await;
                Ok(())
            }
            Err(error) => {
                self.rollback().await;
                Err(error)
            }
        }
    }

    /// Rolls back. If that fails, the connection is killed, which rolls back too.
    pub async fn rollback(mut self) {
        if self.stage == Stage::Ended {
            return;
        }
        let started = Instant::now();
        let limit = self.lease.limit(ROLLBACK_TIMEOUT);
        let undone = self.command("ROLLBACK", limit).await;
        if self.heed(started, undone).is_ok() {
            self.release().await;
        }
    }

    pub async fn end<T, E: From<DbError>>(self, outcome: Result<T, E>) -> Result<T, E> {
        match outcome {
            Ok(value) => {
                self.commit().await?;
                Ok(value)
            }
            Err(error) => {
                self.rollback().await;
                Err(error)
            }
        }
    }

    async fn command(&mut self, words: &'static str, limit: Limit) -> Result<(), DbError> {
        let connection = self.lease.connection()?;
        within(limit, connection.conn.query_drop(words)).await
    }

    fn left(&self) -> Limit {
        self.lease.limit(self.until.saturating_duration_since(Instant::now()))
    }

    /// Adds the time to `progress` and returns the outcome. If MariaDB refused the statement, the transaction stays
    /// open; any other error kills the connection, which ends the transaction.
    fn heed<T>(&mut self, started: Instant, outcome: Result<T, DbError>) -> Result<T, DbError> {
        self.progress.add_time(started);
        outcome.map_err(|error| match error {
            DbError::Refused(..) if !error.is_lost() => error,
            error => {
                self.stage = Stage::Ended;
                let error = self.lease.failed(error);
                self.lease.kill();
                error
            }
        })
    }

    async fn release(&mut self) {
        self.stage = Stage::Ended;
        self.lease.end();
        self.lease.reset_if_dirty().await;
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            self.lease.kill();
        }
    }
}
