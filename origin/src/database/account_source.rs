//! Supplies the connection pools with projects' MariaDB accounts, without knowing how projects are stored.

use crate::config::Account;
use futures_util::future::BoxFuture;
use shared::ident::ProjectName;
use shared::key::Access;
use std::sync::Arc;

type Find = dyn Fn(&ProjectName, Access) -> Account + Send + Sync;
type Repair = dyn Fn(ProjectName) -> BoxFuture<'static, Repaired> + Send + Sync;

#[derive(Clone)]
pub struct AccountSource {
    find: Arc<Find>,
    repair: Arc<Repair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    Yes,
    No,
}

impl std::fmt::Debug for AccountSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountSource")
    }
}

impl AccountSource {
    /// `repair` is called after MariaDB refused a login.
    pub fn new(
        find: impl Fn(&ProjectName, Access) -> Account + Send + Sync + 'static,
        repair: impl Fn(ProjectName) -> BoxFuture<'static, Repaired> + Send + Sync + 'static,
    ) -> Self {
        Self { find: Arc::new(find), repair: Arc::new(repair) }
    }

    pub(super) fn without_repair(&self) -> Self {
        Self { find: Arc::clone(&self.find), repair: Arc::new(|_| Box::pin(async { Repaired::No })) }
    }

    pub(super) fn account(&self, project: &ProjectName, access: Access) -> Account {
        (self.find)(project, access)
    }

    pub(super) async fn repair(&self, project: &ProjectName) -> Repaired {
        (self.repair)(project.clone()).await
    }
}
