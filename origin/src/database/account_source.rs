//! Supplies the connection pools with projects' MariaDB accounts, without knowing how projects are stored.

use super::single_flight::{LoadAborted, SingleFlight};
use crate::config::Account;
use crate::project_quota::ProjectQuota;
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
    repairs: Arc<Repairs>,
}

/// The repairs of accounts. One repair runs at a time, since a repair reads all accounts of MariaDB under the
/// administrator account, which has few connections. Concurrent requests of a project share a repair.
#[derive(Debug)]
struct Repairs {
    running: SingleFlight<ProjectName, (), Unrepaired>,
    slots: ProjectQuota,
}

#[derive(Clone, Copy, Debug)]
struct Unrepaired;

impl From<LoadAborted> for Unrepaired {
    fn from(_: LoadAborted) -> Self {
        Self
    }
}

impl Default for Repairs {
    fn default() -> Self {
        Self { running: SingleFlight::default(), slots: ProjectQuota::new(1, 1) }
    }
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
    /// `find` returns a project's account. `repair` is called after MariaDB refused a login of the account.
    pub fn new(
        find: impl Fn(&ProjectName, Access) -> Account + Send + Sync + 'static,
        repair: impl Fn(ProjectName) -> BoxFuture<'static, Repaired> + Send + Sync + 'static,
    ) -> Self {
        Self { find: Arc::new(find), repair: Arc::new(repair), repairs: Arc::default() }
    }

    pub(super) fn without_repair(&self) -> Self {
        Self { repair: Arc::new(|_| Box::pin(async { Repaired::No })), ..self.clone() }
    }

    pub(super) fn account(&self, project: &ProjectName, access: Access) -> Account {
        (self.find)(project, access)
    }

    pub(super) async fn repair(&self, project: &ProjectName) -> Repaired {
        let (source, owner) = (self.clone(), project.clone());
        let repair = async move {
            let _slot = source.repairs.slots.take(&owner, 1).await;
            match (source.repair)(owner).await {
                Repaired::Yes => Ok(()),
                Repaired::No => Err(Unrepaired),
            }
        };
        match self.repairs.running.run(project.clone(), repair).await {
            Ok(()) => Repaired::Yes,
            Err(Unrepaired) => Repaired::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn requests_share_the_repair_of_their_project_and_projects_wait_for_each_other() {
        let (begun, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let source = AccountSource::new(|_, _| unreachable!("no account is asked for"), {
            let (begun, open) = (Arc::clone(&begun), Arc::clone(&open));
            move |_| {
                let (begun, open) = (Arc::clone(&begun), Arc::clone(&open));
                Box::pin(async move {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let permit = open.acquire().await;
                    permit.map_or(Repaired::No, |_| Repaired::Yes)
                })
            }
        });
        let [one, other] = ["one", "other"].map(|name| ProjectName::parse(name).unwrap());
        let all_wait = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(begun.load(Ordering::SeqCst), 1);
            open.add_permits(1);
        };
        let (first, second, of_other, ()) =
            tokio::join!(source.repair(&one), source.repair(&one), source.repair(&other), all_wait);
        assert_eq!((first, second, of_other), (Repaired::Yes, Repaired::Yes, Repaired::Yes));
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }
}
