//! An insert's receipt, in the insert's own transaction: taken before, and with the answer after it.
//! Both are there or neither is, whatever ends in between.

use super::error::DbError;
use super::transaction::Transaction;
use crate::sql::receipt;
use mysql_async::Value;
use shared::ident::ProjectName;
use shared::operation::write::Once;

/// What became of taking a key.
#[derive(Debug)]
pub enum Claim {
    /// It is this transaction's now: whoever else wants it is refused until the transaction ends.
    Ours,
    /// There is a receipt already. The transaction is to be rolled back, since it holds a lock of it.
    Taken,
    /// Another transaction is about to write one, or reads it just now.
    Busy,
}

/// The receipt of a key.
#[derive(Debug)]
pub enum Receipt {
    /// The same request was answered with this.
    Answer(Vec<u8>),
    /// Another request had that key.
    Mismatch,
    /// It is too old.
    Outlived,
    /// There is none any more.
    Gone,
}

/// Tries to take a key.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn claim(
    transaction: &mut Transaction<'_>,
    project: &ProjectName,
    once: &Once,
) -> Result<Claim, DbError> {
    let taken = transaction.aside(&receipt::claim(project, once)).await;
    match taken.map_err(of_receipts) {
        Ok(_) => Ok(Claim::Ours),
        Err(error) if error.is_duplicate() => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) => Err(error),
    }
}

/// Reads the receipt of a key.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn look(
    transaction: &mut Transaction<'_>,
    project: &ProjectName,
    once: &Once,
) -> Result<Receipt, DbError> {
    let found = transaction.first(receipt::read(project, once)).await;
    let Some(row) = found.map_err(of_receipts)? else {
        return Ok(Receipt::Gone);
    };
    Ok(match (row.as_ref(0), row.as_ref(1), row.as_ref(2)) {
        (_, _, Some(outlived)) if *outlived != Value::Int(0) => Receipt::Outlived,
        (Some(Value::Bytes(fingerprint)), Some(Value::Bytes(answer)), _)
            if fingerprint.as_slice() == once.fingerprint() =>
        {
            Receipt::Answer(answer.clone())
        }
        // A receipt is committed with its answer only.
        _ => Receipt::Mismatch,
    })
}

/// Tries to take the key over from a receipt that is too old.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn renew(
    transaction: &mut Transaction<'_>,
    project: &ProjectName,
    once: &Once,
) -> Result<Claim, DbError> {
    let renewed = transaction.aside(&receipt::renew(project, once)).await;
    match renewed.map_err(of_receipts) {
        Ok(renewed) if renewed.affected == 1 => Ok(Claim::Ours),
        Ok(_) => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) => Err(error),
    }
}

/// Writes the answer into the receipt that this transaction has taken.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn keep(
    transaction: &mut Transaction<'_>,
    project: &ProjectName,
    once: &Once,
    answer: &[u8],
) -> Result<(), DbError> {
    let kept = transaction
        .aside(&receipt::keep(project, once, answer))
        .await;
    kept.map(drop).map_err(of_receipts)
}

/// The account may not use its table of receipts, or there is none: that is no fault of the table which
/// the insert is about.
fn of_receipts(error: DbError) -> DbError {
    match error.errno() {
        Some(1044 | 1142 | 1143 | 1049 | 1146 | 1054) => DbError::NoReceipts,
        _ => error,
    }
}
