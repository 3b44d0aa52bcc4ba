//! Typed functions under MariaDB's admin account, over a few connections of their own. No function takes SQL, so
//! callers' statements never run under this account. Knows nothing of HTTP, tokens or configuration.

mod accounts;
mod databases;
mod demo;
mod error;
mod facts;
mod keys;
mod migrations;
mod projects;
mod quote;

use crate::database::ask;
use std::future::Future;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Pool, PoolConstraints, PoolOpts};

use super::connect::{connect, options};
use crate::address::{DatabaseAddress, Endpoint};
use crate::secret::InstallationSecret;

pub use accounts::{AccountName, AccountState, Accounts, DatabaseRights, LoginCheck, Rights};
pub(crate) use accounts::{exact_pattern, rights_on};
pub use databases::Created;
pub use error::AdminError;
pub use facts::{ServerFacts, StrangeGrant};
pub use keys::{KeyRow, KeyStatus, NewKey, SigningKeyRow};
pub use migrations::SCHEMA_VERSION;
pub use projects::{DatabaseRow, Drops, Inserted, ProjectRow};
pub(crate) use quote::pattern_fits;

/// Connections under the admin account. Few, because MariaDB's connections are for requests.
const CONNECTIONS_MAX_COUNT: usize = 3;

/// The limit for one statement. Creating or dropping a large database takes longest.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

const IDLE_TTL: Duration = Duration::from_secs(120);

/// How long to wait for another origin that migrates the schema or sets up accounts.
const LOCK_WAIT_SECONDS: u64 = 45;

/// Session settings of each connection: strict SQL mode, UTC, and limits in seconds on lock waits and statements.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
     time_zone = '+00:00', lock_wait_timeout = 20, innodb_lock_wait_timeout = 20, \
     max_statement_time = 50, group_concat_max_len = 1048576";

/// Administers MariaDB. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Admin {
    pool: Pool,
    address: DatabaseAddress,
    connect_timeout: Duration,
    lock_name: String,
}

impl Admin {
    /// Prepares the pool without connecting. `connect_timeout` limits both opening a connection and waiting for a free
    /// one.
    #[must_use]
    pub fn new(address: &DatabaseAddress, secret: &InstallationSecret, connect_timeout: Duration) -> Self {
        let pool_options = PoolOpts::default()
            .with_constraints(PoolConstraints::new(0, CONNECTIONS_MAX_COUNT).unwrap_or_default())
            .with_inactive_connection_ttl(IDLE_TTL)
            // No statement here changes session state, so the pool need not reset it.
            .with_reset_connection(false);
        let pool = Pool::new(
            options(address, &address.admin_user, &address.admin_password).setup(vec![SESSION]).pool_opts(pool_options),
        );
        Self { pool, address: address.clone(), connect_timeout, lock_name: lock_name(secret) }
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.address.admin_user
    }

    /// Returns the host part of the accounts that this program logs in to: MariaDB sees `localhost` for a socket, and
    /// for TCP an address that can't be known in advance.
    #[must_use]
    pub fn account_host(&self) -> &'static str {
        match self.address.endpoint {
            Endpoint::Socket(_) => "localhost",
            Endpoint::Tcp { .. } => "%",
        }
    }

    /// Closes the connections, waiting one second at most.
    pub async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.pool.disconnect()).await;
    }

    /// Takes the lock of this installation, which every change of several statements (migrations, accounts, signing
    /// keys) needs. It is held until the guard is released or dropped.
    ///
    /// # Errors
    /// Connecting failed, or [`AdminError::Busy`]: another origin held the lock for too long.
    pub async fn lock(&self) -> Result<AdminLock, AdminError> {
        // A connection outside the pool: it closes with the guard, and MariaDB then frees the lock.
        let opts: Opts =
            options(&self.address, &self.address.admin_user, &self.address.admin_password).setup(vec![SESSION]).into();
        let mut conn = connect(opts, self.connect_timeout)
            .await
            .ok_or(AdminError::TimedOut)?
            .map_err(|error| self.fault(error))?;
        // MariaDB itself waits here, so the wait must be shorter than a statement's limit.
        let granted: Option<Option<u8>> = self
            .within(ask::first(conn.exec_iter("SELECT GET_LOCK(?, ?)", (&self.lock_name, LOCK_WAIT_SECONDS))))
            .await?;
        match granted.flatten() {
            Some(1) => Ok(AdminLock { conn }),
            _ => Err(AdminError::Busy),
        }
    }

    async fn conn(&self) -> Result<Conn, AdminError> {
        match tokio::time::timeout(self.connect_timeout, self.pool.get_conn()).await {
            Ok(conn) => conn.map_err(|error| self.fault(error)),
            Err(_) => Err(AdminError::TimedOut),
        }
    }

    /// Runs `exchange` for at most [`STATEMENT_TIMEOUT`].
    async fn within<T>(&self, exchange: impl Future<Output = mysql_async::Result<T>>) -> Result<T, AdminError> {
        match tokio::time::timeout(STATEMENT_TIMEOUT, exchange).await {
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

/// While it exists, no other origin or command of this installation changes the system schema or accounts.
#[derive(Debug)]
pub struct AdminLock {
    conn: Conn,
}

impl AdminLock {
    pub async fn release(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.conn.disconnect()).await;
    }
}

/// Returns the lock's name. It is secret because any account may take a lock by name, and a project's SQL could
/// otherwise block a start.
fn lock_name(secret: &InstallationSecret) -> String {
    let tag = secret.derive("lock:system");
    let hex: String = tag.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("selkie-{hex}")
}
