//! Removing a project: its keys, its accounts, its databases, and at last its row.
//!
//! The row goes last, so that a removal that broke off can be run again. Files are `media`'s, which deletes them
//! between [`Projects::close`] and [`Projects::remove`].

use shared::ident::ProjectName;

use super::{DEFAULT_PROJECT, OwnedDatabase, Presence, ProjectError, Projects};
use crate::clock::now;
use crate::database::admin::Drops;

/// MariaDB's number for "a row refers to this one".
const REFERRED_TO: u16 = 1451;

/// What to do with the databases of a project that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Refuse to remove a project that has any.
    Refuse,
    /// Leave them as they are, without a project.
    Release,
    /// Drop them, but leave those that were adopted.
    Drop,
}

/// What became of a project's databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Those that were dropped.
    pub dropped: Vec<String>,
    /// Those that belong to no project now.
    pub released: Vec<String>,
}

impl Projects {
    /// Refuses a removal that can't be done.
    ///
    /// # Errors
    /// The project is the default one, or does not exist; it owns databases and `removal` does not say
    /// what to do with them; MariaDB failed.
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

    /// Ends every use of a project: revokes its keys, drops its accounts unless they are ready-made, and
    /// ends their connections. Returns how many keys were revoked.
    ///
    /// # Errors
    /// MariaDB failed, or denies a right.
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

    /// Drops or releases a project's databases, and deletes the project. It must have been closed, and
    /// own no files.
    ///
    /// # Errors
    /// As of [`Projects::check_removal`]; something was added to the project meanwhile.
    pub async fn remove(&self, project: &ProjectName, removal: Removal) -> Result<Removed, ProjectError> {
        let lock = self.admin.lock().await?;
        let outcome = self.remove_locked(project, removal).await;
        lock.release().await;
        outcome
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
            self.let_go(project, &database.name).await?;
        }
        self.admin.delete_project(project).await.map_err(|error| match error.errno() {
            Some(REFERRED_TO) => ProjectError::StillUsed(project.clone()),
            _ => error.into(),
        })?;
        // A request that was under way may have had the accounts mended.
        self.drop_accounts(project).await?;
        released.retain(|database| database.presence == Presence::Present);
        Ok(Removed { dropped: names(&dropped), released: names(&released) })
    }
}

fn names(databases: &[OwnedDatabase]) -> Vec<String> {
    databases.iter().map(|database| database.name.to_string()).collect()
}
