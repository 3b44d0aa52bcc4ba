//! Runs operations on records: loads the tables, builds the plan, renders the statement, runs it, encodes the response.

mod describe;
mod read;
pub(super) mod search_errors;
mod tables;
mod write;

use super::idempotency::IdempotentInsert;
use super::request_context::RequestContext;
use super::respond;
use crate::database::retry::{Recovery, Repeatable, retry_once};
use crate::database::run::{Reading, ReadingOne};
use crate::database::schema_cache::SchemaAge;
use crate::database::transaction::{AnswerBudget, Transaction};
use crate::database::{DbError, ReadFrom, run, transaction};
use crate::query::cursor;
use crate::query::plan::{self, InsertAnswer, InsertOne, Page, Plan, SelectByKey, TransactionSteps};
use crate::query::sql::{self, Statement};
use axum::response::Response;
use shared::error::Problem;
use shared::operation::RecordOperation;
use shared::operation::write::IdempotentRequest;
use std::sync::Arc;

pub(super) use describe::{describe, methods};
pub(super) use read::{not_found, several};
pub(super) use tables::Tables;
pub(super) use write::{Writer, inserted};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyWanted {
    Whole,
    Head,
}

/// A read that may have failed on a replica is first retried on the primary; see [`retry_once`] for what follows.
pub(super) async fn run(
    context: &RequestContext,
    operation: &RecordOperation,
    extent: BodyWanted,
) -> Result<Response, Problem> {
    let from = if operation.is_read() { ReadFrom::Replica } else { ReadFrom::Primary };
    let mut attempt = Attempt { context, operation, extent, from };
    let tables = attempt.tables(SchemaAge::Cached).await?;
    context.begin_statements(operation);
    let mut outcome = attempt.once(&tables).await;
    attempt.from = ReadFrom::Primary;
    // The replica may be lost, or may lack an account or a column that is not yet replicated.
    if context.app().pools.may_read_replicas(context.caller().account(), from)
        && matches!(&outcome, Err(Failure::Database(error)) if error.is_lost() || error.errno().is_some())
    {
        outcome = Box::pin(attempt.once(&tables)).await;
    }
    let work = if operation.is_read() { Repeatable::Read } else { Repeatable::Write };
    let again = async |_, age| match age {
        SchemaAge::Fresh => attempt.once(&attempt.tables(age).await?).await,
        SchemaAge::Cached => attempt.once(&tables).await,
    };
    retry_once(work, outcome, again)
        .await
        .map_err(Failure::into_problem)
        .map_err(|problem| tables.show_own_fault(search_errors::name(problem, operation), operation))
        .map_err(|problem| write::mention_stored(problem, operation, tables.root().traits()))
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

impl From<&Failure> for Recovery {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Problem(_) => Self::None,
            Failure::Database(error) => error.recovery(),
        }
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
    context: &'a RequestContext,
    operation: &'a RecordOperation,
    extent: BodyWanted,
    from: ReadFrom,
}

/// `ByKey` and `InsertOne` may be coalesced with other requests, so their statements are not rendered yet.
enum Prepared<'a> {
    One(ReadingOne),
    ByKey(SelectByKey),
    /// The second statement reads the first row beyond the limit, for the response's head.
    Many(Box<Reading>, Option<Statement>),
    Explain(Statement, Statement),
    InsertOne(InsertOne),
    Insert(Vec<Statement>, InsertAnswer, Option<&'a IdempotentRequest>),
    Change(Vec<Statement>, Option<Box<TransactionSteps>>),
}

impl<'a> Attempt<'a> {
    async fn tables(&self, age: SchemaAge) -> Result<Tables, Problem> {
        Tables::load(self.context.app(), self.context.caller(), self.operation, age).await
    }

    async fn once(&self, tables: &Tables) -> Result<Response, Failure> {
        let prepared = self.prepare(tables);
        // A preference that can't be planned is ignored (RFC 7240, section 2).
        if prepared.is_err()
            && let Some(operation) = self.operation.without_preference()
        {
            let plain = Attempt { operation: &operation, ..*self };
            return Box::pin(plain.perform(plain.prepare(tables)?, tables)).await;
        }
        let response = self.perform(prepared?, tables).await?;
        Ok(respond::preferred(response, self.operation))
    }

