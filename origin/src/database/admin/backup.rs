//! Statements for backups and restores, beside the dumps themselves.

use mysql_async::prelude::Queryable;

use super::quote::ident;
use super::{Admin, AdminError};
use crate::database::typed_rows;

/// The numbers of recorded keys, databases and media files of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstallationContent {
    pub keys: u64,
    pub databases: u64,
    pub files: u64,
    /// The number of projects, except the default one, plus the number of roles, of issuers and of webhooks.
    pub others: u64,
}

impl Admin {
    /// Counts the rows of the system schema: recorded keys (expired and revoked ones too), databases, media files,
    /// projects, roles, issuers and webhooks.
    pub async fn content(&self) -> Result<InstallationContent, AdminError> {
        let mut conn = self.conn().await?;
        let counts = "SELECT (SELECT COUNT(*) FROM selkie.`keys`), (SELECT COUNT(*) FROM selkie.`databases`), \
             (SELECT COUNT(*) FROM selkie.media), (SELECT COUNT(*) FROM selkie.projects WHERE name <> 'default') + \
             (SELECT COUNT(*) FROM selkie.roles) + (SELECT COUNT(*) FROM selkie.issuers) + \
             (SELECT COUNT(*) FROM selkie.webhooks)";
        let counts: Option<(u64, u64, u64, u64)> = self.within(typed_rows::first(conn.query_iter(counts))).await?;
        let (keys, databases, files, others) = counts.ok_or(AdminError::Corrupt("count"))?;
        Ok(InstallationContent { keys, databases, files, others })
    }

    /// Drops `databases` and the system schema `selkie`, if they exist.
    pub async fn drop_for_restore(&self, databases: Vec<String>) -> Result<(), AdminError> {
        for name in databases.iter().map(String::as_str).chain(["selkie"]) {
            self.run(format!("DROP DATABASE IF EXISTS {}", ident(name))).await?;
        }
        Ok(())
    }

    /// Deletes the records of all resumable uploads, since a backup does not contain the bytes of unfinished ones.
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
