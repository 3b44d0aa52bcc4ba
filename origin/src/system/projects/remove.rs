//! Removes a project: its keys, accounts and databases, and then its row, so that an interrupted removal can be
//! repeated. Between [`Projects::close`] and [`Projects::remove`], the caller deletes the project's files.

use shared::ident::ProjectName;

use super::{DEFAULT_PROJECT, OwnedDatabase, Presence, ProjectError, Projects};
use crate::clock::now;
use crate::database::admin::Drops;
use crate::database::errno;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Refuse,
    Release,
    /// Drops the databases, but releases adopted databases that the project's full keys may not drop.
    Drop,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub dropped: Vec<String>,
    pub released: Vec<String>,
}

impl Projects {
    pub async fn check_removal(&self, project: &ProjectName, removal: Removal) -> Result<(), ProjectError> {
        if project.as_str() == DEFAULT_PROJECT {
            return Err(ProjectError::Default(project.clone()));
        }
        self.require(project).await?;
        let mut databases = self.databases(Some(project)).await?;
        databases.retain(|database| database.presence == Presence::Present);
        if removal == Removal::Refuse && !databases.is_empty() {
            return Err(ProjectError::OwnsDatabases { project: project.clone(), databases: names(&databases) });
        }
        Ok(())
    }

    /// Revokes all keys (returns their number) and drops the accounts. Issuers' tokens stay valid until the removal.
    pub async fn close(&self, project: &ProjectName) -> Result<usize, ProjectError> {
        let revoked = self.admin.revoke_keys_of(project, now()).await?;
        self.drop_accounts(project).await?;
        Ok(revoked)
    }

    async fn drop_accounts(&self, project: &ProjectName) -> Result<(), ProjectError> {
        if !self.is_ready_made(project) {
            self.admin.drop_accounts(project).await?;
        }
        let users = self.users(project);
        self.admin.end_connections(&users, None).await?;
        Ok(())
    }

    /// Removes a project after [`Projects::close`], when the caller has deleted the project's files.
    pub async fn remove(&self, project: &ProjectName, removal: Removal) -> Result<Removed, ProjectError> {
        self.admin.locked(self.remove_locked(project, removal)).await
    }

    async fn remove_locked(&self, project: &ProjectName, removal: Removal) -> Result<Removed, ProjectError> {
        self.check_removal(project, removal).await?;
        let databases = self.databases(Some(project)).await?;
        let is_dropped = |database: &OwnedDatabase| removal == Removal::Drop && database.drops == Drops::Database;
        let (dropped, mut released): (Vec<_>, Vec<_>) = databases.into_iter().partition(is_dropped);
        for database in &dropped {
            self.admin.drop_database(&database.name).await?;
        }
        for database in dropped.iter().chain(&released) {
            self.revoke_and_delete_record(project, &database.name).await?;
        }
        self.admin.delete_project(project).await.map_err(|error| match error.errno() {
            Some(errno::ROW_IS_REFERENCED) => ProjectError::StillUsed(project.clone()),
            _ => error.into(),
        })?;
        // A concurrent request may have created the accounts again.
        self.drop_accounts(project).await?;
        released.retain(|database| database.presence == Presence::Present);
        Ok(Removed { dropped: names(&dropped), released: names(&released) })
    }
}

fn names(databases: &[OwnedDatabase]) -> Vec<String> {
    databases.iter().map(|database| database.name.to_string()).collect()
}
