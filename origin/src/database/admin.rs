//! Typed functions that run under MariaDB's admin account, most of them on a small connection pool of their own; a few
//! log in as a project's account. No public function takes SQL, so API callers' statements never run under the admin
//! account. Knows nothing of HTTP or tokens.

mod accounts;
mod backup;
mod databases;
mod demo;
mod dump;
mod error;
mod facts;
mod issuers;
mod keys;
mod log_files;
mod migrations;
mod projects;
mod quote;
mod roles;
mod script;
mod webhooks;

use crate::database::typed_rows;
use std::future::Future;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, PoolConstraints, PoolOpts};
use secrecy::SecretString;
use shared::fingerprint::hex;

use super::error::HostLost;
use super::hosts::{HostPools, Hosts};
use crate::address::Endpoint;
use crate::secret::InstallationSecret;

pub use accounts::{AccountName, AccountState, Accounts, DatabaseRights, LoginCheck, Rights};
pub(crate) use accounts::{exact_pattern, rights_on};
pub use backup::InstallationContent;
pub use databases::Created;
pub use dump::{Dump, Incomplete, Loaded, Loader, ObjectFault, RecordReader, StatementRefusal};
pub use error::AdminError;
pub use facts::{ServerFacts, StrangeGrant};
pub use issuers::{IssuerKeys, IssuerRow};
pub use keys::{KeyGrant, KeyRow, KeyStatus, KeyVersion, NewKey, SigningKeyRow};
pub use log_files::LOG_MAX_BYTES;
pub use migrations::SCHEMA_VERSION;
pub use projects::{DatabaseRow, Drops, Inserted, ProjectRow};
pub(crate) use quote::pattern_fits;
pub use roles::{ListedRole, RoleRow};
pub use script::ScriptSession;
pub use webhooks::{DeliveryOutcome, DeliveryRow, DeliveryState, WebhookRow};

/// The maximum number of connections in this module's pool, per host. Small, to leave MariaDB's connections to
/// requests.
pub(crate) const CONNECTIONS_MAX_COUNT: usize = 3;

/// The maximum number of connections, per host, in the pool of [`Admin::apart`].
pub(crate) const PROBE_CONNECTIONS: usize = 1;

/// The maximum number of connections, per host, for deliveries of webhooks.
pub(crate) const WEBHOOK_CONNECTIONS: usize = 4;

/// The time limit for one statement or transaction of the admin account. Dropping a large database takes longest.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

const IDLE_TTL: Duration = Duration::from_secs(120);

/// The maximum time, in seconds, that [`Admin::lock`] waits for the installation's lock.
const LOCK_WAIT_SECONDS: u64 = 45;

/// Session settings of each connection: strict SQL mode, UTC, limits in seconds on lock waits and statements, and the
/// limit of GROUP_CONCAT in bytes.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
     time_zone = '+00:00', lock_wait_timeout = 20, innodb_lock_wait_timeout = 20, \
     max_statement_time = 50, group_concat_max_len = 1048576";

/// A small connection pool under MariaDB's admin account. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Admin {
    pool: HostPools,
    hosts: Hosts,
    connect_timeout: Duration,
    lock_name: String,
}

impl Admin {
    /// Prepares the pool without connecting. `connect_timeout` limits opening a connection, and waiting for a free one.
    pub fn new(hosts: &Hosts, secret: &InstallationSecret, connect_timeout: Duration) -> Self {
        let (pool, hosts) = (pool(hosts, CONNECTIONS_MAX_COUNT), hosts.clone());
        Self { pool, hosts, connect_timeout, lock_name: lock_name(secret) }
    }

    /// Returns an [`Admin`] with a pool of its own for one connection, so that its statements wait for no others.
    pub fn apart(&self) -> Self {
        self.with_connections(PROBE_CONNECTIONS)
    }

    /// Returns an [`Admin`] with a pool of its own for so many connections.
    pub fn with_connections(&self, count: usize) -> Self {
        Self { pool: pool(&self.hosts, count), ..self.clone() }
    }

    pub fn user(&self) -> &str {
        &self.hosts.address().admin_user
    }

