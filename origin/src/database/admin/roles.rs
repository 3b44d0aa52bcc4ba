//! Rows of `selkie.roles`. Each change increments the version that origins poll each second, [`Admin::key_changes`].

use crate::database::ask;
use mysql_async::Params;
use mysql_async::prelude::Queryable;
use shared::ident::{ProjectName, RoleName};

use super::projects::project;
use super::{Admin, AdminError};

/// A stored role. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRow {
    pub project: ProjectName,
    pub name: RoleName,
    /// The text of the role file.
    pub definition: String,
    pub created_at: u64,
    pub updated_at: u64,
}

type RawRole = (String, String, String, u64, u64);

impl Admin {
    /// Stores a role of project `of`. If the project has a role of this name, replaces its definition and sets its
    /// `updated_at` to `now`.
    ///
    /// # Errors
    /// [`AdminError::Refused`] if the project does not exist; other errors of MariaDB.
    pub async fn set_role(
        &self,
        of: &ProjectName,
        name: &RoleName,
        definition: &str,
        now: u64,
    ) -> Result<(), AdminError> {
        let set = "INSERT INTO selkie.roles (project, name, definition, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
            ON DUPLICATE KEY UPDATE definition = VALUE(definition), updated_at = VALUE(updated_at)";
        self.change_keys(vec![(set, (of.as_str(), name.as_str(), definition, now, now).into())]).await
    }

    /// Deletes a role of project `of`, if it exists. The role's keys stay recorded, but requests with these keys are
    /// refused.
    pub async fn remove_role(&self, of: &ProjectName, name: &RoleName) -> Result<(), AdminError> {
        let remove = "DELETE FROM selkie.roles WHERE project = ? AND name = ?";
        self.change_keys(vec![(remove, (of.as_str(), name.as_str()).into())]).await
    }

    /// Returns a role; `None` if project `of` has no role of this name.
    pub async fn role(&self, of: &ProjectName, name: &RoleName) -> Result<Option<RoleRow>, AdminError> {
        let rows = self.role_rows("project = ? AND name = ?", (of.as_str(), name.as_str()).into()).await?;
        Ok(rows.into_iter().next())
    }

    /// Returns the roles of project `of`, or of all projects if `of` is `None`, sorted by project and name.
    pub async fn roles(&self, of: Option<&ProjectName>) -> Result<Vec<RoleRow>, AdminError> {
        let of = of.map(ProjectName::as_str);
        self.role_rows("? IS NULL OR project = ?", (of, of).into()).await
    }

    async fn role_rows(&self, condition: &'static str, values: Params) -> Result<Vec<RoleRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!(
            "SELECT project, name, definition, created_at, updated_at FROM selkie.roles WHERE {condition}
             ORDER BY project, name"
        );
        let rows: Vec<RawRole> = self.within(ask::all(conn.exec_iter(query, values))).await?;
        rows.into_iter().map(role_row).collect()
    }
}

fn role_row((of, name, definition, created_at, updated_at): RawRole) -> Result<RoleRow, AdminError> {
    Ok(RoleRow {
        project: project(&of)?,
        name: RoleName::parse(&name).map_err(|_| AdminError::Corrupt("role's name"))?,
        definition,
        created_at,
        updated_at,
    })
}
