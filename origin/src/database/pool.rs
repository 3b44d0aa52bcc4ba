//! Connection pools of MariaDB accounts, each with a bounded first-in, first-out queue. A connection is reset before
//! its next lease only if its session is dirty, or all sessions of its project were marked to be reset. Dropping a
//! lease in the middle of a statement kills the statement in MariaDB.

mod connection_budget;
mod lease;

pub(crate) use connection_budget::KILLS_MAX_COUNT;
pub(super) use connection_budget::{ConnectionBudget, Slot};
pub use lease::Lease;

use super::account_source::{AccountSource, Repaired};
use super::connection::Connector;
use super::errno;
use super::error::DbError;
use super::hosts::{Hosts, HostsGauge};
use super::long_rows::LongRows;
use super::position::{POLL_MAX, POLL_MIN, Position, REPLICA_WAIT, WAIT_TIMEOUT};
use crate::histogram::Durations;
use crate::project_quota::{self, ProjectQuota, QuotaGuard};
use deadpool::managed::{self, Metrics, Timeouts};
use shared::ident::ProjectName;
use shared::key::Access;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The maximum length of all accounts' queues together, as a multiple of that of one account's queue (`pool_queue`).
pub const QUEUES_OF_ALL: usize = 4;

/// The idle time after which a connection is closed, counted from the start of its last lease.
const CLOSE_AFTER_IDLE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// The maximum number of connections of one caller. For other callers, an account has [`project_quota::beyond`] it.
    pub size: usize,
    /// The maximum number of connections of all accounts together, and again of those to replicas.
    pub total: usize,
    /// The maximum number of tickets (see `Pools::ticket`) of an account beyond `size`; callers that wait with few
    /// requests may go [`project_quota::beyond`]. Further requests fail with [`DbError::Overloaded`].
    pub queue: usize,
    /// The time limit for the wait for a connection of the account, and again for the wait for a slot of `total`.
    pub wait_timeout: Duration,
    /// The time limit for opening a connection, and for checking a connection before the next lease.
    pub connect_timeout: Duration,
    pub query_timeout: Duration,
}

pub struct Pools {
    settings: PoolSettings,
    hosts: Hosts,
    source: AccountSource,
    accounts: Arc<RwLock<Accounts>>,
    budget: Arc<ConnectionBudget>,
    /// The number of queued requests of all accounts. A request is queued if its account already had `size` tickets or
    /// more when the request took its ticket.
    waiting: Arc<AtomicUsize>,
    waits: Durations,
    pub(super) long_rows: LongRows,
    replicas: Option<Box<Pools>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The read runs on a replica if the caller's account may only read and a replica can be used.
    Replica,
    /// The statement runs on the host of `database_url` that currently serves.
    Primary,
}

#[derive(Clone, Copy, Debug)]
pub struct Lessee<'a> {
    pub project: &'a ProjectName,
    pub access: Access,
    /// The caller's id; nil for work that is not one caller's.
    pub caller: Uuid,
}

/// The accounts by project, in one map for each access, so that a look-up allocates nothing.
#[derive(Default)]
struct Accounts {
    full: HashMap<ProjectName, Arc<Account>>,
    read: HashMap<ProjectName, Arc<Account>>,
}

impl Accounts {
    fn of(&self, access: Access) -> &HashMap<ProjectName, Arc<Account>> {
        match access {
            Access::Full => &self.full,
            Access::Read => &self.read,
        }
    }

    fn of_mut(&mut self, access: Access) -> &mut HashMap<ProjectName, Arc<Account>> {
        match access {
            Access::Full => &mut self.full,
            Access::Read => &mut self.read,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.full.values().chain(self.read.values())
    }
}

pub(super) struct Account {
    pool: managed::Pool<Connector>,
    requests: AtomicUsize,
    project: ProjectName,
    leases: ProjectQuota,
    queue: ProjectQuota,
}

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pools").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
pub struct PoolGauge {
    pub open: usize,
    pub in_use: usize,
    pub waiting: usize,
    /// The times that requests waited for a connection, including failed attempts. Empty from [`Pools::gauge_of`].
    pub waits: Durations,
}

impl Pools {
    pub fn new(settings: PoolSettings, hosts: Hosts, source: AccountSource) -> Self {
        let accounts = Arc::<RwLock<Accounts>>::default();
        let budget = ConnectionBudget::new(settings.total, Arc::downgrade(&accounts), settings.wait_timeout);
        let (budget, waiting, waits) = (Arc::new(budget), Arc::default(), Durations::default());
        let long_rows = LongRows::new(settings.wait_timeout);
        Self { settings, hosts, source, accounts, budget, waiting, waits, long_rows, replicas: None }
    }

