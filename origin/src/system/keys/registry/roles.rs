//! Reads and caches the roles of all projects.

use std::sync::Arc;

use quick_cache::sync::Cache;
use shared::error::Problem;
use shared::ident::{ProjectName, RoleName};

use super::unavailable;
use crate::database::admin::Admin;
use crate::database::single_flight::SingleFlight;
use crate::query::plan::access::ProjectRole;
use crate::query::role::Role;

/// The maximum number of cached roles. Each of them may have its own description, with only the columns that it may
/// read, of [`ROLE_TABLES_MAX_COUNT`] tables.
///
/// [`ROLE_TABLES_MAX_COUNT`]: shared::limits::ROLE_TABLES_MAX_COUNT
const ROLES_MAX_COUNT: usize = 1_000;

type RoleKey = (ProjectName, RoleName);

#[derive(Debug)]
pub(super) struct Roles {
    admin: Admin,
    /// Roles, with the generation in which they were read.
    cached: Arc<Cache<RoleKey, (u64, Arc<ProjectRole>)>>,
    loads: SingleFlight<(RoleKey, u64), Option<Arc<ProjectRole>>, Problem>,
}

impl Roles {
    pub(super) fn new(admin: Admin) -> Self {
        Self { admin, cached: Arc::new(Cache::new(ROLES_MAX_COUNT)), loads: SingleFlight::default() }
    }

    /// Returns a role, read in the given generation or later; `None` if the role does not exist. Concurrent calls for
    /// the same role share one query.
    ///
    /// # Errors
    /// `database_unavailable`; `internal` if the role's definition is malformed, or the load that this call shares was
    /// aborted.
    pub(super) async fn role(
        &self,
        project: &ProjectName,
        name: &RoleName,
        generation: u64,
    ) -> Result<Option<Arc<ProjectRole>>, Problem> {
        let key = (project.clone(), name.clone());
        if let Some(role) = cached(&self.cached, &key, generation) {
            return Ok(Some(role));
        }
        let (admin, roles) = (self.admin.clone(), Arc::clone(&self.cached));
        let load = {
            let key = key.clone();
            async move {
                // Another load may have ended since this call looked into the cache.
                if let Some(role) = cached(&roles, &key, generation) {
                    return Ok(Some(role));
                }
                let role = load(&admin, &key).await?;
                if let Some(role) = &role {
                    roles.insert(key, (generation, Arc::clone(role)));
                }
                Ok(role)
            }
        };
        self.loads.run((key, generation), load).await
    }
}

fn cached(roles: &Cache<RoleKey, (u64, Arc<ProjectRole>)>, key: &RoleKey, generation: u64) -> Option<Arc<ProjectRole>> {
    roles.get(key).filter(|(read_in, _)| *read_in == generation).map(|(_, role)| role)
}

async fn load(admin: &Admin, (project, name): &RoleKey) -> Result<Option<Arc<ProjectRole>>, Problem> {
    let row = admin.role(project, name).await.map_err(|error| unavailable(&error))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let role = Role::parse(&row.definition).map_err(|fault| {
        Problem::internal("The key's role can't be read.", format!("role {name} of project {project}: {fault}"))
    })?;
    Ok(Some(Arc::new(ProjectRole::new(name.clone(), role))))
}
