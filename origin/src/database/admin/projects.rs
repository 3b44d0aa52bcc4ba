//! Rows of `selkie.projects` and `selkie.databases`: the projects and the databases that they own.

use std::str::FromStr;

use mysql_async::TxOpts;
use mysql_async::prelude::Queryable;
use shared::ident::{DatabaseName, ProjectName};

use super::{Admin, AdminError};
use crate::database::typed_rows;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    pub name: ProjectName,
    /// Seconds since 1970.
    pub created_at: u64,
}

/// What a project's keys with full access may drop in one of the project's recorded databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// Nothing: the project's accounts have no DROP privilege on the database.
    Nothing,
    /// Tables, views and the like, but not the database.
    Tables,
    /// Tables, views and the like, and the database itself.
    Database,
}

impl Drops {
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Tables, Self::Database];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Tables => "tables",
            Self::Database => "database",
        }
    }
}

impl FromStr for Drops {
    type Err = AdminError;

    fn from_str(text: &str) -> Result<Self, AdminError> {
        Self::ALL.into_iter().find(|drops| drops.as_str() == text).ok_or(AdminError::Corrupt("right to drop"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseRow {
    pub name: DatabaseName,
    pub project: ProjectName,
    pub drops: Drops,
}

impl Admin {
    pub async fn projects(&self) -> Result<Vec<ProjectRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, u64)> = self
            .within(typed_rows::all(conn.query_iter("SELECT name, created_at FROM selkie.projects ORDER BY name")))
            .await?;
        rows.into_iter().map(|(name, created_at)| Ok(ProjectRow { name: project(&name)?, created_at })).collect()
    }

    /// Records a project, unless it is recorded already ([`Inserted::Existing`]).
    pub async fn insert_project(&self, name: &ProjectName, now: u64) -> Result<Inserted, AdminError> {
        let mut conn = self.conn().await?;
        self.within(
            conn.exec_drop("INSERT IGNORE INTO selkie.projects (name, created_at) VALUES (?, ?)", (name.as_str(), now)),
        )
        .await?;
        Ok(Inserted::of(conn.affected_rows()))
    }

    pub async fn owned_databases(&self) -> Result<Vec<DatabaseRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, String, String)> = self
            .within(typed_rows::all(
                conn.query_iter("SELECT name, project, drops FROM selkie.`databases` ORDER BY name"),
            ))
            .await?;
        rows.into_iter()
            .map(|(name, owner, drops)| {
                Ok(DatabaseRow { name: database(&name)?, project: project(&owner)?, drops: drops.parse()? })
            })
            .collect()
    }

    /// Inserts the row of a project's database. If the database already has a row, changes only `drops` in it (what the
    /// project may drop), even if the row names another project: the caller must make sure that no other project owns
    /// the database.
    pub async fn record_database(&self, row: &DatabaseRow, now: u64) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.exec_drop(
            "INSERT INTO selkie.`databases` (name, project, drops, created_at) VALUES (?, ?, ?, ?)
             ON DUPLICATE KEY UPDATE drops = VALUES(drops)",
            (row.name.as_str(), row.project.as_str(), row.drops.as_str(), now),
        ))
        .await
    }

    /// Deletes the row of a project that has neither recorded databases nor media files, and the rows of its keys,
    /// roles, issuers, media folders and uploads, in one transaction. Returns [`AdminError::Refused`] (1451, foreign
    /// key) and changes nothing if the project still has a database or a file.
    pub async fn delete_project(&self, name: &ProjectName) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(async {
            let mut transaction = conn.start_transaction(TxOpts::default()).await?;
            transaction.query_drop(super::keys::CHANGED).await?;
            for statement in [
                "DELETE FROM selkie.`keys` WHERE project = ?",
                "DELETE FROM selkie.roles WHERE project = ?",
                "DELETE FROM selkie.issuers WHERE project = ?",
                "DELETE FROM selkie.webhooks WHERE project = ?",
                "DELETE FROM selkie.media_uploads WHERE project = ?",
                "DELETE FROM selkie.media_folders WHERE project = ?",
                "DELETE FROM selkie.project_key_changes WHERE project = ?",
                "DELETE FROM selkie.projects WHERE name = ?",
            ] {
                transaction.exec_drop(statement, (name.as_str(),)).await?;
            }
            transaction.commit().await
        })
        .await
    }

    pub async fn forget_database(&self, name: &DatabaseName) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.exec_drop("DELETE FROM selkie.`databases` WHERE name = ?", (name.as_str(),))).await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    New,
    Existing,
}

impl Inserted {
    pub(super) fn of(affected_rows: u64) -> Self {
        if affected_rows > 0 { Self::New } else { Self::Existing }
    }
}

pub(super) fn project(name: &str) -> Result<ProjectName, AdminError> {
    ProjectName::parse(name).map_err(|_| AdminError::Corrupt("project name"))
}

fn database(name: &str) -> Result<DatabaseName, AdminError> {
    DatabaseName::parse(name).map_err(|_| AdminError::Corrupt("database name"))
}
