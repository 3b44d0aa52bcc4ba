//! A project's databases: making, adopting, dropping and listing them, and whose one is.

use std::collections::{BTreeMap, BTreeSet};

use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use super::{ProjectError, Projects};
use crate::clock::now;
use crate::database::admin::{Created, DatabaseRow, Drops, pattern_fits};

/// A database as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedDatabase {
    /// Its name.
    pub name: DatabaseName,
    /// Whose it is.
    pub project: ProjectName,
    /// Whether MariaDB has it: a full key may have dropped it.
    pub presence: Presence,
    /// What full keys may drop in it.
    pub drops: Drops,
}

/// Whether MariaDB has a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Present,
    /// It is only recorded.
    Missing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Create,
    Adopt(Drops),
    Release,
    Drop,
}

impl Projects {
    /// Databases, by name: of one project, or of all.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn databases(&self, of: Option<&ProjectName>) -> Result<Vec<OwnedDatabase>, ProjectError> {
        let present: BTreeSet<DatabaseName> = self.admin.databases().await?.into_iter().collect();
        let projects: BTreeSet<ProjectName> = self.admin.projects().await?.into_iter().map(|row| row.name).collect();
        let recorded = self.recorded().await?;
        let by_name = present
            .iter()
            .filter_map(|name| Some((name.clone(), projects.iter().find(|p| prefix(name) == Some(p.as_str()))?)))
            .map(|(name, project)| (name, (project.clone(), Drops::Database)));
        // A record and a name never disagree: adopting and making both see to that.
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

    /// The databases of a project that its full keys may not drop.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn undroppable(&self, project: &ProjectName) -> Result<Vec<DatabaseName>, ProjectError> {
        let mut rows = self.admin.owned_databases().await?;
        rows.retain(|row| row.project == *project && row.drops != Drops::Database);
        Ok(rows.into_iter().map(|row| row.name).collect())
    }

    /// Projects with a table of this name in a database of theirs; and those of ready-made accounts, into
    /// whose databases the admin account need not see.
    ///
    /// # Errors
    /// MariaDB failed.
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

    /// Makes a database for a project.
    ///
    /// # Errors
    /// It is there already, or its name can't be this project's; MariaDB failed.
    pub async fn create_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, Wish::Create).await
    }

    /// Gives a project a database that is there already, or changes what may be dropped in one that it
    /// has.
    ///
    /// # Errors
    /// It is not there, is MariaDB's own, or is another project's; MariaDB failed.
    pub async fn adopt_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        drops: Drops,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, Wish::Adopt(drops)).await
    }

    /// Takes a database from a project, and leaves it as it is: the project's accounts lose their rights
    /// on it.
    ///
    /// # Errors
    /// It is not recorded for this project, or is the project's by its name; MariaDB failed.
    pub async fn release_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, Wish::Release).await
    }

    /// Refuses a database that can't be dropped for this project.
    ///
    /// # Errors
    /// It is not this project's, or was adopted; MariaDB failed.
    pub async fn check_drop(&self, project: &ProjectName, name: &DatabaseName) -> Result<(), ProjectError> {
        let name = self.admin.canonical(name).await?;
        self.check_wish(project, &name, Wish::Drop).await
    }

    /// Drops a project's database with all that is in it, and forgets it.
    ///
    /// # Errors
    /// It is not this project's, or was adopted; MariaDB failed.
    pub async fn drop_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, Wish::Drop).await
    }

    async fn locked_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        wish: Wish,
    ) -> Result<DatabaseName, ProjectError> {
        let lock = self.admin.lock().await?;
        let outcome = async {
            let name = self.admin.canonical(name).await?;
            self.check_wish(project, &name, wish).await?;
            match wish {
                Wish::Create => {
                    // Made before it is recorded: a record must never grant rights on what somebody else made.
                    if self.admin.create_database(&name).await? == Created::Existing {
                        return Err(ProjectError::Exists(name));
                    }
                    self.record(project, &name, Drops::Database).await?;
                }
                Wish::Adopt(drops) => {
                    if !self.admin.exists(name.as_str()).await? {
                        return Err(ProjectError::NotThere(name));
                    }
                    self.record(project, &name, drops).await?;
                }
                // In this order a crash leaves something that a second try finishes.
                Wish::Release => self.let_go(project, &name).await?,
                Wish::Drop => {
                    self.admin.drop_database(&name).await?;
                    self.let_go(project, &name).await?;
                }
            }
            Ok(name)
        }
        .await;
        lock.release().await;
        outcome
    }

    async fn check_wish(&self, project: &ProjectName, name: &DatabaseName, wish: Wish) -> Result<(), ProjectError> {
        self.require(project).await?;
        if name.is_system() {
            return Err(ProjectError::System(name.clone()));
        }
        if !pattern_fits(name) {
            return Err(ProjectError::NameTooLong(name.clone()));
        }
        match self.owner(name).await? {
            Some(owner) if owner != *project => Err(ProjectError::Owned { database: name.clone(), owner }),
            None if matches!(wish, Wish::Drop | Wish::Release) => {
                Err(ProjectError::NotOwned { project: project.clone(), database: name.clone() })
            }
            Some(_) if wish == Wish::Release && prefix(name) == Some(project.as_str()) => {
                Err(ProjectError::OwnedByName { project: project.clone(), database: name.clone() })
            }
            Some(_) if wish == Wish::Drop && self.undroppable(project).await?.contains(name) => {
                Err(ProjectError::Adopted { project: project.clone(), database: name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The project that a database belongs to, by record or by name.
    ///
    /// # Errors
    /// MariaDB failed.
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

    /// Takes the rights on a database from a project's accounts, and forgets that it is the project's.
    pub(super) async fn let_go(&self, project: &ProjectName, name: &DatabaseName) -> Result<(), ProjectError> {
        if !self.is_ready_made(project) {
            self.admin.revoke_database(project, name).await?;
        }
        self.admin.end_connections(&self.users(project), Some(name)).await?;
        Ok(self.admin.forget_database(name).await?)
    }

    /// The names of a project's accounts.
    pub(super) fn users(&self, project: &ProjectName) -> Vec<String> {
        [Access::Full, Access::Read].map(|access| self.account(project, access).user).to_vec()
    }
}

/// The part of a database's name before its first underscore. Project names hold none, so that no
/// other project's pattern can cover it.
pub(super) fn prefix(database: &DatabaseName) -> Option<&str> {
    database.as_str().split_once('_').map(|(prefix, _)| prefix)
}