    /// Returns the host part of the names of projects' accounts: `localhost` for a socket; `%` for TCP, since the
    /// client address that MariaDB sees can't be known in advance.
    pub fn account_host(&self) -> &'static str {
        match self.hosts.address().endpoint {
            Endpoint::Socket(_) => "localhost",
            Endpoint::Tcp { .. } => "%",
        }
    }

    /// Closes the pooled connections, waiting one second at most.
    pub async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.pool.disconnect()).await;
    }

    /// Waits for and takes the installation's lock in MariaDB, which excludes other origins and commands from
    /// migrations and from most changes of accounts, databases and signing keys (not from the repair of an account).
    /// The lock is held until the returned guard is released or dropped. The nodes of a Galera cluster do not share the
    /// lock. Returns [`AdminError::Busy`] if another origin or command held the lock for `LOCK_WAIT_SECONDS`.
    pub async fn lock(&self) -> Result<AdminLock, AdminError> {
        // A connection outside the pool: dropping the guard closes it, and MariaDB then frees the lock.
        let (user, password) = (self.user(), &self.hosts.address().admin_password);
        let mut conn = self.connect(user, password).await?.map_err(|error| self.fault(error))?;
        // GET_LOCK waits inside MariaDB, so `LOCK_WAIT_SECONDS` must be less than [`STATEMENT_TIMEOUT`] and
        // `max_statement_time`.
        let granted: Option<Option<u8>> = self
            .within(typed_rows::first(conn.exec_iter("SELECT GET_LOCK(?, ?)", (&self.lock_name, LOCK_WAIT_SECONDS))))
            .await?;
        match granted.flatten() {
            Some(1) => Ok(AdminLock { conn }),
            _ => Err(AdminError::Busy),
        }
    }

    /// Runs `work` while this process holds [`Self::lock`].
    pub fn locked<T, E: From<AdminError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, E>> {
        // Not part of the callers' futures, which would exceed clippy's limit of 16 KiB.
        let work = Box::pin(work);
        async {
            let lock = self.lock().await?;
            let outcome = work.await;
            lock.release().await;
            outcome
        }
    }

    /// Opens a connection to the serving host, outside of the pool. The outer error is always [`AdminError::TimedOut`];
    /// the inner one is the driver's.
    async fn connect(&self, user: &str, password: &SecretString) -> Result<mysql_async::Result<Conn>, AdminError> {
        self.connect_with(user, password, |options| options.setup(vec![SESSION])).await
    }

    async fn connect_with(
        &self,
        user: &str,
        password: &SecretString,
        finish: impl Fn(OptsBuilder) -> OptsBuilder,
    ) -> Result<mysql_async::Result<Conn>, AdminError> {
        let connecting = async {
            let host = self.hosts.pick().await;
            let options = self.hosts.options(user, password, finish);
            let opts = host.as_ref().and_then(|host| options.into_iter().nth(host.index));
            match (host, opts) {
                (Some(host), Some(opts)) => self.hosts.on(&host, Conn::new(opts)).await,
                _ => Err(mysql_async::Error::Other(HostLost.into())),
            }
        };
        tokio::time::timeout(self.connect_timeout, connecting).await.map_err(|_| AdminError::TimedOut)
    }

    async fn conn(&self) -> Result<Conn, AdminError> {
        match tokio::time::timeout(self.connect_timeout, self.pool.get_conn()).await {
            Ok(conn) => conn.map_err(|error| self.fault(error)),
            Err(_) => Err(AdminError::TimedOut),
        }
    }

    /// Awaits a statement's result for at most [`STATEMENT_TIMEOUT`]. Fails at once if another host takes over (see
    /// `database::hosts`).
    async fn within<T>(&self, exchange: impl Future<Output = mysql_async::Result<T>>) -> Result<T, AdminError> {
        match tokio::time::timeout(STATEMENT_TIMEOUT, self.pool.on(exchange)).await {
            Ok(outcome) => outcome.map_err(|error| self.fault(error)),
            Err(_) => Err(AdminError::TimedOut),
        }
    }

    async fn run(&self, statement: String) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(conn.query_drop(statement)).await
    }

    fn fault(&self, error: mysql_async::Error) -> AdminError {
        AdminError::of(error, self.user())
    }
}

/// The guard of the installation's lock. The lock is advisory: it excludes only other holders of [`Admin::lock`], and
/// MariaDB frees it if the guard's connection breaks.
#[derive(Debug)]
pub struct AdminLock {
    conn: Conn,
}

impl AdminLock {
    pub async fn release(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.conn.disconnect()).await;
    }
}

fn pool(hosts: &Hosts, connections: usize) -> HostPools {
    let pool_options = PoolOpts::default()
        .with_constraints(PoolConstraints::new(0, connections).unwrap_or_default())
        .with_inactive_connection_ttl(IDLE_TTL)
        // A connection whose session state was changed does not return to the pool, so the pool need not reset it.
        .with_reset_connection(false);
    HostPools::new(hosts, |options| options.setup(vec![SESSION]).pool_opts(pool_options.clone()))
}

/// Returns the name of the installation's lock. The name is secret, because any account may take a lock whose name it
/// knows, and a project's SQL could otherwise keep origins from starting.
fn lock_name(secret: &InstallationSecret) -> String {
    format!("selkie-{}", hex(&secret.derive("lock:system")[..16]))
}
