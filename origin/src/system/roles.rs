//! Sets, lists, checks and removes the roles of projects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, RoleName};
use shared::limits::{ROLES_PER_PROJECT_MAX_BYTES, ROLES_PER_PROJECT_MAX_COUNT};
use shared::operation::TablePath;

use crate::clock::now;
use crate::config::Config;
use crate::database::admin::{Admin, AdminError, ListedRole, RoleRow};
use crate::database::schema_cache::{SchemaAge, SchemaCache};
use crate::database::table_loader::TableLoader;
use crate::database::{AccountSource, PoolSettings, Pools};
use crate::query::plan::access::{CallerRole, ProjectRole, Rights, TableAccess, check_fields, check_rows};
use crate::query::role::{Claims, Pattern, Role, RoleFault, TableRule};
use crate::system::System;
use crate::system::projects::{ProjectError, Projects};

/// The time limit of a check. Describing a view may run stored code, for as long as a load may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub struct Roles {
    admin: Admin,
    projects: Projects,
}

#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("the project {0} has no role {1}")]
    Unknown(ProjectName, RoleName),
    #[error("the project {0} has {ROLES_PER_PROJECT_MAX_COUNT} roles, the maximum")]
    TooMany(ProjectName),
    #[error("the roles of the project {0} would have more than {ROLES_PER_PROJECT_MAX_BYTES} bytes, the maximum")]
    TooLarge(ProjectName),
    #[error("the role is wrong at {0}")]
    Fault(#[from] RoleFault),
    #[error("{}", .0.message())]
    Schema(Problem),
}

impl RoleError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Project(error) => error.hint(),
            Self::Unknown(project, _) => Some(format!("`selkie role list --project {project}` shows the roles")),
            Self::TooMany(_) | Self::TooLarge(_) => Some("remove roles that no key has".to_owned()),
            Self::Fault(_) => Some("nothing was changed; docs/roles.md describes the file".to_owned()),
            Self::Schema(problem) => problem.hint().map(str::to_owned),
        }
    }
}

/// A role whose tables and fields exist.
#[derive(Debug)]
pub struct CheckedRole<'a> {
    definition: &'a str,
    pub warnings: Vec<String>,
}

impl Roles {
    pub fn new(admin: Admin, projects: Projects) -> Self {
        Self { admin, projects }
    }

    /// Stores a role, and returns warnings.
    pub async fn set(
        &self,
        project: &ProjectName,
        name: &RoleName,
        definition: &str,
        tables: &Arc<SchemaCache>,
    ) -> Result<Vec<String>, RoleError> {
        self.projects.require(project).await?;
        let checked = self.check(project, definition, tables).await?;
        self.store(project, name, &checked).await?;
        Ok(checked.warnings)
    }

