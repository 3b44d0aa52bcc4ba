//! Rows of `selkie.roles`. Each change increments the version that origins poll each second, [`Admin::key_changes`].

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;
use shared::ident::{ProjectName, RoleName};

use super::projects::project;
use super::{Admin, AdminError};

/// A stored role. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRow {
    pub project: ProjectName,
    pub name: RoleName,
    pub definition: String,
    pub created_at: u64,
    pub updated_at: u64,
}

/// A stored role without its definition. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRole {
    pub project: ProjectName,
    pub name: RoleName,
    pub created_at: u64,
    pub updated_at: u64,
}

impl Admin {
    /// Stores a role of project `of`. If the project has a role of this name, replaces its definition and sets its
    /// `updated_at` to `now`.
    pub async fn set_role(
        &self,
        of: &ProjectName,
        name: &RoleName,
        definition: &str,
        now: u64,
    ) -> Result<(), AdminError> {
        let set = "INSERT INTO selkie.roles (project, name, definition, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
            ON DUPLICATE KEY UPDATE definition = VALUE(definition), updated_at = VALUE(updated_at)";
        self.change_keys(Some(of), vec![(set, (of.as_str(), name.as_str(), definition, now, now).into())]).await
    }

    /// Deletes a role of project `of`, if it exists. The role's keys stay recorded, but requests with these keys are
    /// refused.
    pub async fn remove_role(&self, of: &ProjectName, name: &RoleName) -> Result<(), AdminError> {
        let remove = "DELETE FROM selkie.roles WHERE project = ? AND name = ?";
        self.change_keys(Some(of), vec![(remove, (of.as_str(), name.as_str()).into())]).await
    }

    pub async fn role(&self, of: &ProjectName, name: &RoleName) -> Result<Option<RoleRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT definition, created_at, updated_at FROM selkie.roles WHERE project = ? AND name = ?";
        let found = self.within(typed_rows::first(conn.exec_iter(query, (of.as_str(), name.as_str())))).await?;
        let row = |(definition, created_at, updated_at)| RoleRow {
            project: of.clone(),
            name: name.clone(),
            definition,
            created_at,
            updated_at,
        };
        Ok(found.map(row))
    }

    /// Returns at most `limit` roles of project `of`, or of all projects if `of` is `None`, sorted by project and name,
    /// from the one that follows the role `after`.
    pub async fn roles(
        &self,
        of: Option<&ProjectName>,
        after: Option<(&ProjectName, &RoleName)>,
        limit: u64,
    ) -> Result<Vec<ListedRole>, AdminError> {
        let mut conn = self.conn().await?;
        let of = of.map(ProjectName::as_str);
        let (project_before, before) = after.map(|(of, name)| (of.as_str(), name.as_str())).unwrap_or_default();
        let rows: Vec<(String, String, u64, u64)> = self
            .within(typed_rows::all(conn.exec_iter(
                "SELECT project, name, created_at, updated_at FROM selkie.roles
                 WHERE (? IS NULL OR project = ?) AND (project > ? OR project = ? AND name > ?)
                 ORDER BY project, name LIMIT ?",
                (of, of, project_before, project_before, before, limit),
            )))
            .await?;
        let row = |(of, name, created_at, updated_at): (String, String, u64, u64)| {
            let name = RoleName::parse(&name).map_err(|_| AdminError::Corrupt("role's name"))?;
            Ok(ListedRole { project: project(&of)?, name, created_at, updated_at })
        };
        rows.into_iter().map(row).collect()
    }

    /// Returns the number of roles of project `of`, without the role `but`, and the bytes of their definitions.
    pub async fn roles_extent(&self, of: &ProjectName, but: &RoleName) -> Result<(usize, usize), AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(definition)), 0) AS UNSIGNED) FROM selkie.roles \
             WHERE project = ? AND name <> ?";
        let found = self.within(typed_rows::first(conn.exec_iter(query, (of.as_str(), but.as_str())))).await?;
        Ok(found.unwrap_or_default())
    }
}