    async fn perform(&self, prepared: Prepared<'a>, tables: &Tables) -> Result<Response, Failure> {
        let effect = tables.session_effect();
        match prepared {
            Prepared::One(reading) => self.one(reading, effect).await,
            Prepared::ByKey(read) if self.context.waits_for_position() => {
                let statement = sql::select_by_key(read.shape(), read.key());
                let (layout, format) = (Arc::clone(read.layout()), read.format());
                self.one(ReadingOne { statement, layout, includes: Vec::new(), format }, effect).await
            }
            Prepared::ByKey(read) => Box::pin(self.by_key(&read)).await,
            Prepared::Many(reading, beyond) => self.many(reading, beyond, effect).await,
            Prepared::Explain(statement, question) => Box::pin(self.explain(statement, question, effect)).await,
            Prepared::InsertOne(insert) => {
                let written = Box::pin(self.insert_one(insert)).await?;
                Ok(respond::payload(&inserted(&written, InsertAnswer::Id)))
            }
            Prepared::Insert(statements, answer, once) => match once {
                Some(idempotent) => {
                    let role = self.context.caller().rights().role();
                    let shown = shown_fields(&statements, answer);
                    let of_caller =
                        role.map(|role| idempotent.for_caller(&self.context.caller().identity(role), shown));
                    let insert = IdempotentInsert {
                        context: self.context,
                        database: tables.root().database(),
                        idempotent: of_caller.as_ref().unwrap_or(idempotent),
                        statements,
                        answer,
                        operation: self.operation,
                        effect,
                    };
                    Box::pin(insert.run()).await
                }
                None if matches!(answer, InsertAnswer::Records | InsertAnswer::Count) => {
                    let work = Work::Insert(statements, answer);
                    let payload = Box::pin(self.write_with(work, tables, effect)).await?;
                    Ok(respond::written(&payload, self.operation))
                }
                None => {
                    let written = self.write(statements, effect).await?;
                    Ok(respond::written(&inserted(&written, answer), self.operation))
                }
            },
            Prepared::Change(statements, None) => {
                let written = self.write(statements, effect).await?;
                Ok(respond::payload(written.affected.to_string().as_bytes()))
            }
            Prepared::Change(statements, Some(steps)) => {
                let work = Work::Change(statements, steps);
                let payload = Box::pin(self.write_with(work, tables, effect)).await?;
                Ok(respond::written(&payload, self.operation))
            }
        }
    }

    fn prepare(&self, tables: &Tables) -> Result<Prepared<'a>, Problem> {
        let scope = tables.scope(self.operation)?;
        let bounds = &self.context.app().bounds;
        let after = self.operation.after().and_then(cursor::values);
        let page = Page { after, is_head: self.extent == BodyWanted::Head };
        Ok(match plan::build(self.operation, &scope, self.context.plan_limits(), page)? {
            Plan::Select(select, read) => self.prepare_read(select, read, &scope)?,
            Plan::SelectOne(select, read) => read::prepare_one(select, read, &scope),
            Plan::SelectByKey(read) => Prepared::ByKey(read),
            Plan::Insert(insert, once) => {
                let answer = insert.answer();
                let statements = sql::insert(insert, &scope, bounds.packet_max_bytes);
                Prepared::Insert(statements, answer, once)
            }
            Plan::InsertOne(insert) => Prepared::InsertOne(insert),
            Plan::Update(update, more) => Prepared::Change(sql::update(update, &scope), more),
            Plan::Delete(delete, more) => Prepared::Change(vec![sql::delete(delete, &scope)], more),
        })
    }

    async fn insert_one(&self, insert: InsertOne) -> Result<run::Written, DbError> {
        let coalescer = &self.context.app().coalescer;
        coalescer
            .insert_one(self.context.caller().lessee(), insert, self.context.limit(), self.context.progress())
            .await
    }

    async fn write(&self, statements: Vec<Statement>, effect: run::SessionEffect) -> Result<run::Written, Failure> {
        let mut lease = self.context.lease(self.from).await?;
        let limit = self.context.limit();
        Ok(transaction::write(&mut lease, statements, effect, limit, self.context.progress()).await?)
    }

    async fn write_with(&self, work: Work, tables: &Tables, effect: run::SessionEffect) -> Result<Vec<u8>, Failure> {
        let scope = tables.scope(self.operation)?;
        let mut lease = self.context.lease(self.from).await?;
        let mut transaction = Transaction::begin(&mut lease, self.context.limit(), self.context.progress()).await?;
        let mut budget = AnswerBudget::WHOLE;
        let mut writer = Writer { transaction: &mut transaction, scope: &scope, effect, budget: &mut budget };
        let outcome = match work {
            Work::Insert(statements, answer) => writer.insert(statements, answer).await.map(|(payload, _)| payload),
            Work::Change(statements, steps) => writer.change(statements, *steps).await,
        };
        transaction.end(outcome).await
    }
}

/// Part of an idempotent request's fingerprint; empty for a response with the ids of the records.
fn shown_fields(statements: &[Statement], answer: InsertAnswer) -> &[u8] {
    match answer {
        InsertAnswer::Hidden | InsertAnswer::HiddenList(_) => b"hidden",
        _ => {
            let record = statements.first().and_then(|statement| statement.columns().record.as_ref());
            record.map_or(b"", |record| record.layout.keys.layout_id())
        }
    }
}

enum Work {
    Insert(Vec<Statement>, InsertAnswer),
    Change(Vec<Statement>, Box<TransactionSteps>),
}
