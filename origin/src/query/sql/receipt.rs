//! Renders the statements for idempotency receipts, which keep the response to a request with an `Idempotency-Key`.
//! Receipts are written in the insert's transaction, under the project's account.

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

/// Creates the table of `docs/accounts.md`. Without a secondary index, a lock on one key never covers another key.
pub fn create(database: &DatabaseName) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("CREATE TABLE IF NOT EXISTS ").receipts(database).syntax(
        " (key_hash BINARY(32) NOT NULL PRIMARY KEY, fingerprint BINARY(32) NOT NULL, \
             created_at BIGINT UNSIGNED NOT NULL, answer LONGBLOB NULL) ENGINE = InnoDB \
             COMMENT = 'Selkie: answers to inserts with an Idempotency-Key, kept for a day'",
    );
    sql.finish()
}

/// Inserts a receipt. Fails with a duplicate key if the key has a receipt, at once with a lock timeout if it is locked.
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

pub fn read(database: &DatabaseName, key: &Hash) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT fingerprint, answer, ").outlived().syntax(" FROM ").receipts(database).of_key(key);
    sql.finish()
}

/// Renews an expired receipt; changes no row if it is gone or renewed. Fails with a lock timeout, at once, if locked.
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

pub fn store_answer(database: &DatabaseName, idempotent: &IdempotentRequest, answer: &[u8]) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ")
        .receipts(database)
        .syntax(" SET answer = ")
        .param(Param::Bytes(answer.to_vec()))
        .of_key(idempotent.key());
    sql.finish()
}

pub fn databases() -> Statement {
    let mut sql = Builder::new();
    sql.syntax(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES \
         WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME = ",
    )
    .param(Param::Text(TableName::RECEIPTS.into()));
    sql.finish()
}

/// Selects keys of expired receipts. Takes no locks. The project may have made keys of any length.
pub fn outlived(database: &DatabaseName, count: usize) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT LEFT(key_hash, 33) FROM ")
        .receipts(database)
        .syntax(" WHERE ")
        .outlived()
        .syntax(" LIMIT ")
        .param(Param::UInt(count as u64));
    sql.finish()
}

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
