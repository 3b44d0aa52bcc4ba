//! Runs operations on records: loads the tables, builds the plan, renders the statement, runs it, encodes the response.

mod describe;
mod read;
pub(super) mod search;
mod tables;

use super::idempotency::IdempotentInsert;
use super::request_log::RequestRecord;
use super::respond;
use crate::app::App;
use crate::database::run::{Reading, ReadingOne};
use crate::database::{DbError, Lease, run, transaction};
use crate::query::plan::{self, InsertAnswer, InsertOne, Plan, PlanLimits, SelectByKey};
use crate::query::sql::{self, Statement};
use crate::system::keys::Caller;
use axum::response::Response;
use shared::error::Problem;
use shared::operation::RecordOperation;
use shared::operation::write::IdempotentRequest;
use std::sync::Arc;
use std::time::Duration;

pub(super) use describe::{describe, methods};
pub(super) use read::{not_found, several};
pub(super) use tables::{Schema, Tables};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The response head only, for a `HEAD` request.
    Head,
}

/// Runs an operation on a table. Retries once if the cached schema was stale, MariaDB rolled back because of a
/// deadlock, or the connection of a read was lost.
pub(super) async fn run(
    app: &Arc<App>,
    caller: &Caller,
    operation: &RecordOperation,
    extent: Extent,
    record: &RequestRecord,
) -> Result<Response, Problem> {
    let attempt = Attempt { app, caller, operation, extent, record };
    let tables = attempt.tables(Schema::Cached).await?;
    match attempt.once(&tables).await {
        Err(Failure::Database(error)) if error.means_stale_schema() => {
            let tables = Box::pin(attempt.tables(Schema::Fresh)).await?;
            Box::pin(attempt.once(&tables)).await
        }
        Err(Failure::Database(error)) if error.is_deadlock() || (error.is_lost() && operation.is_read()) => {
            Box::pin(attempt.once(&tables)).await
        }
        outcome => outcome,
    }
    .map_err(Failure::into_problem)
    .map_err(|problem| search::name(problem, operation))
}

pub(super) enum Failure {
    Problem(Problem),
    Database(DbError),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Problem(problem) => problem,
            Self::Database(error) => error.into_problem(),
        }
    }
}

struct Attempt<'a> {
    app: &'a Arc<App>,
    caller: &'a Caller,
    operation: &'a RecordOperation,
    extent: Extent,
    record: &'a RequestRecord,
}

/// An operation whose statements are rendered and ready to run.
enum Prepared<'a> {
    One(ReadingOne),
    /// A read of one record by its key, which may be coalesced with reads of other requests into one statement.
    ByKey(SelectByKey),
    /// A read of many records. The second statement, if any, reads the first row that the maximum of all reads withholds:
    /// the response's head says whether there is one.
    Many(Box<Reading>, Option<Statement>),
    /// The statement of a read, and the EXPLAIN statement for it.
    Explain(Statement, Statement),
    /// An insert of one record, which may be coalesced with inserts of other requests into one statement.
    InsertOne(InsertOne),
    Insert(Vec<Statement>, InsertAnswer, Option<&'a IdempotentRequest>),
    /// The statement of an update or delete.
    Change(Vec<Statement>),
}

impl<'a> Attempt<'a> {
    async fn tables(&self, schema: Schema) -> Result<Tables, Problem> {
        Tables::load(self.app, self.caller, self.operation, schema).await
    }

