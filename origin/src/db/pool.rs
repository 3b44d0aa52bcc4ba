//! Connections, one small pool for each account, with a fair and bounded queue before it.
//!
//! A connection goes back as it is: what dirtied its session says so (`Lease::mark_dirty`) and pays
//! for the reset. A lease that is dropped in the middle of a statement kills it in MariaDB.

mod lease;

pub use lease::Lease;

use super::connect;
use super::error::DbError;
use crate::address::DatabaseAddress;
use crate::config;
use crate::projects::Projects;
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult, Timeouts};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts};
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Prepared statements kept by each connection. Like reads share a text, so few suffice; MariaDB keeps
/// about 10 KB for each.
const STATEMENT_CACHE_SIZE: usize = 128;
/// How long a connection may lie unused before it is asked whether it still lives.
const PING_AFTER_IDLE: Duration = Duration::from_secs(20);
/// How long a connection may lie unused before it is closed.
const CLOSE_AFTER_IDLE: Duration = Duration::from_secs(300);
/// KILLs under way at once; each takes a connection of its own.
const KILLS_AT_ONCE: usize = 16;
/// How long a KILL may take, its connection included.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest packet from MariaDB, a row at most.
const PACKET_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Every session's settings, whatever the server's own are: UTC, strict, our character set.
const SESSION_SETUP: &str = "SET NAMES utf8mb4, time_zone = '+00:00', autocommit = 1, \
     sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION', \
     innodb_lock_wait_timeout = 10, lock_wait_timeout = 10, group_concat_max_len = 1048576";

/// Bounds of the pools.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// Connections of one account.
    pub size: usize,
    /// Requests that may wait for a connection of one account.
    pub queue: usize,
    /// How long one may wait.
    pub wait_timeout: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a statement may run.
    pub query_timeout: Duration,
}

/// The pools of all accounts, opened when first used.
pub struct Pools {
    settings: PoolSettings,
    address: DatabaseAddress,
    projects: Projects,
    accounts: RwLock<HashMap<(ProjectName, Access), Arc<Account>>>,
}

struct Account {
    pool: managed::Pool<Connector>,
    waiting: AtomicUsize,
}

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pools")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A pool's state, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolGauge {
    /// Connections that are open.
    pub open: usize,
    /// Connections in use.
    pub in_use: usize,
    /// Requests waiting.
    pub waiting: usize,
}

impl Pools {
    /// Pools of a server, for the accounts of these projects.
    #[must_use]
    pub fn new(settings: PoolSettings, address: DatabaseAddress, projects: Projects) -> Self {
        Self {
            settings,
            address,
            projects,
            accounts: RwLock::default(),
        }
    }

    /// How long a statement may run.
    #[must_use]
    pub fn query_timeout(&self) -> Duration {
        self.settings.query_timeout
    }

    /// A connection of a project's account.
    ///
    /// # Errors
    /// [`DbError::Overloaded`] if the queue is full or the wait too long, [`DbError::Unavailable`] if
    /// MariaDB can't be reached.
    pub async fn lease(&self, project: &ProjectName, access: Access) -> Result<Lease, DbError> {
        let account = self.account(project, access)?;
        let _place = Place::take(&account.waiting, self.settings.queue + self.settings.size)?;
        let mut got = account.pool.get().await;
        if got.as_ref().is_err_and(is_locked_out) {
            // An account may change its own password, whatever its rights: ours is set again.
            match self.projects.mend(project).await {
                Ok(()) => got = account.pool.get().await,
                Err(error) => tracing::error!(%error, "an account could not be mended"),
            }
        }
        let object = got.map_err(|error| pool_error(error, &account))?;
        Ok(Lease::new(object))
    }

    fn account(&self, project: &ProjectName, access: Access) -> Result<Arc<Account>, DbError> {
        // The maps are whole at every step, so a poisoned lock still guards good data.
        let key = (project.clone(), access);
        if let Some(account) = self
            .accounts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
        {
            return Ok(Arc::clone(account));
        }
        let account = Arc::new(self.open(project, access)?);
        let mut accounts = self
            .accounts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(accounts.entry(key).or_insert(account)))
    }

    fn open(&self, project: &ProjectName, access: Access) -> Result<Account, DbError> {
        let account = self.projects.account(project, access);
        let connector = Connector {
            opts: options(&self.address, &account),
            epoch: AtomicU64::new(0),
            kills: Arc::new(Semaphore::new(KILLS_AT_ONCE)),
        };
        let pool = managed::Pool::builder(connector)
            .max_size(self.settings.size)
            .runtime(deadpool::Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(self.settings.wait_timeout),
                create: Some(self.settings.connect_timeout),
                recycle: Some(self.settings.connect_timeout),
            })
            // The connection used last has its statements and caches warm.
            .queue_mode(managed::QueueMode::Lifo)
            .build()
            .map_err(|_| DbError::Unavailable("the pool can't be built".into()))?;
        Ok(Account {
            pool,
            waiting: AtomicUsize::new(0),
        })
    }

    /// Closes connections that lie unused. To be called now and then.
    pub fn close_idle(&self) {
        for account in self
            .accounts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            account
                .pool
                .retain(|_, metrics: Metrics| metrics.last_used() < CLOSE_AFTER_IDLE);
        }
    }

    /// The state of all pools together.
    #[must_use]
    pub fn gauge(&self) -> PoolGauge {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts
            .values()
            .fold(PoolGauge::default(), |sum, account| {
                let status = account.pool.status();
                PoolGauge {
                    open: sum.open + status.size,
                    in_use: sum.in_use + status.size.saturating_sub(status.available),
                    waiting: sum.waiting + status.waiting,
                }
            })
    }
}

