//! A project's databases: making, adopting, dropping and listing them, and whose one is.

use std::collections::{BTreeMap, BTreeSet};

use shared::ident::{DatabaseName, ProjectName};

use super::{ProjectError, Projects};
use crate::clock::now;
use crate::db::admin::{Created, pattern_fits};

/// A database as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedDatabase {
    /// Its name.
    pub name: DatabaseName,
    /// Whose it is.
    pub project: ProjectName,
    /// Whether MariaDB has it: a full key may have dropped it.
    pub presence: Presence,
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
    Adopt,
    Drop,
}

impl Projects {
    /// Databases, by name: of one project, or of all.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn databases(
        &self,
        of: Option<&ProjectName>,
    ) -> Result<Vec<OwnedDatabase>, ProjectError> {
        let present: BTreeSet<DatabaseName> = self.admin.databases().await?.into_iter().collect();
        let projects: BTreeSet<ProjectName> = self
            .admin
            .projects()
            .await?
            .into_iter()
            .map(|row| row.name)
            .collect();
        let recorded: BTreeMap<_, _> = self.admin.owned_databases().await?.into_iter().collect();
        let by_name = present
            .iter()
            .filter_map(|name| {
                Some((
                    name.clone(),
                    projects.iter().find(|p| prefix(name) == Some(p.as_str()))?,
                ))
            })
            .map(|(name, project)| (name, project.clone()));
        // A record and a name never disagree: adopting and making both see to that.
        let all: BTreeMap<DatabaseName, ProjectName> = by_name.chain(recorded).collect();
        Ok(all
            .into_iter()
            .filter(|(_, project)| of.is_none_or(|of| of == project))
            .map(|(name, project)| {
                let presence = if present.contains(&name) {
                    Presence::Present
                } else {
                    Presence::Missing
                };
                OwnedDatabase {
                    name,
                    project,
                    presence,
                }
            })
            .collect())
    }

    /// Projects with a table of this name in a database of theirs; and those of ready-made accounts, into
    /// whose databases the admin account need not see.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn with_table(&self, table: &str) -> Result<BTreeSet<ProjectName>, ProjectError> {
        let holding = self.admin.databases_with(table).await?;
        let recorded: BTreeMap<_, _> = self.admin.owned_databases().await?.into_iter().collect();
        let owners: BTreeSet<&str> = holding
            .iter()
            .filter_map(|name| match recorded.get(name) {
                Some(owner) => Some(owner.as_str()),
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

    /// Gives a project a database that is there already.
    ///
    /// # Errors
    /// It is not there, is MariaDB's own, or is another project's; MariaDB failed.
    pub async fn adopt_database(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
    ) -> Result<DatabaseName, ProjectError> {
        self.locked_database(project, name, Wish::Adopt).await
    }

    /// Drops a project's database with all that is in it, and forgets it.
    ///
    /// # Errors
    /// It is not this project's; MariaDB failed.
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
                Wish::Create | Wish::Adopt => self.take(project, &name, wish).await?,
                Wish::Drop => {
                    // In this order a crash leaves something that `drop` can finish.
                    self.admin.drop_database(&name).await?;
                    self.admin.revoke_database(project, &name).await?;
                    self.admin.forget_database(&name).await?;
                }
            }
            Ok(name)
        }
        .await;
        lock.release().await;
        outcome
    }

    async fn check_wish(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        wish: Wish,
    ) -> Result<(), ProjectError> {
        self.require(project).await?;
        if name.is_system() {
            return Err(ProjectError::System(name.clone()));
        }
        if !pattern_fits(name) {
            return Err(ProjectError::NameTooLong(name.clone()));
        }
        match self.owner(name).await? {
            Some(owner) if owner != *project => Err(ProjectError::Owned {
                database: name.clone(),
                owner,
            }),
            None if wish == Wish::Drop => Err(ProjectError::NotOwned {
                project: project.clone(),
                database: name.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// The project that a database belongs to, by record or by name.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn owner(&self, name: &DatabaseName) -> Result<Option<ProjectName>, ProjectError> {
        let recorded = self.admin.owned_databases().await?;
        if let Some((_, owner)) = recorded.into_iter().find(|(database, _)| database == name) {
            return Ok(Some(owner));
        }
        let projects = self.admin.projects().await?;
        Ok(projects
            .into_iter()
            .map(|row| row.name)
            .find(|project| prefix(name) == Some(project.as_str())))
    }

    async fn take(
        &self,
        project: &ProjectName,
        name: &DatabaseName,
        wish: Wish,
    ) -> Result<(), ProjectError> {
        // Made before it is recorded: a record must never grant rights on what somebody else made.
        match wish {
            Wish::Create => {
                if self.admin.create_database(name).await? == Created::Existing {
                    return Err(ProjectError::Exists(name.clone()));
                }
            }
            _ => {
                if !self.admin.exists(name.as_str()).await? {
                    return Err(ProjectError::NotThere(name.clone()));
                }
            }
        }
        self.admin.insert_database(name, project, now()).await?;
        self.mend(project).await
    }
}

/// The part of a database's name before its first underscore. Project names hold none, so that no
/// other project's pattern can cover it.
pub(super) fn prefix(database: &DatabaseName) -> Option<&str> {
    database.as_str().split_once('_').map(|(prefix, _)| prefix)
}
