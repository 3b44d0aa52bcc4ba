//! Statements for backups and restores, besides the dump, which MariaDB's tools write and load.

use mysql_async::prelude::Queryable;

use super::quote::ident;
use super::{Admin, AdminError};
use crate::database::ask;

/// The numbers of things that an installation contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub keys: u64,
    pub databases: u64,
    pub files: u64,
    /// Projects other than the default one, roles and issuers, added up.
    pub others: u64,
}

impl Admin {
    /// Returns whether MariaDB writes a binary log.
    pub async fn writes_binlog(&self) -> Result<bool, AdminError> {
        let mut conn = self.conn().await?;
        let on: Option<u8> = self.within(ask::first(conn.query_iter("SELECT @@log_bin"))).await?;
        Ok(on == Some(1))
    }

    /// Counts what an installation contains. Expired and revoked keys are counted too.
    pub async fn content(&self) -> Result<Content, AdminError> {
        let mut conn = self.conn().await?;
        let counts = "SELECT (SELECT COUNT(*) FROM selkie.`keys`), (SELECT COUNT(*) FROM selkie.`databases`), \
             (SELECT COUNT(*) FROM selkie.media), (SELECT COUNT(*) FROM selkie.projects WHERE name <> 'default') + \
             (SELECT COUNT(*) FROM selkie.roles) + (SELECT COUNT(*) FROM selkie.issuers)";
        let counts: Option<(u64, u64, u64, u64)> = self.within(ask::first(conn.query_iter(counts))).await?;
        let (keys, databases, files, others) = counts.ok_or(AdminError::Corrupt("count"))?;
        Ok(Content { keys, databases, files, others })
    }

    /// Drops `databases` and the system schema `selkie`, if they exist.
    pub async fn drop_for_restore(&self, databases: &[String]) -> Result<(), AdminError> {
        for name in databases.iter().map(String::as_str).chain(["selkie"]) {
            self.run(format!("DROP DATABASE IF EXISTS {}", ident(name))).await?;
        }
        Ok(())
    }

    /// Deletes the records of unfinished resumable uploads, since a backup does not contain their
    /// bytes.
    pub async fn forget_uploads(&self) -> Result<(), AdminError> {
        self.run("DELETE FROM selkie.media_uploads".to_owned()).await
    }

    /// Sets the installation's id to `id`, or to a new id if `id` is `None`.
    pub async fn set_installation(&self, id: Option<&String>) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        let set = "UPDATE selkie.installation SET uuid = COALESCE(?, UUID())";
        self.within(conn.exec_drop(set, (id,))).await
    }
}
