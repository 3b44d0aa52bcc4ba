//! Rows of `selkie.projects` and `selkie.databases`: which project exists, and what it owns.

use crate::db::ask;
use mysql_async::prelude::Queryable;
use shared::ident::{DatabaseName, ProjectName};

use super::{Admin, AdminError};

/// A project as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its name.
    pub name: ProjectName,
    /// Seconds since 1970.
    pub created_at: u64,
}

impl Admin {
    /// All projects, by name.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn projects(&self) -> Result<Vec<ProjectRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, u64)> = self
            .within(ask::all(conn.query_iter(
                "SELECT name, created_at FROM selkie.projects ORDER BY name",
            )))
            .await?;
        rows.into_iter()
            .map(|(name, created_at)| {
                Ok(ProjectRow {
                    name: project(&name)?,
                    created_at,
                })
            })
            .collect()
    }

    /// Records a project; one that is there already stays as it is. Whether it is new.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn insert_project(
        &self,
        name: &ProjectName,
        now: u64,
    ) -> Result<Inserted, AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.exec_drop(
            "INSERT IGNORE INTO selkie.projects (name, created_at) VALUES (?, ?)",
            (name.as_str(), now),
        ))
        .await?;
        Ok(Inserted::of(conn.affected_rows()))
    }

    /// The databases recorded for projects, with their owners, by name.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn owned_databases(&self) -> Result<Vec<(DatabaseName, ProjectName)>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, String)> = self
            .within(ask::all(conn.query_iter(
                "SELECT name, project FROM selkie.`databases` ORDER BY name",
            )))
            .await?;
        rows.into_iter()
            .map(|(name, owner)| Ok((database(&name)?, project(&owner)?)))
            .collect()
    }

    /// Records a database as a project's. One that has an owner already keeps it.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn insert_database(
        &self,
        name: &DatabaseName,
        project: &ProjectName,
        now: u64,
    ) -> Result<Inserted, AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.exec_drop(
            "INSERT IGNORE INTO selkie.`databases` (name, project, created_at) VALUES (?, ?, ?)",
            (name.as_str(), project.as_str(), now),
        ))
        .await?;
        Ok(Inserted::of(conn.affected_rows()))
    }

    /// Forgets who owns a database.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn forget_database(&self, name: &DatabaseName) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.exec_drop(
            "DELETE FROM selkie.`databases` WHERE name = ?",
            (name.as_str(),),
        ))
        .await
    }
}

/// Whether a row is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It was not there before.
    New,
    /// It was.
    Existing,
}

impl Inserted {
    fn of(affected_rows: u64) -> Self {
        if affected_rows > 0 {
            Self::New
        } else {
            Self::Existing
        }
    }
}

pub(super) fn project(name: &str) -> Result<ProjectName, AdminError> {
    ProjectName::parse(name).map_err(|_| AdminError::Corrupt("project name"))
}

fn database(name: &str) -> Result<DatabaseName, AdminError> {
    DatabaseName::parse(name).map_err(|_| AdminError::Corrupt("database name"))
}
