//! A project's databases. To adopt a database is to give a project a database that exists already.

use std::collections::{BTreeMap, BTreeSet};

use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use super::{ProjectError, Projects};
use crate::clock::now;
use crate::database::admin::{Created, DatabaseRow, Drops, pattern_fits};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedDatabase {
    pub name: DatabaseName,
    pub project: ProjectName,
    /// Whether MariaDB has the database. A full key may have dropped a recorded database.
    pub presence: Presence,
    pub drops: Drops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Present,
    Missing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DatabaseChange {
    Create,
    Adopt(Drops),
    Release,
    Drop,
}

impl Projects {
    /// Returns the databases of a project or of all, also recorded databases that MariaDB no longer has.
    pub async fn databases(&self, of: Option<&ProjectName>) -> Result<Vec<OwnedDatabase>, ProjectError> {
        let present: BTreeSet<DatabaseName> = self.admin.databases().await?.into_iter().collect();
        let projects: BTreeSet<ProjectName> = self.admin.projects().await?.into_iter().map(|row| row.name).collect();
        let recorded = self.recorded().await?;
        let by_name = present
            .iter()
            .filter_map(|name| Some((name.clone(), projects.iter().find(|p| prefix(name) == Some(p.as_str()))?)))
            .map(|(name, project)| (name, (project.clone(), Drops::Database)));
        // A database named `<project>_…` is never recorded for another project: creating and adopting check this.
        let all: BTreeMap<DatabaseName, (ProjectName, Drops)> = by_name.chain(recorded).collect();
        Ok(all
            .into_iter()
            .filter(|(_, (project, _))| of.is_none_or(|of| of == project))
            .map(|(name, (project, drops))| {
                let presence = if present.contains(&name) { Presence::Present } else { Presence::Missing };
                OwnedDatabase { name, project, presence, drops }
            })
            .collect())
    }

    async fn recorded(&self) -> Result<BTreeMap<DatabaseName, (ProjectName, Drops)>, ProjectError> {
        let rows = self.admin.owned_databases().await?.into_iter();
        Ok(rows.map(|row| (row.name, (row.project, row.drops))).collect())
    }

    pub async fn undroppable(&self, project: &ProjectName) -> Result<Vec<DatabaseName>, ProjectError> {
        let mut rows = self.admin.owned_databases().await?;
        rows.retain(|row| row.project == *project && row.drops != Drops::Database);
        Ok(rows.into_iter().map(|row| row.name).collect())
    }

    /// Returns the projects that may have a table of this name. Projects with ready-made accounts are all included,
    /// since the admin account may be unable to see their databases.
    pub async fn with_table(&self, table: &str) -> Result<BTreeSet<ProjectName>, ProjectError> {
        let holding = self.admin.databases_with(table).await?;
        let recorded = self.recorded().await?;
        let owners: BTreeSet<&str> = holding
            .iter()
            .filter_map(|name| match recorded.get(name) {
                Some((owner, _)) => Some(owner.as_str()),
                None => prefix(name),
            })
            .collect();
        let mut projects = self.admin.projects().await?;
        projects.retain(|row| owners.contains(row.name.as_str()) || self.is_ready_made(&row.name));
        Ok(projects.into_iter().map(|row| row.name).collect())
    }

    /// Creates a database, and returns the name as MariaDB stores it.
    pub async fn create_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, DatabaseChange::Create).await
    }

    /// Adopts a database, or changes what the project's full keys may drop in a database that it owns.
    pub async fn adopt_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        drops: Drops,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, DatabaseChange::Adopt(drops)).await
    }

    /// Takes a database from a project. Accounts from the configuration keep their rights on the database.
    pub async fn release_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, DatabaseChange::Release).await
    }

    pub async fn check_drop(&self, project: &ProjectName, name: &DatabaseName) -> Result<(), ProjectError> {
        let name = self.admin.canonical(name).await?;
        self.check_change(project, &name, DatabaseChange::Drop).await
    }

    pub async fn drop_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, DatabaseChange::Drop).await
    }

    async fn locked_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        change: DatabaseChange,
    ) -> Result<DatabaseName, ProjectError> {
        let change = async {
            let name = self.admin.canonical(name).await?;
            self.check_change(project, &name, change).await?;
            match change {
                DatabaseChange::Create => {
                    // A record grants rights, and must not do so on a database that somebody else created meanwhile.
                    if self.admin.create_database(&name).await? == Created::Existing {
                        return Err(ProjectError::Exists(name));
                    }
                    self.record(project, &name, Drops::Database).await?;
                }
                DatabaseChange::Adopt(drops) => {
                    if !self.admin.exists(name.as_str()).await? {
                        return Err(ProjectError::NotThere(name));
                    }
                    self.record(project, &name, drops).await?;
                }
                // This order allows an interrupted release or drop to be completed by running the command again.
                DatabaseChange::Release => self.revoke_and_delete_record(project, &name).await?,
                DatabaseChange::Drop => {
                    self.admin.drop_database(&name).await?;
                    self.revoke_and_delete_record(project, &name).await?;
                }
            }
            Ok(name)
        };
        self.admin.locked(change).await
    }

    async fn check_change(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        change: DatabaseChange,
    ) -> Result<(), ProjectError> {
        self.require(project).await?;
        if name.is_system() {
            return Err(ProjectError::System(name.clone()));
        }
        if !pattern_fits(name) {
            return Err(ProjectError::NameTooLong(name.clone()));
        }
        match self.owner(name).await? {
            Some(owner) if owner != *project => Err(ProjectError::Owned { database: name.clone(), owner }),
            None if matches!(change, DatabaseChange::Drop | DatabaseChange::Release) => {
                Err(ProjectError::NotOwned { project: project.clone(), database: name.clone() })
            }
            Some(_) if change == DatabaseChange::Release && prefix(name) == Some(project.as_str()) => {
                Err(ProjectError::OwnedByName { project: project.clone(), database: name.clone() })
            }
            Some(_) if change == DatabaseChange::Drop && self.undroppable(project).await?.contains(name) => {
                Err(ProjectError::Adopted { project: project.clone(), database: name.clone() })
            }
            _ => Ok(()),
        }
    }

    pub async fn owner(&self, name: &DatabaseName) -> Result<Option<ProjectName>, ProjectError> {
        if let Some((owner, _)) = self.recorded().await?.remove(name) {
            return Ok(Some(owner));
        }
        let projects = self.admin.projects().await?;
        Ok(projects.into_iter().map(|row| row.name).find(|project| prefix(name) == Some(project.as_str())))
    }

    async fn record(&self, project: &ProjectName, name: &DatabaseName, drops: Drops) -> Result<(), ProjectError> {
        let row = DatabaseRow { name: name.clone(), project: project.clone(), drops };
        self.admin.record_database(&row, now()).await?;
        self.mend(project).await
    }

    /// Takes a project's rights on a database, and ends its connections to it if the admin account may.
    pub(super) async fn revoke_and_delete_record(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<(), ProjectError> {
        if !self.is_ready_made(project) {
            self.admin.revoke_database(project, name).await?;
        }
        self.admin.end_connections(&self.users(project), Some(name)).await?;
        Ok(self.admin.forget_database(name).await?)
    }

    pub(super) fn users(&self, project: &ProjectName) -> Vec<String> {
        [Access::Full, Access::Read].map(|access| self.account(project, access).user).to_vec()
    }
}

/// Returns the project's part of a name, `<project>_…`: project names contain no underscore.
pub(super) fn prefix(database: &DatabaseName) -> Option<&str> {
    database.as_str().split_once('_').map(|(prefix, _)| prefix)
}