    /// Returns pools with connections and a connection budget of their own, and without replicas.
    pub(super) fn apart(&self, bounds: impl FnOnce(PoolSettings) -> PoolSettings) -> Self {
        let (hosts, source) = (self.hosts.clone(), self.source.clone());
        Self::new(bounds(self.settings), hosts, source)
    }

    /// Adds replicas, for callers with a read-only key or with a role that can only read.
    pub fn with_replicas(mut self, replicas: Hosts) -> Self {
        // Replication copies the accounts from the primary, so they must not be repaired on a replica.
        let source = self.source.without_repair();
        self.hosts.set_replicas();
        let waits = self.waits.clone();
        self.replicas = Some(Box::new(Self { waits, ..Self::new(self.settings, replicas, source) }));
        self
    }

    fn replicas(&self, access: Access, from: ReadFrom) -> Option<&Self> {
        let replicas = self.replicas.as_deref().filter(|_| access == Access::Read && from == ReadFrom::Replica);
        replicas.filter(|replicas| replicas.hosts.any_well())
    }

    pub fn replicas_gauge(&self) -> Option<HostsGauge> {
        self.replicas.as_ref().map(|replicas| replicas.hosts.gauge())
    }

    /// Returns whether a read may run on a replica. A read that failed there can be retried on the primary.
    pub fn may_read_replicas(&self, access: Access, from: ReadFrom) -> bool {
        self.replicas.is_some() && access == Access::Read && from == ReadFrom::Replica
    }

    pub(super) fn account_for_read(
        &self,
        project: &ProjectName,
        access: Access,
        from: ReadFrom,
    ) -> Result<Arc<Account>, DbError> {
        self.replicas(access, from).unwrap_or(self).account(project, access)
    }

    /// Leases a connection to a replica or to the primary. With `after`, waits until the connection's host has reached
    /// that position, if it has positions. If a replica fails, or is not there within about `REPLICA_WAIT` (500 ms),
    /// leases from the primary.
    pub async fn lease_for(
        &self,
        lessee: Lessee<'_>,
        from: ReadFrom,
        after: Option<&Position>,
    ) -> Result<Lease, DbError> {
        if let Some(replicas) = self.replicas(lessee.access, from) {
            let lease = match after {
                None => Box::pin(replicas.lease_as(lessee)).await,
                Some(after) => Box::pin(replicas.lease_at(lessee, after, REPLICA_WAIT)).await,
            };
            if lease.is_ok() {
                return lease;
            }
        }
        match after {
            None => self.lease_as(lessee).await,
            Some(after) => Box::pin(self.lease_at(lessee, after, WAIT_TIMEOUT)).await,
        }
    }

