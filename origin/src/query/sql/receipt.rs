//! Receipts of inserts that happen once: a table of ours in the database that the insert is about. They
//! are written in the insert's transaction, under the project's account.

use super::Statement;
use super::builder::Builder;
use crate::query::plan::Param;
use shared::ident::{DatabaseName, TableName};
use shared::limits::IDEMPOTENCY_LIFETIME_SECONDS;
use shared::operation::write::{Hash, Once};

impl Builder {
    fn receipts(&mut self, database: &DatabaseName) -> &mut Self {
        self.ident(database.as_str()).syntax(".").ident(TableName::RECEIPTS)
    }

    fn hash(&mut self, hash: &Hash) -> &mut Self {
        self.param(Param::Bytes(hash.to_vec()))
    }

    fn of_key(&mut self, key: &Hash) -> &mut Self {
        self.syntax(" WHERE key_hash = ").hash(key)
    }

    fn outlived(&mut self) -> &mut Self {
        self.syntax("created_at <= UNIX_TIMESTAMP() - ").param(Param::UInt(IDEMPOTENCY_LIFETIME_SECONDS))
    }
}

/// Makes the table, as `docs/accounts.md` shows it. It has no other index, so that no lock of one key
/// ever covers another.
#[must_use]
pub fn create(database: &DatabaseName) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("CREATE TABLE IF NOT EXISTS ").receipts(database).syntax(
        " (key_hash BINARY(32) NOT NULL PRIMARY KEY, fingerprint BINARY(32) NOT NULL, \
             created_at BIGINT UNSIGNED NOT NULL, answer LONGBLOB NULL) ENGINE = InnoDB \
             COMMENT = 'Selkie: answers to inserts with an Idempotency-Key, kept for a day'",
    );
    sql.finish()
}

/// Takes the key. It waits for nobody: if another transaction holds it, the statement fails at once.
#[must_use]
pub fn claim(database: &DatabaseName, once: &Once) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO ")
        .receipts(database)
        .syntax(" (key_hash, fingerprint, created_at) VALUES (")
        .hash(once.key())
        .syntax(", ")
        .hash(once.fingerprint())
        .syntax(", UNIX_TIMESTAMP())");
    sql.finish()
}

/// Reads the key's receipt: its fingerprint, its answer, and whether it is too old.
#[must_use]
pub fn read(database: &DatabaseName, key: &Hash) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT fingerprint, answer, ").outlived().syntax(" FROM ").receipts(database).of_key(key);
    sql.finish()
}

/// Takes the key over from a receipt that is too old. Of two that try, the second finds no row.
#[must_use]
pub fn renew(database: &DatabaseName, once: &Once) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE ")
        .receipts(database)
        .syntax(" SET fingerprint = ")
        .hash(once.fingerprint())
        .syntax(", created_at = UNIX_TIMESTAMP(), answer = NULL")
        .of_key(once.key())
        .syntax(" AND ")
        .outlived();
    sql.finish()
}

/// Writes the answer into the receipt.
#[must_use]
pub fn keep(database: &DatabaseName, once: &Once, answer: &[u8]) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ")
        .receipts(database)
        .syntax(" SET answer = ")
        .param(Param::Bytes(answer.to_vec()))
        .of_key(once.key());
    sql.finish()
}

/// The databases where the account sees receipts.
#[must_use]
pub fn databases() -> Statement {
    let mut sql = Builder::new();
    sql.syntax(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES \
         WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME = ",
    )
    .param(Param::Text(TableName::RECEIPTS.into()));
    sql.finish()
}

/// Keys of receipts that are too old, this many at most; found without locks.
#[must_use]
pub fn outlived(database: &DatabaseName, count: usize) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT key_hash FROM ")
        .receipts(database)
        .syntax(" WHERE ")
        .outlived()
        .syntax(" LIMIT ")
        .param(Param::UInt(count as u64));
    sql.finish()
}

/// Deletes a receipt. Asked again whether it is too old: it may have been renewed since.
#[must_use]
pub fn delete(database: &DatabaseName, key: Vec<u8>) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("DELETE FROM ")
        .receipts(database)
        .syntax(" WHERE key_hash = ")
        .param(Param::Bytes(key))
        .syntax(" AND ")
        .outlived();
    sql.finish()
}
