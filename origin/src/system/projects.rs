//! Projects: the databases that each project owns, and the two MariaDB accounts of its keys. A project owns the
//! databases recorded for it, and all databases named `<project>_…`; MariaDB enforces this by grants. Selkie only
//! checks "ready-made" accounts, which the configuration names.

mod check;
mod databases;
mod error;
mod remove;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use shared::error::nearest;
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

pub use self::check::{excess, lack};
use self::databases::prefix;
pub use self::databases::{OwnedDatabase, Presence};
pub use self::error::ProjectError;
pub use self::remove::{Removal, Removed};
use crate::clock::now;
use crate::config::{Account, ProjectAccounts};
use crate::database::admin::{
    AccountName, Accounts, Admin, AdminError, DatabaseRights, DatabaseRow, Inserted, LoginCheck, ProjectRow, Rights,
    exact_pattern, rights_on,
};
use crate::database::{AccountSource, Repaired};
use crate::secret::InstallationSecret;

/// The project that always exists.
pub const DEFAULT_PROJECT: &str = "default";

/// Reserved names: databases named `<name>_…` could be MariaDB's own schemas or look like Selkie's.
const RESERVED: [&str; 5] = ["information", "performance", "mysql", "sys", "selkie"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameClaim {
    /// Refuses the project's name, since existing databases named `<project>_…` may belong to somebody else.
    Refuse,
    Take,
}

#[derive(Clone, Debug)]
pub struct Projects {
    admin: Admin,
    secret: Arc<InstallationSecret>,
    ready_made: Arc<BTreeMap<String, ProjectAccounts>>,
}

impl Projects {
    pub fn new(admin: Admin, secret: Arc<InstallationSecret>, ready_made: BTreeMap<String, ProjectAccounts>) -> Self {
        Self { admin, secret, ready_made: Arc::new(ready_made) }
    }

    pub fn account(&self, project: &ProjectName, access: Access) -> Account {
        match (self.ready_made.get(project.as_str()), access) {
            (Some(accounts), Access::Full) => accounts.rw.clone(),
            (Some(accounts), Access::Read) => accounts.ro.clone(),
            (None, access) => self.derived_account(project, access),
        }
    }

    fn derived_account(&self, project: &ProjectName, access: Access) -> Account {
        let kind = match access {
            Access::Full => "rw",
            Access::Read => "ro",
        };
        Account {
            user: AccountName::of(project, access).as_str().to_owned(),
            password: self.secret.derive_password(&format!("account:{project}:{kind}")),
        }
    }

    /// Returns the source of accounts, which repairs accounts by [`Projects::mend`] after MariaDB has refused a log-in.
    pub fn account_source(&self) -> AccountSource {
        let (finding, repairing) = (self.clone(), self.clone());
        let repair = move |project: ProjectName| {
            let projects = repairing.clone();
            async move {
                match projects.mend(&project).await {
                    Ok(()) => Repaired::Yes,
                    Err(error) => {
                        tracing::error!(%error, "an account could not be repaired");
                        Repaired::No
                    }
                }
            }
            .boxed()
        };
        AccountSource::new(move |project, access| finding.account(project, access), repair)
    }

    pub fn unrepaired_accounts(&self) -> AccountSource {
        let finding = self.clone();
        AccountSource::new(move |project, access| finding.account(project, access), |_| async { Repaired::No }.boxed())
    }

    pub fn is_ready_made(&self, project: &ProjectName) -> bool {
        self.ready_made.contains_key(project.as_str())
    }

    pub async fn prepare(&self) -> Result<(), ProjectError> {
        self.admin.locked(self.prepare_locked()).await
    }

    async fn prepare_locked(&self) -> Result<(), ProjectError> {
        self.admin.insert_project(&default_project()?, now()).await?;
        let accounts = self.admin.accounts().await?;
        let mut owned: BTreeMap<ProjectName, Vec<DatabaseRow>> = BTreeMap::new();
        for row in self.admin.owned_databases().await? {
            owned.entry(row.project.clone()).or_default().push(row);
        }
        for row in self.admin.projects().await? {
            let databases = owned.remove(&row.name).unwrap_or_default();
            self.settle(&row.name, &databases, &accounts).await?;
        }
        Ok(())
    }

    pub async fn ensure_default(&self) -> Result<(), ProjectError> {
        let default = default_project()?;
        match self.admin.insert_project(&default, now()).await? {
            // Ready-made accounts may have rights on databases that are only given to the project later.
            Inserted::New if !self.is_ready_made(&default) => self.mend(&default).await,
            _ => Ok(()),
        }
    }

    /// Corrects a project's accounts, also if MariaDB refuses the log-in: a full key can change its account's password.
    pub async fn mend(&self, project: &ProjectName) -> Result<(), ProjectError> {
        self.require(project).await?;
        let databases = owned_by(project, self.admin.owned_databases().await?);
        self.settle(project, &databases, &self.admin.accounts().await?).await
    }

    pub async fn settle_for_restore(
        &self,
        project: &ProjectName,
        databases: &[DatabaseRow],
    ) -> Result<(), ProjectError> {
        self.settle(project, databases, &self.admin.accounts().await?).await
    }

    pub async fn list(&self) -> Result<Vec<ProjectRow>, ProjectError> {
        Ok(self.admin.projects().await?)
    }

    pub async fn create(&self, name: &ProjectName, claim: NameClaim) -> Result<Inserted, ProjectError> {
        if RESERVED.contains(&name.as_str()) {
            return Err(ProjectError::Reserved(name.clone()));
        }
        self.admin.locked(self.create_locked(name, claim)).await
    }

    async fn create_locked(&self, name: &ProjectName, claim: NameClaim) -> Result<Inserted, ProjectError> {
        let known = self.admin.projects().await?.iter().any(|row| row.name == *name);
        let owned = self.admin.owned_databases().await?;
        if !known {
            self.refuse_covered(name, claim, &owned).await?;
        }
        let inserted = self.admin.insert_project(name, now()).await?;
        let databases = owned_by(name, owned);
        self.settle(name, &databases, &self.admin.accounts().await?).await?;
        Ok(inserted)
    }

    async fn refuse_covered(
        &self,
        name: &ProjectName,
        claim: NameClaim,
        owned: &[DatabaseRow],
    ) -> Result<(), ProjectError> {
        let is_covered = |database: &DatabaseName| prefix(database) == Some(name.as_str());
        if let Some(row) = owned.iter().find(|row| is_covered(&row.name)) {
            return Err(ProjectError::Owned { database: row.name.clone(), owner: row.project.clone() });
        }
        let covered: Vec<DatabaseName> =
            self.admin.databases().await?.into_iter().filter(|database| is_covered(database)).collect();
        match covered.first() {
            Some(first) if claim == NameClaim::Refuse => {
                Err(ProjectError::Covers { project: name.clone(), database: first.clone() })
            }
            _ => Ok(()),
        }
    }

    pub async fn require(&self, project: &ProjectName) -> Result<(), ProjectError> {
        let projects = self.admin.projects().await?;
        if projects.iter().any(|row| row.name == *project) {
            return Ok(());
        }
        let nearest = nearest(project.as_str(), projects.iter().map(|row| row.name.as_str()));
        Err(ProjectError::UnknownProject { name: project.clone(), nearest: nearest.map(str::to_owned) })
    }

    async fn settle(
        &self,
        project: &ProjectName,
        databases: &[DatabaseRow],
        accounts: &Accounts,
    ) -> Result<(), ProjectError> {
        for access in [Access::Full, Access::Read] {
            if self.is_ready_made(project) {
                self.check_ready_made(project, access, databases).await?;
                continue;
            }
            let account = self.derived_account(project, access);
            let name = AccountName::of(project, access);
            let wanted = rights_on(project, Rights::of(access), databases);
            self.admin.settle_account(&name, &account.password, &wanted, accounts).await.map_err(
                |error| match error {
                    AdminError::Denied { user, message } => {
                        ProjectError::MayNotMakeAccounts { project: project.clone(), user, message }
                    }
                    error => ProjectError::Admin(error),
                },
            )?;
        }
        Ok(())
    }

    async fn check_ready_made(
        &self,
        project: &ProjectName,
        access: Access,
        databases: &[DatabaseRow],
    ) -> Result<(), ProjectError> {
        let account = self.account(project, access);
        let faults = match self.admin.check_login(&account).await? {
            LoginCheck::Refused(message) => vec![message],
            // Only `selkie doctor` reports missing rights: a ready-made account may get its grants later.
            LoginCheck::Welcome(state) => excess(&state, &spellings(project, Rights::of(access), databases)),
        };
        if faults.is_empty() {
            return Ok(());
        }
        Err(ProjectError::ReadyMade { project: project.clone(), account: account.user, faults: faults.join("; ") })
    }
}

/// Returns the allowed rights, with each database also named without the escapes that people often omit in a GRANT.
pub(crate) fn spellings(project: &ProjectName, rights: Rights, databases: &[DatabaseRow]) -> DatabaseRights {
    let mut wanted = rights_on(project, rights, databases);
    for row in databases {
        if let Some(rights) = wanted.get(&exact_pattern(&row.name)).cloned() {
            wanted.insert(row.name.as_str().to_owned(), rights);
        }
    }
    wanted
}

fn owned_by(project: &ProjectName, mut owned: Vec<DatabaseRow>) -> Vec<DatabaseRow> {
    owned.retain(|row| row.project == *project);
    owned
}

fn default_project() -> Result<ProjectName, AdminError> {
    ProjectName::parse(DEFAULT_PROJECT).map_err(|_| AdminError::Corrupt("project name"))
}
