//! Where projects keep receipts of inserts that must happen once: one table for each in a schema of
//! its own, on which nobody but the project's account has rights.
//!
//! Receipts are written by the insert's own transaction, under the project's account; here the tables
//! are made, and old receipts swept.

use mysql_async::prelude::Queryable;
use shared::ident::{ProjectName, RECEIPTS_SCHEMA};
use shared::limits::IDEMPOTENCY_LIFETIME_SECONDS;

use super::quote::ident;
use super::{Admin, AdminError};

/// Receipts that one statement deletes: few enough that nobody waits for it.
const SWEPT_AT_ONCE: usize = 500;

/// The table, as SQL names it. A key's hash is its name; no other index, so that no lock of one key
/// ever covers another.
fn place(project: &ProjectName) -> String {
    format!("{RECEIPTS_SCHEMA}.{}", ident(project.as_str()))
}

impl Admin {
    /// Makes the table of a project's receipts. One that is there is not touched.
    ///
    /// # Errors
    /// MariaDB failed, or denies the admin account the right.
    pub async fn ensure_receipts(&self, project: &ProjectName) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        let found: Option<u8> = self
            .within(conn.exec_first(
                "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
                (RECEIPTS_SCHEMA, project.as_str()),
            ))
            .await?;
        if found.is_some() {
            return Ok(());
        }
        if !self.exists(RECEIPTS_SCHEMA).await? {
            self.run(format!(
                "CREATE DATABASE IF NOT EXISTS {RECEIPTS_SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
            ))
            .await?;
        }
        self.run(format!(
            "CREATE TABLE IF NOT EXISTS {} (
                key_hash BINARY(32) NOT NULL PRIMARY KEY,
                fingerprint BINARY(32) NOT NULL,
                created_at BIGINT UNSIGNED NOT NULL,
                answer LONGBLOB NULL
            ) ENGINE = InnoDB",
            place(project)
        ))
        .await
    }

    /// Deletes a project's receipts that are too old to be asked for: how many. Takes locks on those
    /// alone.
    ///
    /// # Errors
    /// MariaDB failed; there may be no such table.
    pub async fn sweep_receipts(&self, project: &ProjectName) -> Result<u64, AdminError> {
        let place = place(project);
        let mut conn = self.conn().await?;
        let mut swept = 0;
        loop {
            let old: Vec<Vec<u8>> = self
                .within(conn.exec(
                    format!(
                        "SELECT key_hash FROM {place} WHERE created_at <= UNIX_TIMESTAMP() - ? LIMIT {SWEPT_AT_ONCE}"
                    ),
                    (IDEMPOTENCY_LIFETIME_SECONDS,),
                ))
                .await?;
            let last = old.len() < SWEPT_AT_ONCE;
            for key in old {
                // Asked again: it may have been renewed since.
                self.within(conn.exec_drop(
                    format!(
                        "DELETE FROM {place} WHERE key_hash = ? AND created_at <= UNIX_TIMESTAMP() - ?"
                    ),
                    (key, IDEMPOTENCY_LIFETIME_SECONDS),
                ))
                .await?;
                swept += conn.affected_rows();
            }
            if last {
                return Ok(swept);
            }
        }
    }
}
