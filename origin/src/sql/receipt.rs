//! Receipts of inserts that happen once. They run in the insert's transaction, under the project's
//! account, on the project's own table.

use super::Statement;
use super::builder::Builder;
use crate::plan::Param;
use shared::ident::{ProjectName, RECEIPTS_SCHEMA};
use shared::limits::IDEMPOTENCY_LIFETIME_SECONDS;
use shared::operation::write::Once;

impl Builder {
    fn receipts(&mut self, project: &ProjectName) -> &mut Self {
        self.ident(RECEIPTS_SCHEMA)
            .syntax(".")
            .ident(project.as_str())
    }

    fn hash(&mut self, hash: &[u8; 32]) -> &mut Self {
        self.param(Param::Bytes(hash.to_vec()))
    }

    fn of_key(&mut self, once: &Once) -> &mut Self {
        self.syntax(" WHERE key_hash = ").hash(once.key())
    }

    fn outlived(&mut self) -> &mut Self {
        self.syntax("created_at <= UNIX_TIMESTAMP() - ")
            .param(Param::UInt(IDEMPOTENCY_LIFETIME_SECONDS))
    }
}

/// Takes the key. It waits for nobody: if another transaction holds it, the statement fails at once.
#[must_use]
pub fn claim(project: &ProjectName, once: &Once) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO ")
        .receipts(project)
        .syntax(" (key_hash, fingerprint, created_at) VALUES (")
        .hash(once.key())
        .syntax(", ")
        .hash(once.fingerprint())
        .syntax(", UNIX_TIMESTAMP())");
    sql.finish()
}

/// Reads the key's receipt: its fingerprint, its answer, and whether it is too old.
#[must_use]
pub fn read(project: &ProjectName, once: &Once) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT fingerprint, answer, ")
        .outlived()
        .syntax(" FROM ")
        .receipts(project)
        .of_key(once);
    sql.finish()
}

/// Takes the key over from a receipt that is too old. Of two that try, the second finds no row.
#[must_use]
pub fn renew(project: &ProjectName, once: &Once) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE ")
        .receipts(project)
        .syntax(" SET fingerprint = ")
        .hash(once.fingerprint())
        .syntax(", created_at = UNIX_TIMESTAMP(), answer = NULL")
        .of_key(once)
        .syntax(" AND ")
        .outlived();
    sql.finish()
}

/// Writes the answer into the receipt.
#[must_use]
pub fn keep(project: &ProjectName, once: &Once, answer: &[u8]) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("UPDATE ")
        .receipts(project)
        .syntax(" SET answer = ")
        .param(Param::Bytes(answer.to_vec()))
        .of_key(once);
    sql.finish()
}