    /// Leases a connection to a host at `after`. Holds no connection while it waits, for about `limit` at most.
    async fn lease_at(&self, lessee: Lessee<'_>, after: &Position, limit: Duration) -> Result<Lease, DbError> {
        let (started, mut pause) = (Instant::now(), POLL_MIN);
        loop {
            let mut lease = self.lease_as(lessee).await?;
            match lease.has_reached(after).await {
                Ok(true) => return Ok(lease),
                // A silent host has not reached it either. Another one may serve soon.
                Ok(false) | Err(DbError::Timeout) => {}
                Err(error) => return Err(error),
            }
            drop(lease);
            if started.elapsed() >= limit {
                return Err(DbError::NotReached);
            }
            tokio::time::sleep(pause.min(limit.saturating_sub(started.elapsed()))).await;
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    pub fn query_timeout(&self) -> Duration {
        self.settings.query_timeout
    }

    pub fn wait_timeout(&self) -> Duration {
        self.settings.wait_timeout
    }

    /// Leases a connection for work that is not one caller's, never from the replicas of [`Pools::with_replicas`].
    pub async fn lease(&self, project: &ProjectName, access: Access) -> Result<Lease, DbError> {
        self.lease_as(Lessee { project, access, caller: Uuid::nil() }).await
    }

    pub async fn lease_as(&self, Lessee { project, access, caller }: Lessee<'_>) -> Result<Lease, DbError> {
        let account = self.account(project, access)?;
        let _ticket = self.ticket(&account, caller)?;
        self.connection(&account, caller).await
    }

    /// Takes a ticket without waiting. Tickets beyond the first `size` of an account count as the account's queue.
    pub(super) fn ticket(&self, account: &Arc<Account>, caller: Uuid) -> Result<QueueTicket, DbError> {
        let mut place = QueueTicket { account: Arc::clone(account), queue: None, _share: None };
        let before = account.requests.fetch_add(1, Ordering::Relaxed);
        if before < self.settings.size {
            return Ok(place);
        }
        let queue = place.queue.insert(Arc::clone(&self.waiting));
        if queue.fetch_add(1, Ordering::Relaxed) >= self.settings.queue * QUEUES_OF_ALL {
            return Err(DbError::Overloaded);
        }
        let share = account.queue.try_take_as(&account.project, caller, 1).map_err(|_| DbError::Overloaded)?;
        place._share = Some(share);
        Ok(place)
    }

    /// Leases a connection of the account, whose ticket the caller must hold (see [`Pools::ticket`]). If MariaDB
    /// refuses the login, repairs the account and tries once more.
    pub(super) async fn connection(&self, account: &Account, caller: Uuid) -> Result<Lease, DbError> {
        let getting = async {
            let turn = account.leases.take_as(&account.project, caller, 1);
            let turn = tokio::time::timeout(self.settings.wait_timeout, turn).await.map_err(|_| DbError::Overloaded)?;
            Ok::<_, DbError>((turn, account.pool.get().await))
        };
        let (turn, mut got) = self.timed(getting).await?;
        if got.as_ref().is_err_and(is_access_denied) {
            // A caller with a full key can change the password of its account; the repair restores it.
            if self.source.repair(&account.project).await == Repaired::Yes {
                got = Box::pin(account.pool.get()).await;
            }
        }
        let object = got.map_err(pool_error)?;
        Ok(Lease::new(object, turn, self.long_rows.clone()))
    }

    async fn timed<T>(&self, getting: impl Future<Output = T>) -> T {
        let mut getting = pin!(getting);
        let mut since = None;
        let got = poll_fn(|context| {
            let polled = getting.as_mut().poll(context);
            if polled.is_pending() {
                since.get_or_insert_with(Instant::now);
            }
            polled
        });
        let got = got.await;
        self.waits.observe(since.map_or(Duration::ZERO, |since: Instant| since.elapsed()));
        got
    }

    /// Returns the maximum wait for a shared statement: for a connection, then for a statement of at most `limit`.
    pub(super) fn answer_timeout(&self, limit: Duration) -> Duration {
        let PoolSettings { wait_timeout, connect_timeout, .. } = self.settings;
        wait_timeout + connect_timeout + limit
    }

    pub(super) fn account(&self, project: &ProjectName, access: Access) -> Result<Arc<Account>, DbError> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.of(access).get(project) {
            return Ok(Arc::clone(account));
        }
        drop(accounts);
        let account = Arc::new(self.open(project, access)?);
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        let entry = accounts.of_mut(access).entry(project.clone());
        Ok(Arc::clone(entry.or_insert(account)))
    }

    fn open(&self, project: &ProjectName, access: Access) -> Result<Account, DbError> {
        let account = self.source.account(project, access);
        let budget = Arc::clone(&self.budget);
        let connector = Connector::new(&self.hosts, &account, budget);
        let pool = managed::Pool::builder(connector)
            .max_size(self.settings.size + beyond(self.settings.size))
            .runtime(deadpool::Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(self.settings.wait_timeout),
                // A new connection first waits for a slot of the budget.
                create: Some(self.settings.wait_timeout + self.settings.connect_timeout),
                recycle: Some(self.settings.connect_timeout),
            })
            // Last in, first out: the statements and caches of the connection that was used last are warm.
            .queue_mode(managed::QueueMode::Lifo)
            .build()
            .map_err(|_| DbError::Unavailable("the pool can't be built".into()))?;
        let share = |count: usize| ProjectQuota::with_callers(u64::MAX, count as u64);
        let (leases, queue) = (share(self.settings.size), share(self.settings.queue));
        Ok(Account { pool, requests: AtomicUsize::new(0), project: project.clone(), leases, queue })
    }

