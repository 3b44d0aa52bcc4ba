//! SQL of idempotency receipts: a table of the program's own in the database of the insert. Receipts are written in the
//! insert's transaction, under the project's account.

use super::Statement;
use super::builder::Builder;
use crate::query::plan::Param;
use shared::ident::{DatabaseName, TableName};
use shared::limits::IDEMPOTENCY_LIFETIME_SECONDS;
use shared::operation::write::{Hash, IdempotentRequest};

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

/// Creates the table, as `docs/accounts.md` shows it. It has no other index, so that a lock of one key never covers
/// another.
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

/// Claims a key. Fails at once if another transaction has locked it.
#[must_use]
pub fn claim(database: &DatabaseName, idempotent: &IdempotentRequest) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO ")
        .receipts(database)
        .syntax(" (key_hash, fingerprint, created_at) VALUES (")
        .hash(idempotent.key())
        .syntax(", ")
        .hash(idempotent.fingerprint())
        .syntax(", UNIX_TIMESTAMP())");
    sql.finish()
}

/// Reads a key's receipt: its fingerprint, its response, and whether it has expired.
#[must_use]
pub fn read(database: &DatabaseName, key: &Hash) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT fingerprint, answer, ").outlived().syntax(" FROM ").receipts(database).of_key(key);
    sql.finish()
}

/// Claims the key of an expired receipt. Of two concurrent claims, the second finds no row.
#[must_use]
pub fn renew(database: &DatabaseName, idempotent: &IdempotentRequest) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE ")
        .receipts(database)
        .syntax(" SET fingerprint = ")
        .hash(idempotent.fingerprint())
        .syntax(", created_at = UNIX_TIMESTAMP(), answer = NULL")
        .of_key(idempotent.key())
        .syntax(" AND ")
        .outlived();
    sql.finish()
}

/// Stores the response in the receipt.
#[must_use]
pub fn keep(database: &DatabaseName, idempotent: &IdempotentRequest, answer: &[u8]) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ")
        .receipts(database)
        .syntax(" SET answer = ")
        .param(Param::Bytes(answer.to_vec()))
        .of_key(idempotent.key());
    sql.finish()
}

/// Lists the databases in which the account sees receipts.
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

/// Lists the keys of expired receipts, `count` at most, without locks.
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

/// Deletes a receipt if it has expired: it may have been renewed since it was listed.
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
