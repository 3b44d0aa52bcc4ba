//! Where the pools take the MariaDB accounts of projects from: functions that whoever knows projects gives.

use crate::config::Account;
use futures_util::future::BoxFuture;
use shared::ident::ProjectName;
use shared::key::Access;
use std::sync::Arc;

type Find = dyn Fn(&ProjectName, Access) -> Account + Send + Sync;
type Repair = dyn Fn(ProjectName) -> BoxFuture<'static, Repaired> + Send + Sync;

/// The accounts that keys of projects run under. Cheap to clone.
#[derive(Clone)]
pub struct AccountSource {
    find: Arc<Find>,
    repair: Arc<Repair>,
}

/// Whether an account is as it should be again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// It is: another login may succeed.
    Yes,
    /// It is not.
    No,
}

impl std::fmt::Debug for AccountSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountSource")
    }
}

impl AccountSource {
    /// Accounts that `find` gives, and `repair` makes right again after MariaDB refused a login.
    pub fn new(
        find: impl Fn(&ProjectName, Access) -> Account + Send + Sync + 'static,
        repair: impl Fn(ProjectName) -> BoxFuture<'static, Repaired> + Send + Sync + 'static,
    ) -> Self {
        Self { find: Arc::new(find), repair: Arc::new(repair) }
    }

    pub(super) fn account(&self, project: &ProjectName, access: Access) -> Account {
        (self.find)(project, access)
    }

    pub(super) async fn repair(&self, project: &ProjectName) -> Repaired {
        (self.repair)(project.clone()).await
    }
}
