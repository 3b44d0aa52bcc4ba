//! `/api/v1/batch`: runs several operations on records in one transaction.

mod ids;

use super::records::{self, Cut, Failure, InTransaction, OperationAnswer, Tables};
use super::request_context::RequestContext;
use super::respond;
use crate::database::DbError;
use crate::database::retry::{Recovery, Repeatable, retry_once};
use crate::database::schema_cache::SchemaAge;
use crate::database::transaction::{AnswerBudget, Transaction};
use crate::query::catalog::Table;
use crate::query::plan::{self, Page};
use axum::response::Response;
use ids::Ids;
use shared::envelope::{self, Trailer};
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::operation::RecordOperation;
use shared::operation::batch::Batch;

/// Runs the operations, and retries the whole batch if [`retry_once`] allows it.
pub(super) async fn run(context: &RequestContext, batch: &Batch) -> Result<Response, Problem> {
    let mut attempt = Attempt { context, batch, tables: Vec::new() };
    attempt.load().await?;
    let reads = batch.steps().iter().all(|step| step.operation().is_read());
    let work = if reads { Repeatable::Read } else { Repeatable::Write };
    let outcome = attempt.once().await;
    let again = async |fault, age| {
        if age == SchemaAge::Fresh {
            attempt.reload(fault).await?;
        }
        attempt.once().await
    };
    let answer = retry_once(work, outcome, again).await;
    let answer = answer.map_err(|fault| fault.into_problem(batch, &attempt.tables))?;
    let (limited, more) = (answer.is_limited, !answer.cut.is_empty());
    let trailer = Trailer { limited, more, cut: answer.cut, ..Trailer::default() };
    Ok(respond::json(envelope::success_with(&answer.payload, &trailer)))
}

/// A failure, and the index of the failed operation: `None` if the batch failed as a whole, as at the commit.
struct Fault {
    at: Option<usize>,
    failure: Failure,
}

impl From<DbError> for Fault {
    fn from(error: DbError) -> Self {
        Self { at: None, failure: error.into() }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self { at: None, failure: problem.into() }
    }
}

impl From<&Fault> for Recovery {
    fn from(fault: &Fault) -> Self {
        Self::from(&fault.failure)
    }
}

impl Fault {
    fn into_problem(self, batch: &Batch, tables: &[Tables]) -> Problem {
        let problem = self.failure.into_problem();
        match self.at {
            Some(at) => {
                let operation = batch.steps()[at].operation();
                let problem = records::search_errors::name(problem, operation);
                let problem = match tables.get(at) {
                    Some(tables) => tables.show_own_fault(problem, operation),
                    None => problem,
                };
                problem.in_operation(at)
            }
            None => problem,
        }
    }
}

struct BatchAnswer {
    payload: Vec<u8>,
    /// True if a read was cut by the maximum number of rows of the server or of the caller's role.
    is_limited: bool,
    /// The indexes of the operations whose list was cut by that maximum or by the operation's own `limit`.
    cut: Vec<usize>,
}

struct Attempt<'a> {
    context: &'a RequestContext,
    batch: &'a Batch,
    tables: Vec<Tables>,
}

impl Attempt<'_> {
    async fn load(&mut self) -> Result<(), Problem> {
        for (at, step) in self.batch.steps().iter().enumerate() {
            let tables = self.tables_of(at, SchemaAge::Cached).await?;
            refuse_nontransactional(step.operation(), tables.root()).map_err(|problem| problem.in_operation(at))?;
            self.tables.push(tables);
            for reference in step.references() {
                ids::check(*reference, self.tables[reference.operation].root())
                    .map_err(|problem| problem.in_operation(at))?;
            }
        }
        Ok(())
    }

    async fn reload(&mut self, fault: Fault) -> Result<(), Fault> {
        let Some(at) = fault.at else {
            return Err(fault);
        };
        self.tables_of(at, SchemaAge::Fresh).await?;
        // Other operations may use the same tables, so all are loaded again.
        self.tables.clear();
        Ok(self.load().await?)
    }

    async fn tables_of(&self, at: usize, age: SchemaAge) -> Result<Tables, Problem> {
        let operation = self.batch.steps()[at].operation();
        Tables::load(self.context.app(), self.context.caller(), operation, age)
            .await
            .map_err(|problem| problem.in_operation(at))
    }

    async fn once(&self) -> Result<BatchAnswer, Fault> {
        let lease = self.context.lease_to_write().await;
        let mut lease = lease.map_err(|failure| Fault { at: None, failure })?;
        let mut transaction = Transaction::begin(&mut lease, self.context.limit(), self.context.progress()).await?;
        let outcome = self.run_all(&mut transaction).await;
        if self.batch.is_dry_run() {
            transaction.rollback().await;
            return outcome;
        }
        transaction.end(outcome).await
    }

    async fn run_all(&self, transaction: &mut Transaction<'_>) -> Result<BatchAnswer, Fault> {
        let mut ids = Ids::of(self.batch);
        let mut budget = AnswerBudget::WHOLE;
        let mut answer = BatchAnswer { payload: vec![b'['], is_limited: false, cut: Vec::new() };
        for at in 0..self.batch.steps().len() {
            let done = self.run_operation(at, transaction, &mut ids, &mut budget).await;
            let (payload, cut) = done.map_err(|failure| Fault { at: Some(at), failure })?;
            if at > 0 {
                answer.payload.push(b',');
            }
            answer.payload.extend_from_slice(&payload);
            answer.cut.extend(cut.map(|_| at));
            answer.is_limited |= cut == Some(Cut::ByMaximum);
        }
        answer.payload.push(b']');
        Ok(answer)
    }

    async fn run_operation(
        &self,
        at: usize,
        transaction: &mut Transaction<'_>,
        ids: &mut Ids,
        budget: &mut AnswerBudget,
    ) -> Result<(Vec<u8>, Option<Cut>), Failure> {
        let operation = self.batch.steps()[at].resolve(&mut |reference| ids.get(reference))?;
        self.context.begin_statements(&operation);
        let tables = &self.tables[at];
        let scope = tables.scope(&operation)?;
        let plan = plan::build(&operation, &scope, self.context.plan_limits(), Page::default())?;
        let (context, effect) = (self.context, tables.session_effect());
        let mut within = InTransaction { context, transaction, scope: &scope, effect, budget };
        let OperationAnswer { payload, cut, inserted } = within.run(plan).await?;
        if let Some((answer, written)) = inserted {
            ids.keep(at, answer, &payload, written);
        }
        Ok((payload, cut))
    }
}

/// Refuses a write to a table whose storage engine can't roll it back. Views are not checked.
fn refuse_nontransactional(operation: &RecordOperation, table: &Table) -> Result<(), Problem> {
    let traits = table.traits();
    if operation.is_read() || traits.inserts.transactional || traits.view {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::InvalidBody,
        format!(
            "What is written to the table {} can't be taken back, for its engine has no transactions.",
            shown(table.name().as_str())
        ),
    )
    .with_hint("Write to it outside of a batch, or give it an engine that has them: ENGINE = InnoDB."))
}
