//! Safe retries of inserts (`Idempotency-Key`): the insert's transaction also stores the response, as a "receipt". A
//! repeated request gets the stored response.

use super::records::{Failure, InTransaction};
use super::request_context::RequestContext;
use super::respond;
use crate::database::error::DbError;
use crate::database::idempotency::{self, Claim, FoundReceipt};
use crate::database::pool::Lease;
use crate::database::run::SessionEffect;
use crate::database::transaction::{AnswerBudget, Transaction};
use crate::query::plan::scope::Scope;
use crate::query::plan::{Insert, InsertAnswer, Plan};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::error::{ErrorCode, Problem};
use shared::operation::RecordOperation;
use shared::operation::write::IdempotentRequest;
use std::time::Duration;

/// Maximum attempts to insert the receipt, which another request may have locked.
const CLAIMS_MAX_COUNT: usize = 4;
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(super) struct IdempotentInsert<'a> {
    pub(super) context: &'a RequestContext,
    pub(super) scope: &'a Scope<'a>,
    pub(super) effect: SessionEffect,
    pub(super) insert: Insert,
    pub(super) idempotent: &'a IdempotentRequest,
    pub(super) operation: &'a RecordOperation,
}

impl<'a> IdempotentInsert<'a> {
    /// Inserts the records, or returns the stored response. For a caller with a role, the key is hashed with the
    /// caller's identity, so that equal keys of two callers differ, and the fingerprint covers the response's fields.
    pub(super) async fn run(self) -> Result<Response, Failure> {
        let caller = self.context.caller();
        let role = caller.rights().role();
        let of_caller = role.map(|role| self.idempotent.for_caller(&caller.identity(role), self.shown_fields()));
        let (key, database) = (of_caller.as_ref().unwrap_or(self.idempotent), self.scope.root().database());
        let lease = &mut self.context.lease_to_write().await?;
        let mut is_created = false;
        for attempt in 0..CLAIMS_MAX_COUNT {
            if attempt > 0 {
                tokio::time::sleep(CLAIM_PAUSE).await;
            }
            let mut transaction = self.begin(lease).await?;
            match idempotency::claim(&mut transaction, database, key).await {
                Ok(Claim::Ours) => return self.insert(transaction, key).await,
                Ok(Claim::Taken) => transaction.rollback().await,
                Ok(Claim::Busy) => {
                    transaction.rollback().await;
                    continue;
                }
                Ok(Claim::NoTable) if !is_created => {
                    transaction.rollback().await;
                    self.create_table(lease).await?;
                    is_created = true;
                    continue;
                }
                Ok(Claim::NoTable) => {
                    return transaction.end(Err(DbError::NoReceipts.into())).await;
                }
                Err(error) => return transaction.end(Err(error.into())).await,
            }
            let mut transaction = self.begin(lease).await?;
            match idempotency::read(&mut transaction, database, key).await {
                Ok(FoundReceipt::Answer(payload)) => {
                    transaction.rollback().await;
                    idempotency::note_position(lease, self.context.progress()).await;
                    return Ok(replayed(&payload, self.operation));
                }
                Ok(FoundReceipt::Mismatch) => return transaction.end(Err(mismatch().into())).await,
                Ok(FoundReceipt::Gone) => transaction.rollback().await,
                Ok(FoundReceipt::Expired) => match idempotency::claim_expired(&mut transaction, database, key).await {
                    Ok(Claim::Ours) => return self.insert(transaction, key).await,
                    Ok(_) => transaction.rollback().await,
                    Err(error) => return transaction.end(Err(error.into())).await,
                },
                Err(error) => return transaction.end(Err(error.into())).await,
            }
        }
        Err(in_progress().into())
    }

    async fn create_table(&self, lease: &mut Lease) -> Result<(), Failure> {
        let (limit, progress) = (self.context.limit(), self.context.progress());
        Ok(idempotency::create_table(lease, self.scope.root().database(), limit, progress).await?)
    }

    async fn begin<'l>(&self, lease: &'l mut Lease) -> Result<Transaction<'l>, Failure>
    where
        'a: 'l,
    {
        Ok(Transaction::begin(lease, self.context.limit(), self.context.progress()).await?)
    }

    /// Returns an id of the set of fields in the response; empty if the response has only the ids of the records.
    fn shown_fields(&self) -> &[u8] {
        match self.insert.answer() {
            InsertAnswer::Hidden | InsertAnswer::HiddenList(_) => b"hidden",
            _ => self.insert.records().map_or(b"", |records| records.layout().keys.layout_id()),
        }
    }

    async fn insert(self, mut transaction: Transaction<'_>, key: &IdempotentRequest) -> Result<Response, Failure> {
        let operation = self.operation;
        let outcome = self.insert_with_receipt(&mut transaction, key).await;
        let payload = transaction.end(outcome).await?;
        Ok(respond::written(&payload, operation))
    }

    async fn insert_with_receipt(
        self,
        transaction: &mut Transaction<'_>,
        key: &IdempotentRequest,
    ) -> Result<Vec<u8>, Failure> {
        let Self { context, scope, effect, insert, .. } = self;
        let budget = &mut { AnswerBudget::WHOLE };
        let mut within = InTransaction { context, transaction, scope, effect, budget };
        let payload = within.run(Plan::Insert(insert, None)).await?.payload;
        idempotency::store(transaction, scope.root().database(), key, &payload).await?;
        Ok(payload)
    }
}

fn replayed(payload: &[u8], operation: &RecordOperation) -> Response {
    let mut response = respond::written(payload, operation);
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn mismatch() -> Problem {
    Problem::new(
        ErrorCode::IdempotencyMismatch,
        "This Idempotency-Key was used for another insert.",
    )
    .with_hint("A repeated request must have the same table, options and body, byte by byte, and a role that reads the same fields; another one needs a key of its own.")
}

fn in_progress() -> Problem {
    Problem::new(ErrorCode::IdempotencyInProgress, "The first request with this Idempotency-Key still runs.")
        .with_hint("Try again: then it gets the first one's answer.")
}
