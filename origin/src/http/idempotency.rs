//! Safe retries of inserts (`Idempotency-Key`): the insert's transaction also stores the response, as a "receipt". A
//! repeated request gets the stored response.

use super::records::{self, Failure};
use super::request_context::RequestContext;
use super::respond;
use crate::database::ReadFrom;
use crate::database::error::DbError;
use crate::database::idempotency::{self, Claim, Receipt};
use crate::database::pool::Lease;
use crate::database::run::SessionEffect;
use crate::database::transaction::Transaction;
use crate::query::plan::InsertAnswer;
use crate::query::sql::Statement;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use shared::error::{ErrorCode, Problem};
use shared::ident::DatabaseName;
use shared::limits::BATCH_ANSWER_MAX_BYTES;
use shared::operation::RecordOperation;
use shared::operation::write::IdempotentRequest;
use std::time::Duration;

/// Another request may have locked the receipt.
const CLAIMS_MAX_COUNT: usize = 4;
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(super) struct IdempotentInsert<'a> {
    pub(super) context: &'a RequestContext,
    pub(super) database: &'a DatabaseName,
    /// For a caller with a role, the key is hashed with the caller's identity, so that equal keys of different callers
    /// stay apart, and the fingerprint covers the fields in the response.
    pub(super) idempotent: &'a IdempotentRequest,
    pub(super) statements: Vec<Statement>,
    pub(super) answer: InsertAnswer,
    pub(super) operation: &'a RecordOperation,
    pub(super) effect: SessionEffect,
}

impl<'a> IdempotentInsert<'a> {
    pub(super) async fn run(self) -> Result<Response, Failure> {
        let lease = &mut self.context.lease(ReadFrom::Primary).await?;
        let mut is_created = false;
        for attempt in 0..CLAIMS_MAX_COUNT {
            if attempt > 0 {
                tokio::time::sleep(CLAIM_PAUSE).await;
            }
            let mut transaction = self.begin(lease).await?;
            match idempotency::claim(&mut transaction, self.database, self.idempotent).await {
                Ok(Claim::Ours) => return self.insert(transaction).await,
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
            match idempotency::read(&mut transaction, self.database, self.idempotent).await {
                Ok(Receipt::Answer(payload)) => {
                    transaction.rollback().await;
                    idempotency::note_position(lease, self.context.progress()).await;
                    return Ok(replayed(&payload, self.operation));
                }
                Ok(Receipt::Mismatch) => return transaction.end(Err(mismatch().into())).await,
                Ok(Receipt::Gone) => transaction.rollback().await,
                Ok(Receipt::Expired) => {
                    match idempotency::claim_expired(&mut transaction, self.database, self.idempotent).await {
                        Ok(Claim::Ours) => return self.insert(transaction).await,
                        Ok(_) => transaction.rollback().await,
                        Err(error) => return transaction.end(Err(error.into())).await,
                    }
                }
                Err(error) => return transaction.end(Err(error.into())).await,
            }
        }
        Err(in_progress().into())
    }

    async fn create_table(&self, lease: &mut Lease) -> Result<(), Failure> {
        let (limit, progress) = (self.context.limit(), self.context.progress());
        Ok(idempotency::create_table(lease, self.database, limit, progress).await?)
    }

    async fn begin<'l>(&self, lease: &'l mut Lease) -> Result<Transaction<'l>, Failure>
    where
        'a: 'l,
    {
        Ok(Transaction::begin(lease, self.context.limit(), self.context.progress()).await?)
    }

    async fn insert(self, mut transaction: Transaction<'_>) -> Result<Response, Failure> {
        let operation = self.operation;
        let outcome = self.insert_with_receipt(&mut transaction).await;
        let payload = transaction.end(outcome).await?;
        Ok(respond::written(&payload, operation))
    }

    async fn insert_with_receipt(self, transaction: &mut Transaction<'_>) -> Result<Vec<u8>, Failure> {
        let written = transaction.execute_all(self.statements, self.effect).await?;
        let payload = records::inserted(&written, self.answer);
        if payload.len() > BATCH_ANSWER_MAX_BYTES {
            return Err(DbError::AnswerTooLarge.into());
        }
        idempotency::store(transaction, self.database, self.idempotent, &payload).await?;
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