    /// Closes idle connections, and drops accounts without connections and requests. Must be called periodically.
    pub fn close_idle(&self) {
        if let Some(replicas) = &self.replicas {
            replicas.close_idle();
        }
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        for access in [Access::Full, Access::Read] {
            accounts.of_mut(access).retain(|_, account| {
                let _ = account.pool.retain(|_, metrics: Metrics| metrics.last_used() < CLOSE_AFTER_IDLE);
                // A second reference to the account means that a request uses it or is about to.
                account.pool.status().size > 0 || Arc::strong_count(account) > 1
            });
        }
    }

    pub(super) fn reset_all_sessions(&self, project: &ProjectName) {
        if let Some(replicas) = &self.replicas {
            replicas.reset_all_sessions(project);
        }
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        for access in [Access::Full, Access::Read] {
            if let Some(account) = accounts.of(access).get(project) {
                account.pool.manager().reset_all_sessions();
            }
        }
    }

    pub fn gauge(&self) -> PoolGauge {
        let of_replicas = self.replicas.as_ref().map(|replicas| replicas.gauge()).unwrap_or_default();
        let open = of_replicas.plus(self.accounts.read().unwrap_or_else(PoisonError::into_inner).all());
        PoolGauge { waits: self.waits.clone(), ..open }
    }

    /// Adds up a project's connections and waiting requests on the primary and the replicas. Leaves [`PoolGauge::waits`]
    /// empty.
    pub fn gauge_of(&self, project: &ProjectName) -> PoolGauge {
        let of_replicas = self.replicas.as_ref().map(|replicas| replicas.gauge_of(project)).unwrap_or_default();
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        of_replicas.plus([Access::Full, Access::Read].into_iter().filter_map(|access| accounts.of(access).get(project)))
    }
}

impl PoolGauge {
    fn plus<'a>(self, accounts: impl Iterator<Item = &'a Arc<Account>>) -> Self {
        accounts.fold(self, |sum, account| {
            let status = account.pool.status();
            Self {
                open: sum.open + status.size,
                in_use: sum.in_use + status.size.saturating_sub(status.available),
                waiting: sum.waiting + status.waiting + account.leases.waiting(),
                ..sum
            }
        })
    }
}

pub(super) struct QueueTicket {
    account: Arc<Account>,
    /// The counter [`Pools::waiting`]; `None` if the account had fewer than `size` tickets when this ticket was taken.
    /// Such a request may have to wait too: [`Pools::lease`] drops its ticket as soon as it has a connection.
    queue: Option<Arc<AtomicUsize>>,
    _share: Option<QuotaGuard>,
}

fn beyond(count: usize) -> usize {
    usize::try_from(project_quota::beyond(count as u64)).unwrap_or(count)
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.account.requests.fetch_sub(1, Ordering::Relaxed);
        if let Some(queue) = &self.queue {
            queue.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn is_access_denied(error: &managed::PoolError<DbError>) -> bool {
    matches!(error, managed::PoolError::Backend(error) if error.errno() == Some(errno::ACCESS_DENIED))
}

fn pool_error(error: managed::PoolError<DbError>) -> DbError {
    use deadpool::managed::TimeoutType;
    match error {
        managed::PoolError::Timeout(TimeoutType::Wait) => DbError::Overloaded,
        managed::PoolError::Timeout(_) => DbError::Unavailable("opening a connection took too long".into()),
        managed::PoolError::Backend(error) => error.connecting(),
        other => DbError::Unavailable(other.to_string().into()),
    }
}