    async fn once(&self, tables: &Tables) -> Result<Response, Failure> {
        let effect = tables.leave();
        match self.prepare(tables)? {
            Prepared::One(reading) => self.one(reading, effect).await,
            Prepared::ByKey(read) => Box::pin(self.by_key(&read)).await,
            Prepared::Many(reading, withheld) => self.many(reading, withheld, effect).await,
            Prepared::Explain(statement, question) => Box::pin(self.explain(statement, question, effect)).await,
            Prepared::InsertOne(insert) => {
                let written = Box::pin(self.insert_one(insert)).await?;
                Ok(respond::payload(&ids(&written, InsertAnswer::Id)))
            }
            Prepared::Insert(statements, answer, once) => match once {
                Some(idempotent) => {
                    let role = self.caller.rights().role();
                    let of_caller = role.map(|role| idempotent.for_caller(&self.caller.identity(role)));
                    let insert = IdempotentInsert {
                        app: self.app,
                        caller: self.caller,
                        database: tables.root().database(),
                        idempotent: of_caller.as_ref().unwrap_or(idempotent),
                        statements,
                        answer,
                        effect,
                        progress: self.record.progress(),
                    };
                    Box::pin(insert.run()).await
                }
                None => {
                    let written = self.write(statements, effect).await?;
                    Ok(respond::payload(&ids(&written, answer)))
                }
            },
            Prepared::Change(statements) => {
                let written = self.write(statements, effect).await?;
                Ok(respond::payload(written.affected.to_string().as_bytes()))
            }
        }
    }

    /// Plans the operation and renders its statements.
    fn prepare(&self, tables: &Tables) -> Result<Prepared<'a>, Problem> {
        let scope = tables.scope(self.operation)?;
        let bounds = &self.app.bounds;
        Ok(match plan::build(self.operation, &scope, limits(self.app, self.caller))? {
            Plan::Select(select, read) => self.prepare_read(select, read, &scope)?,
            Plan::SelectOne(select, read) => read::prepare_one(select, read, &scope),
            Plan::SelectByKey(read) => Prepared::ByKey(read),
            Plan::Insert(insert, once) => {
                let answer = insert.answer();
                let statements = sql::insert(insert, &scope, bounds.packet_max_bytes);
                Prepared::Insert(statements, answer, once)
            }
            Plan::InsertOne(insert) => Prepared::InsertOne(insert),
            Plan::Update(update) => Prepared::Change(sql::update(update, &scope)),
            Plan::Delete(delete) => Prepared::Change(vec![sql::delete(delete, &scope)]),
        })
    }

    /// Returns the time limit of a statement.
    fn timeout(&self) -> Duration {
        self.caller.statement_timeout(self.app.pools.query_timeout())
    }

    async fn lease(&self) -> Result<Lease, DbError> {
        let caller = self.caller;
        self.app.pools.lease(caller.project(), caller.account()).await
    }

    async fn insert_one(&self, insert: InsertOne) -> Result<run::Written, DbError> {
        let account = (self.caller.project(), self.caller.account());
        let coalescer = &self.app.coalescer;
        coalescer.insert_one(account, insert, self.timeout(), self.record.progress()).await
    }

    async fn write(&self, statements: Vec<Statement>, effect: run::SessionEffect) -> Result<run::Written, Failure> {
        let mut lease = self.lease().await?;
        let limit = self.timeout();
        Ok(transaction::write(&mut lease, statements, effect, limit, self.record.progress()).await?)
    }
}

/// Returns the limits of a caller's operations.
pub(super) fn limits(app: &App, caller: &Caller) -> PlanLimits {
    let bounds = &app.bounds;
    PlanLimits { batch_max_rows: bounds.batch_max_rows, read_max_rows: caller.max_rows(bounds.read_max_rows) }
}

/// Returns the JSON payload of an insert: the new key (null if there is none), or a list of keys for a batch.
pub(super) fn ids(written: &run::Written, answer: InsertAnswer) -> Vec<u8> {
    match (answer, written.keys.as_slice()) {
        (InsertAnswer::Ids, keys) => {
            let list = keys.join(&b","[..]);
            [&b"["[..], &list, b"]"].concat()
        }
        (InsertAnswer::Id, [key, ..]) => key.clone(),
        (InsertAnswer::Id, []) if written.last_insert_id > 0 => run::integer_json(written.last_insert_id),
        (InsertAnswer::Id, []) | (InsertAnswer::Hidden, _) => b"null".to_vec(),
        (InsertAnswer::HiddenList(count), _) => format!("[{}]", vec!["null"; count].join(",")).into_bytes(),
    }
}
