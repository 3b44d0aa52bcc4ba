//! The administrator's hands: a few connections under the admin account, and typed functions over
//! them, one file a subject. No function takes SQL.
//!
//! The statements here are ours alone; what callers ask for never passes through. Knows nothing of
//! HTTP, tokens or configuration.

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

/// Connections under the admin account. It does little, and MariaDB's connections are for callers.
const CONNECTIONS_MAX_COUNT: usize = 3;

/// How long one statement of ours may take; dropping or creating a large database is the longest.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an idle connection is kept.
const IDLE_TTL: Duration = Duration::from_secs(120);

/// How long one origin waits for another that migrates or sets accounts up.
const LOCK_WAIT_SECONDS: u64 = 45;

/// What each admin connection begins with: times as numbers, faults as faults, no endless waits.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
     time_zone = '+00:00', lock_wait_timeout = 20, innodb_lock_wait_timeout = 20, \
     max_statement_time = 50, group_concat_max_len = 1048576";

/// The administrator. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Admin {
    pool: Pool,
    address: DatabaseAddress,
    connect_timeout: Duration,
    lock_name: String,
}

impl Admin {
    /// Prepares the hands; nothing is contacted yet. `connect_timeout` bounds the opening of a
    /// connection, and the wait for a free one.
    #[must_use]
    pub fn new(address: &DatabaseAddress, secret: &InstallationSecret, connect_timeout: Duration) -> Self {
        let pool_options = PoolOpts::default()
            .with_constraints(PoolConstraints::new(0, CONNECTIONS_MAX_COUNT).unwrap_or_default())
            .with_inactive_connection_ttl(IDLE_TTL)
            // No statement of ours leaves anything behind in a session.
            .with_reset_connection(false);
        let pool = Pool::new(
            options(address, &address.admin_user, &address.admin_password).setup(vec![SESSION]).pool_opts(pool_options),
        );
        Self { pool, address: address.clone(), connect_timeout, lock_name: lock_name(secret) }
    }

    /// The admin account's name, for messages.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.address.admin_user
    }

    /// The host part of accounts made for this way of connecting: MariaDB takes a socket's peer for
    /// `localhost`, and a TCP peer for an address that we can't foresee.
    #[must_use]
    pub fn account_host(&self) -> &'static str {
        match self.address.endpoint {
            Endpoint::Socket(_) => "localhost",
            Endpoint::Tcp { .. } => "%",
        }
    }

    /// Closes the connections; within a second, or not at all.
    pub async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.pool.disconnect()).await;
    }

    /// Makes others of this installation wait until the guard is released or dropped. What spans
    /// several statements (migrations, accounts, the signing keys) takes it.
    ///
    /// # Errors
    /// The connection failed, or another origin held it for too long.
    pub async fn lock(&self) -> Result<AdminLock, AdminError> {
        // A connection of its own: it ends with the guard, and the lock with it, whatever happens.
        let opts: Opts =
            options(&self.address, &self.address.admin_user, &self.address.admin_password).setup(vec![SESSION]).into();
        let mut conn = connect(opts, self.connect_timeout)
            .await
            .ok_or(AdminError::TimedOut)?
            .map_err(|error| self.fault(error))?;
        // Waits in the server, so it must wait less than a statement may take.
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

    /// Runs one exchange with MariaDB within the time-out.
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

/// Held while no other origin or command of this installation may change the system.
#[derive(Debug)]
pub struct AdminLock {
    conn: Conn,
}

impl AdminLock {
    /// Lets the next one in.
    pub async fn release(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.conn.disconnect()).await;
    }
}

/// Any account may take a lock by name, so the name is one that only this installation knows: no
/// project's SQL can hold up a start.
fn lock_name(secret: &InstallationSecret) -> String {
    let tag = secret.derive("lock:system");
    let hex: String = tag.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("selkie-{hex}")
}
