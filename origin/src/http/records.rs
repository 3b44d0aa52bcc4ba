//! Runs operations on records: loads the tables, builds the plan, renders the statement, runs it, encodes the response.

mod describe;
mod in_transaction;
mod read;
pub(super) mod search_errors;
mod tables;

use super::idempotency::IdempotentInsert;
use super::request_context::RequestContext;
use super::respond;
use crate::database::retry::{Recovery, Repeatable, retry_once};
use crate::database::run::{ReadingOne, SessionEffect};
use crate::database::schema_cache::SchemaAge;
use crate::database::transaction::{AnswerBudget, Transaction};
use crate::database::{DbError, ReadFrom, run, transaction};
use crate::query::cursor;
use crate::query::plan::scope::Scope;
use crate::query::plan::{self, InsertAnswer, InsertOne, Page, Plan};
use crate::query::sql;
use axum::response::Response;
use shared::error::Problem;
use shared::operation::RecordOperation;
use shared::operation::read::{ReadAnswer, ReadOne};
use std::sync::Arc;

pub(super) use describe::{describe, methods};
use in_transaction::inserted;
pub(super) use in_transaction::{Cut, InTransaction, OperationAnswer};
pub(super) use tables::Tables;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyWanted {
    Whole,
    Head,
}

/// Runs the operation. A read that failed on a replica is retried on the primary, and further by [`retry_once`].
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
        .map_err(|problem| in_transaction::mention_stored(problem, operation, tables.root().traits()))
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

impl Attempt<'_> {
    async fn tables(&self, age: SchemaAge) -> Result<Tables, Problem> {
        Tables::load(self.context.app(), self.context.caller(), self.operation, age).await
    }

    async fn once(&self, tables: &Tables) -> Result<Response, Failure> {
        let scope = tables.scope(self.operation)?;
        let after = self.operation.after().and_then(cursor::values);
        let page = Page { after, is_head: self.extent == BodyWanted::Head };
        match plan::build(self.operation, &scope, self.context.plan_limits(), page) {
            Ok(plan) => {
                let response = self.perform(plan, &scope, tables.session_effect()).await?;
                Ok(respond::preferred(response, self.operation))
            }
            // A preference that can't be planned is ignored (RFC 7240, section 2).
            Err(problem) => match self.operation.without_preference() {
                Some(operation) => Box::pin(Attempt { operation: &operation, ..*self }.once(tables)).await,
                None => Err(problem.into()),
            },
        }
    }

    async fn perform(&self, plan: Plan<'_>, scope: &Scope<'_>, effect: SessionEffect) -> Result<Response, Failure> {
        match plan {
            Plan::SelectByKey(read) if self.context.waits_for_position() => {
                let statement = sql::select_by_key(read.shape(), read.key());
                let (layout, format) = (Arc::clone(read.layout()), read.format());
                self.one(ReadingOne { statement, layout, includes: Vec::new(), format }, effect).await
            }
            Plan::SelectByKey(read) => Box::pin(self.by_key(&read)).await,
            Plan::SelectOne(select, ReadOne { answer: ReadAnswer::Explanation, .. }) => {
                Box::pin(self.explain(select, scope, effect)).await
            }
            Plan::SelectOne(select, read) => {
                let (layout, includes) = (Arc::clone(select.layout()), select.includes().to_vec());
                let statement = sql::select(select, scope);
                self.one(ReadingOne { statement, layout, includes, format: read.format }, effect).await
            }
            Plan::Select(select, read) => {
                let next = self.next_page(&select, read, scope)?;
                if read.answer == ReadAnswer::Explanation {
                    return Box::pin(self.explain(select, scope, effect)).await;
                }
                let (reading, beyond) = self.reading(select, read, next, scope);
                self.many(reading, beyond, effect).await
            }
            Plan::Insert(insert, Some(idempotent)) => {
                let (context, operation) = (self.context, self.operation);
                Box::pin(IdempotentInsert { context, scope, effect, insert, idempotent, operation }.run()).await
            }
            write => Ok(respond::written(&self.write(write, scope, effect).await?, self.operation)),
        }
    }

    /// Runs a write and returns the payload. Uses a transaction only for writes that need one.
    async fn write(&self, plan: Plan<'_>, scope: &Scope<'_>, effect: SessionEffect) -> Result<Vec<u8>, Failure> {
        let (statements, answer) = match plan {
            Plan::InsertOne(insert) => {
                return Ok(inserted(&Box::pin(self.insert_one(insert)).await?, InsertAnswer::Id));
            }
            Plan::Insert(insert, _) if !matches!(insert.answer(), InsertAnswer::Records | InsertAnswer::Count) => {
                let answer = insert.answer();
                (sql::insert(insert, scope, self.context.app().bounds.packet_max_bytes), answer)
            }
            Plan::Update(update, None) => (sql::update(update, scope), InsertAnswer::Count),
            Plan::Delete(delete, None) => (vec![sql::delete(delete, scope)], InsertAnswer::Count),
            plan => return Box::pin(self.run_in_transaction(plan, scope, effect)).await,
        };
        let mut lease = self.context.lease_to_write().await?;
        let (limit, progress) = (self.context.limit(), self.context.progress());
        Ok(inserted(&transaction::write(&mut lease, statements, effect, limit, progress).await?, answer))
    }

    async fn run_in_transaction(
        &self,
        plan: Plan<'_>,
        scope: &Scope<'_>,
        effect: SessionEffect,
    ) -> Result<Vec<u8>, Failure> {
        let mut lease = self.context.lease_to_write().await?;
        let mut transaction = Transaction::begin(&mut lease, self.context.limit(), self.context.progress()).await?;
        let (context, budget) = (self.context, &mut { AnswerBudget::WHOLE });
        let mut within = InTransaction { context, transaction: &mut transaction, scope, effect, budget };
        let outcome = within.run(plan).await.map(|done| done.payload);
        transaction.end(outcome).await
    }

    async fn insert_one(&self, insert: InsertOne) -> Result<run::Written, DbError> {
        let coalescer = &self.context.app().coalescer;
        coalescer
            .insert_one(self.context.caller().lessee(), insert, self.context.limit(), self.context.progress())
            .await
    }
}