/// A place in an account's queue.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Result<Self, DbError> {
        let place = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= most {
            return Err(DbError::Overloaded);
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether MariaDB refused the login.
fn is_locked_out(error: &managed::PoolError<mysql_async::Error>) -> bool {
    const ACCESS_DENIED: u16 = 1045;
    matches!(error, managed::PoolError::Backend(mysql_async::Error::Server(error)) if error.code == ACCESS_DENIED)
}

fn pool_error(error: managed::PoolError<mysql_async::Error>, account: &Account) -> DbError {
    use deadpool::managed::TimeoutType;
    match error {
        managed::PoolError::Timeout(TimeoutType::Wait) => DbError::Overloaded,
        managed::PoolError::Timeout(_) => {
            DbError::Unavailable("opening a connection took too long".into())
        }
        managed::PoolError::Backend(error) => {
            account.pool.manager().forget_all();
            DbError::connecting(error)
        }
        other => DbError::Unavailable(other.to_string().into()),
    }
}

/// The driver's options for a project's account.
fn options(address: &DatabaseAddress, account: &config::Account) -> Opts {
    connect::options(address, &account.user, &account.password)
        .stmt_cache_size(STATEMENT_CACHE_SIZE)
        .max_allowed_packet(Some(PACKET_MAX_BYTES))
        // Rows matched, not rows changed: an update to the same values counts.
        .client_found_rows(true)
        .setup(vec![SESSION_SETUP])
        .into()
}

/// A connection and what is known of its session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) conn: Conn,
    pub(super) schema: DefaultSchema,
    pub(super) session: SessionState,
    used_at: Instant,
    epoch: u64,
}

/// The session's default schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefaultSchema {
    /// None was ever chosen.
    Unset,
    /// This one.
    Set(DatabaseName),
    /// A statement may have changed it.
    Unknown,
}

/// What may be left in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Nothing: new, or just reset.
    Pristine,
    /// Only what no later statement of ours can see, such as the last insert id.
    Used,
    /// Anything: it must be reset before anybody else has it.
    Dirty,
}

/// Makes connections of one account.
pub(super) struct Connector {
    opts: Opts,
    /// Counts the times that MariaDB went away: older connections are not given out any more.
    epoch: AtomicU64,
    kills: Arc<Semaphore>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    fn forget_all(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Kills a connection's statement in MariaDB, over a connection of its own.
    fn kill(&self, id: u32) {
        let (opts, kills) = (self.opts.clone(), Arc::clone(&self.kills));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let killed = tokio::time::timeout(KILL_TIMEOUT, async {
                let _permit = kills.acquire_owned().await;
                let mut conn = Conn::new(opts).await?;
                conn.query_drop(format!("KILL CONNECTION {id}")).await?;
                conn.disconnect().await
            })
            .await;
            match killed {
                // 1094: it ended by itself in the meantime.
                Ok(Ok(())) => {}
                Ok(Err(mysql_async::Error::Server(error))) if error.code == 1094 => {}
                Ok(Err(error)) => tracing::warn!(%error, "a statement could not be killed"),
                Err(_) => tracing::warn!("killing a statement took too long"),
            }
        });
    }
}

impl managed::Manager for Connector {
    type Type = Connection;
    type Error = mysql_async::Error;

    async fn create(&self) -> Result<Connection, mysql_async::Error> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let conn = Conn::new(self.opts.clone()).await?;
        Ok(Connection {
            conn,
            schema: DefaultSchema::Unset,
            session: SessionState::Pristine,
            used_at: Instant::now(),
            epoch,
        })
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        _: &Metrics,
    ) -> RecycleResult<mysql_async::Error> {
        if connection.epoch != self.epoch.load(Ordering::Relaxed)
            || connection.conn.is_disconnected()
        {
            return Err(RecycleError::message("the connection is lost"));
        }
        if connection.session == SessionState::Dirty {
            connection.reset().await?;
        } else if connection.used_at.elapsed() > PING_AFTER_IDLE {
            connection.conn.ping().await?;
        }
        connection.used_at = Instant::now();
        Ok(())
    }
}

impl Connection {
    /// Rolls back, drops temporary tables, forgets variables, releases locks. The default schema
    /// stays, as MariaDB's manual says of `COM_RESET_CONNECTION`.
    ///
    /// A connection with an XA transaction fails here, and is to be closed: MariaDB's reset lets go of a
    /// prepared one, but leaves the session without access to its tables.
    pub(super) async fn reset(&mut self) -> Result<(), mysql_async::Error> {
        self.conn.query_drop("ROLLBACK").await?;
        self.conn.reset().await?;
        self.session = SessionState::Pristine;
        Ok(())
    }
}