    /// Checks that the role's tables and fields exist, without a connection of the administrator account.
    pub async fn check<'a>(
        &self,
        project: &ProjectName,
        definition: &'a str,
        tables: &Arc<SchemaCache>,
    ) -> Result<CheckedRole<'a>, RoleError> {
        let role = Role::parse(definition)?;
        let check = async {
            let mut warnings = Vec::new();
            for (pattern, rule) in role.tables() {
                warnings.extend(check_table(project, pattern, rule, tables).await?);
            }
            Ok(CheckedRole { definition, warnings })
        };
        tokio::time::timeout(CHECK_TIMEOUT, check).await.unwrap_or_else(|_| {
            let seconds = CHECK_TIMEOUT.as_secs();
            let message = format!("MariaDB did not describe the tables of the role within {seconds} s.");
            Err(RoleError::Schema(Problem::new(ErrorCode::QueryTimeout, message)))
        })
    }

    pub async fn store(
        &self,
        project: &ProjectName,
        name: &RoleName,
        CheckedRole { definition, .. }: &CheckedRole<'_>,
    ) -> Result<(), RoleError> {
        let (others, bytes) = self.admin.roles_extent(project, name).await?;
        if others >= ROLES_PER_PROJECT_MAX_COUNT {
            return Err(RoleError::TooMany(project.clone()));
        }
        if bytes + definition.len() > ROLES_PER_PROJECT_MAX_BYTES {
            return Err(RoleError::TooLarge(project.clone()));
        }
        Ok(self.admin.set_role(project, name, definition, now()).await?)
    }

    pub async fn page(
        &self,
        of: Option<&ProjectName>,
        after: Option<(&ProjectName, &RoleName)>,
        limit: u64,
    ) -> Result<Vec<ListedRole>, RoleError> {
        if let Some(project) = of {
            self.projects.require(project).await?;
        }
        Ok(self.admin.roles(of, after, limit).await?)
    }

    pub async fn get(&self, project: &ProjectName, name: &RoleName) -> Result<RoleRow, RoleError> {
        self.projects.require(project).await?;
        let found = self.admin.role(project, name).await?;
        found.ok_or_else(|| RoleError::Unknown(project.clone(), name.clone()))
    }

    /// Removes a role. Origins refuse requests with the role within about a second.
    pub async fn remove(&self, project: &ProjectName, name: &RoleName) -> Result<(), RoleError> {
        self.get(project, name).await?;
        Ok(self.admin.remove_role(project, name).await?)
    }

    pub async fn access(
        &self,
        project: &ProjectName,
        name: &RoleName,
        claims: Claims,
        path: &TablePath,
        tables: &Arc<SchemaCache>,
    ) -> Result<(Arc<CallerRole>, TableAccess), RoleError> {
        let row = self.get(project, name).await?;
        let role = ProjectRole::new(name.clone(), Role::parse(&row.definition)?, Arc::default());
        let caller = Arc::new(CallerRole::new(Arc::new(role), claims));
        let rights = Rights::Role(Arc::clone(&caller));
        let loader = TableLoader { cache: tables, project, rights: &rights, age: SchemaAge::Cached };
        Ok((caller, loader.access(path).await.map_err(RoleError::Schema)?))
    }
}

pub fn schema(config: &Config, system: &System, source: AccountSource) -> Arc<SchemaCache> {
    let settings = PoolSettings {
        size: 1,
        total: 1,
        queue: 1,
        wait_timeout: config.pool_wait_timeout,
        connect_timeout: config.connect_timeout,
        query_timeout: config.query_timeout,
    };
    let pools = Pools::new(settings, system.hosts.clone(), source);
    Arc::new(SchemaCache::new(Arc::new(pools)))
}

pub async fn check_table(
    project: &ProjectName,
    pattern: &Pattern,
    rule: &TableRule,
    tables: &Arc<SchemaCache>,
) -> Result<Option<String>, RoleError> {
    let Pattern::Table(database, table) = pattern else {
        return Ok(None);
    };
    let place = format!("tables.\"{database}.{table}\"");
    let path = TablePath { database: database.clone(), table: table.clone() };
    let table = tables.table(project, &path).await.map_err(|problem| missing(problem, &place))?;
    let loader = TableLoader { cache: tables, project, rights: &Rights::Full, age: SchemaAge::Cached };
    let whole = Rights::Full.of(&table).map_err(RoleError::Schema)?;
    let mut folded = BTreeSet::new();
    for (action, rows) in rule.rows() {
        let place = format!("{place}.{action}.rows");
        let conditions: Vec<_> = rows.related().iter().collect();
        let related = loader.related(&whole, &[], &conditions).await.map_err(|problem| missing(problem, &place))?;
        let scope = whole.scope().with_related(&related);
        folded.extend(check_rows(rows, &scope, action).map_err(|fault| RoleFault { place, fault })?);
    }
    check_fields(rule, &table).map_err(|(part, fault)| RoleFault { place: format!("{place}.{part}"), fault })?;
    let fields = folded.into_iter().collect::<Vec<_>>().join(", ");
    Ok((!fields.is_empty()).then(|| {
        format!(
            "{place} compares claims to {fields}, whose collation ignores case: \"Bob\" is also allowed the records of \"bob\". \
             If these are different users, give the fields a collation that ends with _bin."
        )
    }))
}

fn missing(problem: Problem, place: &str) -> RoleError {
    match problem.status() {
        400..500 => {
            let hint = problem.hint().map(|hint| format!(" {hint}")).unwrap_or_default();
            let fault = format!("{}{hint}", problem.message());
            RoleFault { place: place.to_owned(), fault }.into()
        }
        _ => RoleError::Schema(problem),
    }
}
