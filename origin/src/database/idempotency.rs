//! An insert's receipt, in the insert's own transaction: taken before, and with the answer after it.
//! Both are there or neither is, whatever ends in between. Its table is made when it is first needed.

mod sweep;

pub use self::sweep::sweep;
use super::error::DbError;
use super::pool::Lease;
use super::run::{Progress, SessionEffect};
use super::transaction::{self, Transaction};
use crate::query::sql::receipt;
use mysql_async::Value;
use shared::ident::DatabaseName;
use shared::operation::write::{Hash, Once};
use std::time::Duration;

/// MariaDB's number for "no such table".
const NO_SUCH_TABLE: u16 = 1146;

/// What became of taking a key.
#[derive(Debug)]
pub enum Claim {
    /// It is this transaction's now: whoever else wants it is refused until the transaction ends.
    Ours,
    /// There is a receipt already. The transaction is to be rolled back, since it holds a lock of it.
    Taken,
    /// Another transaction is about to write one, or reads it just now.
    Busy,
    /// There is no table of receipts. It is to be made when the transaction has been rolled back.
    NoTable,
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

/// Makes the table of receipts, outside of any transaction: MariaDB would commit that. One that is there,
/// or that another request makes just now, is not touched.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn make(
    lease: &mut Lease,
    database: &DatabaseName,
    limit: Duration,
    progress: &Progress,
) -> Result<(), DbError> {
    let statement = vec![receipt::create(database)];
    let made = transaction::write(lease, statement, SessionEffect::Nothing, limit, progress).await;
    made.map(drop).map_err(of_receipts)
}

/// Tries to take a key.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn claim(transaction: &mut Transaction<'_>, database: &DatabaseName, once: &Once) -> Result<Claim, DbError> {
    match transaction.aside(receipt::claim(database, once)).await {
        Ok(_) => Ok(Claim::Ours),
        Err(error) if error.is_duplicate() => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) if is_gone(&error) => Ok(Claim::NoTable),
        Err(error) => Err(of_receipts(error)),
    }
}

/// Reads the receipt of a request's key: under `key`, its hash or its former one.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn look(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    once: &Once,
    key: &Hash,
) -> Result<Receipt, DbError> {
    let row = match transaction.first(receipt::read(database, key)).await {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(Receipt::Gone),
        Err(error) if is_gone(&error) => return Ok(Receipt::Gone),
        Err(error) => return Err(of_receipts(error)),
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
pub async fn renew(transaction: &mut Transaction<'_>, database: &DatabaseName, once: &Once) -> Result<Claim, DbError> {
    match transaction.aside(receipt::renew(database, once)).await {
        Ok(renewed) if renewed.affected == 1 => Ok(Claim::Ours),
        Ok(_) => Ok(Claim::Taken),
        Err(error) if error.is_lock_timeout() => Ok(Claim::Busy),
        Err(error) if is_gone(&error) => Ok(Claim::NoTable),
        Err(error) => Err(of_receipts(error)),
    }
}

/// Writes the answer into the receipt that this transaction has taken.
///
/// # Errors
/// What MariaDB or the connection gave; [`DbError::NoReceipts`].
pub async fn keep(
    transaction: &mut Transaction<'_>,
    database: &DatabaseName,
    once: &Once,
    answer: &[u8],
) -> Result<(), DbError> {
    let kept = transaction.aside(receipt::keep(database, once, answer)).await;
    kept.map(drop).map_err(of_receipts)
}

fn is_gone(error: &DbError) -> bool {
    error.errno() == Some(NO_SUCH_TABLE)
}

/// The account may not make or use the table of receipts, or it is another one by that name: that is no
/// fault of the table which the insert is about, and says nothing of what is known of that.
fn of_receipts(error: DbError) -> DbError {
    match error.errno() {
        Some(1044 | 1142 | 1143 | 1054 | NO_SUCH_TABLE) => DbError::NoReceipts,
        _ => error,
    }
}
