//! Limits the number of connections of all accounts together, since MariaDB has a limit of its own. At the limit, a new
//! connection takes the slot of the connection, of any account, that was idle longest. If no connection is idle,
//! opening waits until a connection is returned, at most for the wait timeout.

use super::Accounts;
use crate::database::error::DbError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The pause between two looks for an idle connection, since one may be returned just before a request begins to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The maximum number of KILLs at a time. Each uses a connection outside of the budget.
pub(crate) const KILLS_MAX_COUNT: usize = 16;

pub(in crate::database) struct ConnectionBudget {
    slots: Arc<Semaphore>,
    pub(in crate::database) kills: Arc<Semaphore>,
    waiting: AtomicUsize,
    served: AtomicUsize,
    accounts: Weak<RwLock<Accounts>>,
    wait_timeout: Duration,
}

pub(in crate::database) struct Slot {
    budget: Arc<ConnectionBudget>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionBudget {
    pub(super) fn new(most: usize, accounts: Weak<RwLock<Accounts>>, wait_timeout: Duration) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(most)),
            kills: Arc::new(Semaphore::new(KILLS_MAX_COUNT)),
            waiting: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            accounts,
            wait_timeout,
        }
    }

    pub(in crate::database) async fn slot(self: &Arc<Self>) -> Result<Slot, DbError> {
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => tokio::time::timeout(self.wait_timeout, self.wait()).await.map_err(|_| DbError::Overloaded)??,
        };
        Ok(Slot { budget: Arc::clone(self), _permit: permit })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, DbError> {
        // A single acquisition for the whole wait: the semaphore then serves requests in order of arrival.
        let mut slot = std::pin::pin!(Arc::clone(&self.slots).acquire_owned());
        let _waiting = Waiting::begin(self);
        loop {
            self.close_the_longest_unused();
            if let Ok(permit) = tokio::time::timeout(LOOK_AGAIN, &mut slot).await {
                return permit.map_err(|_| DbError::Overloaded);
            }
        }
    }

    fn close_the_longest_unused(&self) {
        let Some(accounts) = self.accounts.upgrade() else {
            return;
        };
        let accounts = accounts.read().unwrap_or_else(PoisonError::into_inner);
        let unused = |account: &super::Account| {
            let mut longest = None;
            let _ = account.pool.retain(|_, metrics| {
                longest = longest.max(Some(metrics.last_used()));
                true
            });
            longest
        };
        let all = accounts.all().filter_map(|account| Some((unused(account)?, account)));
        let Some((longest, account)) = all.max_by_key(|(longest, _)| *longest) else {
            return;
        };
        let mut closed = false;
        let _ = account.pool.retain(|_, metrics| {
            let stays = closed || metrics.last_used() < longest;
            closed |= !stays;
            stays
        });
    }
}

impl Slot {
    /// Returns whether the connection must be closed for a waiting request, which then counts as served.
    pub(super) fn must_yield(&self) -> bool {
        let waiting = self.budget.waiting.load(Ordering::Relaxed);
        let one_more = |served: usize| (served < waiting).then_some(served + 1);
        waiting > 0 && (self.budget.served).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

/// Counts a waiting request until dropped. `waiting` and `served` are not changed together: at worst a connection is
/// closed needlessly, or found idle up to [`LOOK_AGAIN`] later.
struct Waiting<'a>(&'a ConnectionBudget);

impl<'a> Waiting<'a> {
    fn begin(budget: &'a ConnectionBudget) -> Self {
        budget.waiting.fetch_add(1, Ordering::Relaxed);
        Self(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        let one_less = |served: usize| served.checked_sub(1);
        // `served` is 0 if no connection was closed for this request, because a slot became free in another way.
        let _ = (self.0.served).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}
