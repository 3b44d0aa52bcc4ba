//! Reads and caches the roles of all projects.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use shared::error::Problem;
use shared::ident::{ProjectName, RoleName};
use shared::limits::ROLE_MAX_BYTES;

use super::{lookup_slot, unavailable};
use crate::database::admin::Admin;
use crate::database::single_flight::SingleFlight;
use crate::project_quota::ProjectQuota;
use crate::query::plan::access::{ProjectRole, Views};
use crate::query::role::Role;

const ROLES_EXPECTED_COUNT: usize = 1_000;

/// The maximum memory of cached roles: that of eight of the largest definitions, without the roles' tables.
const ROLES_MAX_BYTES: u64 = 8 * PARSED_TIMES * ROLE_MAX_BYTES as u64;

/// The approximate memory of a parsed definition is this multiple of its text.
const PARSED_TIMES: u64 = 8;

/// The approximate memory of a role without its definition.
const ROLE_BYTES: u64 = 512;

type RoleKey = (ProjectName, RoleName);

#[derive(Clone, Debug)]
struct Cached {
    generation: u64,
    /// The role; `None` if the project has no such role: valid tokens of its users may name any.
    role: Option<Arc<ProjectRole>>,
    bytes: u64,
}

type RoleCache = Cache<RoleKey, Cached, CachedBytes>;

#[derive(Clone, Copy, Debug)]
struct CachedBytes;

impl Weighter<RoleKey, Cached> for CachedBytes {
    fn weight(&self, _: &RoleKey, cached: &Cached) -> u64 {
        ROLE_BYTES + PARSED_TIMES * cached.bytes
    }
}

#[derive(Debug)]
pub(super) struct Roles {
    admin: Admin,
    slots: ProjectQuota,
    cached: Arc<RoleCache>,
    views: Arc<Views>,
    loads: SingleFlight<(RoleKey, u64), Option<Arc<ProjectRole>>, Problem>,
}

impl Roles {
    pub(super) fn new(admin: Admin, slots: ProjectQuota) -> Self {
        let cached = Cache::with_weighter(ROLES_EXPECTED_COUNT, ROLES_MAX_BYTES, CachedBytes);
        Self { admin, slots, cached: Arc::new(cached), views: Arc::default(), loads: SingleFlight::default() }
    }

    /// Reads the role in the given generation or later. Concurrent calls for the same role share one query, and a
    /// project has only a share of the few connections.
    pub(super) async fn role(
        &self,
        project: &ProjectName,
        name: &RoleName,
        generation: u64,
    ) -> Result<Option<Arc<ProjectRole>>, Problem> {
        let key = (project.clone(), name.clone());
        if let Some(role) = cached(&self.cached, &key, generation) {
            return Ok(role);
        }
        let (admin, roles, views) = (self.admin.clone(), Arc::clone(&self.cached), Arc::clone(&self.views));
        let slots = self.slots.clone();
        let load = {
            let key = key.clone();
            async move {
                // Another load may have ended since this call looked into the cache.
                if let Some(role) = cached(&roles, &key, generation) {
                    return Ok(role);
                }
                let _slot = lookup_slot(&slots, &key.0).await?;
                let loaded = load(&admin, views, &key).await?;
                let (role, bytes) = loaded.map_or((None, 0), |(role, bytes)| (Some(role), bytes));
                roles.insert(key, Cached { generation, role: role.clone(), bytes });
                Ok(role)
            }
        };
        self.loads.run((key, generation), load).await
    }
}

fn cached(roles: &RoleCache, key: &RoleKey, generation: u64) -> Option<Option<Arc<ProjectRole>>> {
    roles.get(key).filter(|cached| cached.generation == generation).map(|cached| cached.role)
}

async fn load(
    admin: &Admin,
    views: Arc<Views>,
    (project, name): &RoleKey,
) -> Result<Option<(Arc<ProjectRole>, u64)>, Problem> {
    let row = admin.role(project, name).await.map_err(|error| unavailable(&error))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let role = Role::parse(&row.definition).map_err(|fault| {
        Problem::internal("The key's role can't be read.", format!("role {name} of project {project}: {fault}"))
    })?;
    Ok(Some((Arc::new(ProjectRole::new(name.clone(), role, views)), row.definition.len() as u64)))
}
