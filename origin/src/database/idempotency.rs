//! Idempotency receipts: rows that store the response to an insert under its `Idempotency-Key`, to answer a repeated
//! request. A receipt is written in the insert's own transaction, so that both are committed or neither is. Each
//! database has its own table of receipts, which is created when it is first needed.

mod sweep;

pub use self::sweep::sweep;
use super::errno;
use super::error::DbError;
use super::pool::Lease;
use super::run::{SessionEffect, StatementStats};
use super::transaction::{self, Transaction};
use crate::query::sql::receipt;
use mysql_async::Value;
use shared::error::ErrorCode;
use shared::ident::DatabaseName;
use shared::operation::write::IdempotentRequest;
use std::time::Duration;

#[derive(Debug)]
pub enum Claim {
    /// The transaction has claimed the key: no other transaction can claim it until this transaction ends.
    Ours,
    /// The key has a receipt. The caller must roll back, since the transaction may hold a lock on the receipt.
    Taken,
    /// A request with the same key is running.
    Busy,
    /// The table of receipts is missing. The caller must roll back, then create the table.
    NoTable,
}

#[derive(Debug)]
pub enum FoundReceipt {
    Answer(Vec<u8>),
    Mismatch,
    Expired,
    Gone,
}

/// Creates the table of receipts. Must run outside of a transaction, which CREATE TABLE would commit.
pub async fn create_table(
    lease: &mut Lease,
    database: &DatabaseName,
    limit: Duration,
    progress: &StatementStats,
) -> Result<(), DbError> {
    let statement = vec![receipt::create(database)];
    let made = transaction::write(lease, statement, SessionEffect::Nothing, limit, progress).await;
    made.map(drop).map_err(of_receipts)
}

/// Records the host's current position, which includes the write that an earlier request committed.
pub async fn note_position(lease: &mut Lease, progress: &StatementStats) {
    lease.note_position(progress).await;
}

/// Claims the key for the transaction's insert, without waiting for row locks of other transactions.
pub async fn claim(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    idempotent: &IdempotentRequest,
) -> Result<Claim, DbError> {
    match transaction.execute_internal(receipt::claim(database, idempotent)).await {
        Ok(_) => Ok(Claim::Ours),
        Err(error) if error.is_duplicate() => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) if is_gone(&error) => Ok(Claim::NoTable),
        Err(error) => Err(of_receipts(error)),
    }
}

pub async fn read(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    idempotent: &IdempotentRequest,
) -> Result<FoundReceipt, DbError> {
    let row = match transaction.first(receipt::read(database, idempotent.key())).await {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(FoundReceipt::Gone),
        Err(error) if is_gone(&error) => return Ok(FoundReceipt::Gone),
        Err(error) => return Err(of_receipts(error)),
    };
    Ok(match (row.as_ref(0), row.as_ref(1), row.as_ref(2)) {
        (_, _, Some(expired)) if *expired != Value::Int(0) => FoundReceipt::Expired,
        (Some(Value::Bytes(fingerprint)), Some(Value::Bytes(answer)), _)
            if fingerprint.as_slice() == idempotent.fingerprint() =>
        {
            FoundReceipt::Answer(answer.clone())
        }
        // The stored fingerprint is that of a different request. (A committed receipt always has a response.)
        _ => FoundReceipt::Mismatch,
    })
}

/// Claims a key whose receipt has expired. Returns [`Claim::Taken`] if another request has renewed the receipt.
pub async fn claim_expired(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    idempotent: &IdempotentRequest,
) -> Result<Claim, DbError> {
    match transaction.execute_internal(receipt::renew(database, idempotent)).await {
        Ok(renewed) if renewed.affected == 1 => Ok(Claim::Ours),
        Ok(_) => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) if is_gone(&error) => Ok(Claim::NoTable),
        Err(error) => Err(of_receipts(error)),
    }
}

pub async fn store(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    idempotent: &IdempotentRequest,
    answer: &[u8],
) -> Result<(), DbError> {
    let kept = transaction.execute_internal(receipt::store_answer(database, idempotent, answer)).await;
    kept.map(drop).map_err(of_receipts)
}

fn is_gone(error: &DbError) -> bool {
    error.errno() == Some(errno::NO_SUCH_TABLE)
}

/// Converts an error of the table of receipts: the response would otherwise blame the table of the insert.
fn of_receipts(error: DbError) -> DbError {
    match error.code() {
        Some(ErrorCode::PermissionDenied | ErrorCode::UnknownField | ErrorCode::TableNotFound) => DbError::NoReceipts,
        _ => error,
    }
}
