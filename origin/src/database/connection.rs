//! One connection to MariaDB: its options, its session's state, and how it is opened, reset and killed. Knows nothing
//! of requests or queues.

use super::description_budget::DescriptionBudget;
use super::error::{HostLost, PacketTooLarge, has_too_many_connections, means_lost};
use super::hosts::{Host, Hosts, Purpose, TRIES_MAX_COUNT};
use super::pool::{ConnectionBudget, Slot};
use super::position::Positions;
use super::prepared_statements::PreparedStatements;
use crate::config;
use crate::database::ask;
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{BinaryProtocol, ChangeUserOpts, Conn, Opts, OptsBuilder, Params, QueryResult, Statement, Value};
use shared::ident::DatabaseName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// A connection is pinged before it is leased again if its last lease began longer ago than this, unless its session is
/// reset then.
const PING_AFTER_IDLE: Duration = Duration::from_secs(20);
/// The maximum number of concurrent KILL statements for the connections of one account's pool.
pub(crate) const KILLS_PER_ACCOUNT_MAX_COUNT: usize = 4;
/// The time limit for a KILL, including the wait for a permit and opening a connection.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest packet in bytes, and so the largest row, that the driver accepts from MariaDB, and the largest packet
/// that it sends.
const PACKET_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Session settings of the connections of projects' accounts, whatever the server's defaults are: UTC, strict SQL mode,
/// utf8mb4, autocommit, limits on lock waits in seconds, the limit of GROUP_CONCAT in bytes, and at least 1,024 bytes
/// that MariaDB sorts by. The query on a derived table sets FOUND_ROWS() to 1, since a reset keeps the value of
/// FOUND_ROWS().
const SESSION_SETUP: &str = "SET NAMES utf8mb4, time_zone = '+00:00', autocommit = 1, \
     sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION', \
     innodb_lock_wait_timeout = 10, lock_wait_timeout = 10, group_concat_max_len = 1048576, \
     max_sort_length = (SELECT GREATEST(@@max_sort_length, 1024) FROM (SELECT 1) one)";

fn finish(options: OptsBuilder) -> OptsBuilder {
    options
        // The driver's own statement cache is off; [`PreparedStatements`] replaces it.
        .stmt_cache_size(0)
        .max_allowed_packet(Some(PACKET_MAX_BYTES))
        // `affected_rows` then counts rows matched, not rows changed: an update to the same values counts.
        .client_found_rows(true)
        .setup(vec![SESSION_SETUP])
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) conn: Conn,
    statements: PreparedStatements,
    pub(super) schema: DefaultSchema,
    pub(super) session: SessionState,
    used_at: Instant,
    epoch: u64,
    /// The value of [`Connector::trust`] when the session was opened, or last reset before a lease.
    trusted: u64,
    /// MariaDB's `max_allowed_packet` in bytes: MariaDB closes the connection when it gets a larger packet.
    packet_max_bytes: usize,
    /// The connection's slot in the budget of connections of all accounts; freed when the connection is dropped.
    pub(super) slot: Slot,
    pub(super) host: Host,
    pub(super) positions: Positions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefaultSchema {
    /// The session has no default schema.
    Unset,
    Set(DatabaseName),
    /// A statement may have changed the default schema.
    Unknown,
}

/// What earlier statements may have left in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Nothing: the session is new or was just reset.
    Pristine,
    /// Only state that no statement of this program reads, such as the last insert id. Needs no reset, except before a
    /// caller's SQL that may read session state.
    Used,
    /// Any state: the session must be reset before its next use.
    Dirty,
}

pub(super) struct Connector {
    hosts: Hosts,
    /// The connection options for each host, by its index.
    opts: Vec<Opts>,
    /// Incremented by [`Connector::forget_all`]. Connections opened before an increment are closed instead of leased.
    epoch: AtomicU64,
    /// Incremented when statements may have changed session state without marking their session as
    /// [`SessionState::Dirty`], for example because a trigger was not known yet. Sessions that were opened or last
    /// reset before the increment are reset before their next use.
    trust: AtomicU64,
    kills: Arc<Semaphore>,
    budget: Arc<ConnectionBudget>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(super) fn new(hosts: &Hosts, account: &config::Account, budget: Arc<ConnectionBudget>) -> Self {
        Self {
            budget,
            opts: hosts.options(&account.user, &account.password, finish),
            hosts: hosts.clone(),
            epoch: AtomicU64::new(0),
            trust: AtomicU64::new(0),
            kills: Arc::new(Semaphore::new(KILLS_PER_ACCOUNT_MAX_COUNT)),
        }
    }

    /// Marks all connections that the account's pool has opened so far, to any host, as lost, so that none is leased
    /// again, and calls [`Hosts::suspect`] for `host`. Called when a connection to `host` is lost, or can't be opened
    /// for another reason than that the host has too many connections.
    pub(super) fn forget_all(&self, host: &Host) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.hosts.suspect(host);
    }

    /// Causes all sessions of the account that are open now to be reset before their next use.
    pub(super) fn reset_all_sessions(&self) {
        self.trust.fetch_add(1, Ordering::Relaxed);
    }

    /// Spawns a task that kills a connection and its statement in MariaDB, over another connection; returns without
    /// waiting, and errors are only logged. Does nothing outside of a Tokio runtime, or if the connection's host was
    /// left (see `hosts`).
    pub(super) fn kill(&self, connection: &Connection) {
        let (id, host) = (connection.conn.id(), &connection.host);
        let is_left = host.left.as_ref().is_some_and(CancellationToken::is_cancelled);
        let Some(opts) = self.opts.get(host.index).filter(|_| !is_left).cloned() else {
            return;
        };
        let kills = Arc::clone(&self.kills);
        let kills_of_all = Arc::clone(&self.budget.kills);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let killed = tokio::time::timeout(KILL_TIMEOUT, async {
                let _permit = kills.acquire_owned().await;
                let _permit_of_all = kills_of_all.acquire_owned().await;
                let mut conn = Conn::new(opts).await?;
                conn.query_drop(format!("KILL CONNECTION {id}")).await?;
                conn.disconnect().await
            })
            .await;
            match killed {
                // 1094: the connection ended by itself in the meantime.
                Ok(Ok(())) => {}
                Ok(Err(mysql_async::Error::Server(error))) if error.code == 1094 => {}
                Ok(Err(error)) => tracing::warn!(%error, "a statement could not be killed"),
                Err(_) => tracing::warn!("killing a statement took too long"),
            }
        });
    }

    async fn open(&self) -> Result<Box<Connection>, mysql_async::Error> {
        let slot = self.budget.slot().await;
        let slot = slot.map_err(|error| mysql_async::Error::Other(Box::new(error)))?;
        let epoch = self.epoch.load(Ordering::Relaxed);
        let trusted = self.trust.load(Ordering::Relaxed);
        let (host, conn, Server { packet_max_bytes, positions }) = self.connect().await?;
        Ok(Box::new(Connection {
            conn,
            host,
            positions,
            statements: PreparedStatements::new(),
            schema: DefaultSchema::Unset,
            session: SessionState::Pristine,
            used_at: Instant::now(),
            epoch,
            trusted,
            packet_max_bytes,
            slot,
        }))
    }
}

/// Properties of the server, read once on each new connection.
struct Server {
    packet_max_bytes: usize,
    positions: Positions,
}

impl Connector {
    async fn server(&self, conn: &mut Conn) -> Result<Server, mysql_async::Error> {
        let query = "SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on', 'log_bin')";
        let found: Vec<(String, String)> = ask::all(conn.query_iter(query)).await?;
        let value = |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let positions = match self.hosts.purpose() {
            _ if value("wsrep_on") == Some("ON") => Positions::Galera,
            Purpose::Reading => Positions::Replica,
            Purpose::Serving if value("log_bin") == Some("ON") && self.hosts.has_replicas() => Positions::Primary,
            Purpose::Serving => Positions::None,
        };
        let packet_max_bytes = value("max_allowed_packet").and_then(|value| value.parse().ok());
        Ok(Server { packet_max_bytes: packet_max_bytes.unwrap_or(PACKET_MAX_BYTES), positions })
    }

    /// Connects to the serving host, or for [`Purpose::Reading`] to the next healthy replica. If the host is lost
    /// meanwhile, may try again, at most [`TRIES_MAX_COUNT`] times in all. If the last attempt fails, all open
    /// connections of the account, to any host, are discarded, unless the host refused the connection because it has
    /// too many.
    async fn connect(&self) -> Result<(Host, Conn, Server), mysql_async::Error> {
        let mut tries = 1;
        loop {
            let lost = || mysql_async::Error::Other(HostLost.into());
            let host = self.hosts.pick().await.ok_or_else(lost)?;
            let opts = self.opts.get(host.index).cloned().ok_or_else(lost)?;
            let opening = async {
                let mut conn = Conn::new(opts).await?;
                let server = self.server(&mut conn).await?;
                Ok((conn, server))
            };
            match self.hosts.on(&host, opening).await {
                Ok((conn, server)) => return Ok((host, conn, server)),
                Err(error) if means_lost(&error) && tries < TRIES_MAX_COUNT && self.hosts.suspect(&host) => tries += 1,
                Err(error) => {
                    if !has_too_many_connections(&error) {
                        self.forget_all(&host);
                    }
                    return Err(error);
                }
            }
        }
    }
}

impl managed::Manager for Connector {
    // A box, because the pool moves the connection several times for each request.
    type Type = Box<Connection>;
    type Error = mysql_async::Error;

    async fn create(&self) -> Result<Box<Connection>, mysql_async::Error> {
        // The future of `open` is boxed: it seldom runs, but every request's future would reserve space for it.
        Box::pin(self.open()).await
    }

    async fn recycle(&self, connection: &mut Box<Connection>, _: &Metrics) -> RecycleResult<mysql_async::Error> {
        if connection.epoch != self.epoch.load(Ordering::Relaxed)
            || connection.conn.is_disconnected()
            || !self.hosts.may_use(&connection.host)
        {
            return Err(RecycleError::message("the connection is lost"));
        }
        let trust = self.trust.load(Ordering::Relaxed);
        if connection.session == SessionState::Dirty || connection.trusted != trust {
            Box::pin(connection.reset()).await?;
            connection.trusted = trust;
        } else if connection.used_at.elapsed() > PING_AFTER_IDLE {
            Box::pin(connection.conn.ping()).await?;
        }
        connection.used_at = Instant::now();
        Ok(())
    }
}

impl Connection {
    /// Runs a statement as a prepared statement. The connection caches prepared statements by SQL text.
    pub(super) async fn run(
        &mut self,
        text: &str,
        params: Params,
    ) -> Result<QueryResult<'_, 'static, BinaryProtocol>, mysql_async::Error> {
        let statement = self.prepare(text, &params).await?;
        self.execute(statement, params).await
    }

    /// Returns the prepared statement for a SQL text, from the connection's cache or prepared now. Does not run the
    /// statement.
    pub(super) async fn prepare(&mut self, text: &str, params: &Params) -> Result<Statement, mysql_async::Error> {
        if packet_bytes(text, params, self.packet_max_bytes) > self.packet_max_bytes {
            return Err(mysql_async::Error::Other(Box::new(PacketTooLarge(self.packet_max_bytes))));
        }
        self.statements.get(&mut self.conn, text).await
    }

    /// Runs a statement from [`Connection::prepare`].
    pub(super) async fn execute(
        &mut self,
        statement: Statement,
        params: Params,
    ) -> Result<QueryResult<'_, 'static, BinaryProtocol>, mysql_async::Error> {
        self.conn.exec_iter(statement, params).await
    }

    /// Runs one of the program's own queries as a prepared statement, which is cached, and returns all rows.
    pub(super) async fn ask<T: FromRow + Send + 'static>(
        &mut self,
        text: &'static str,
        params: impl Into<Params> + Send,
    ) -> Result<Vec<T>, mysql_async::Error> {
        let statement = self.statements.get(&mut self.conn, text).await?;
        ask::all(self.conn.exec_iter(statement, params)).await
    }

    /// Runs a statement of this program as [`Connection::ask`] does, and fails if its rows don't fit the budget.
    pub(super) async fn ask_within<T: FromRow + Send + 'static>(
        &mut self,
        text: &'static str,
        params: impl Into<Params> + Send,
        budget: &mut DescriptionBudget,
    ) -> Result<Vec<T>, mysql_async::Error> {
        let statement = self.statements.get(&mut self.conn, text).await?;
        ask::all_within(self.conn.exec_iter(statement, params), budget).await
    }

    /// Unsets the default schema by logging in again (`COM_CHANGE_USER`), which also resets the session and drops its
    /// prepared statements.
    pub(super) async fn leave_schema(&mut self) -> Result<(), mysql_async::Error> {
        self.statements.forget();
        self.conn.change_user(ChangeUserOpts::new().with_db_name(None)).await?;
        self.session = SessionState::Pristine;
        self.schema = DefaultSchema::Unset;
        Ok(())
    }

    /// Resets the session: rolls back, drops temporary tables and prepared statements, and clears variables and locks.
    /// The default schema stays (MariaDB's manual, `COM_RESET_CONNECTION`).
    pub(super) async fn reset(&mut self) -> Result<(), mysql_async::Error> {
        self.statements.forget();
        self.conn.query_drop("ROLLBACK").await?;
        if !self.conn.reset().await? {
            // The driver skipped the reset, since it takes the server for too old.
            return Err(mysql_async::Error::Other(Box::new(NoReset)));
        }
        self.session = SessionState::Pristine;
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the server can't reset a session")]
struct NoReset;

/// Returns an upper bound, in bytes, for the largest packet that the driver sends for a statement with its parameters.
/// `packet_max_bytes` is MariaDB's `max_allowed_packet`.
fn packet_bytes(text: &str, params: &Params, packet_max_bytes: usize) -> usize {
    /// If all values together have more bytes than this, the driver sends each value in packets of its own, of at most
    /// this size.
    const ALONE_BYTES: usize = 16 * 1024 * 1024 - 1;
    /// An upper bound for the size of a packet's header.
    const HEAD_BYTES: usize = 32;
    const VALUE_HEAD_BYTES: usize = 12;
    let Params::Positional(values) = params else {
        return text.len() + HEAD_BYTES;
    };
    let size = |value: &Value| match value {
        Value::Bytes(bytes) => bytes.len() + VALUE_HEAD_BYTES,
        _ => 2 * VALUE_HEAD_BYTES,
    };
    let together: usize = values.iter().map(size).sum();
    let alone = together > ALONE_BYTES && packet_max_bytes > ALONE_BYTES;
    let largest = match alone {
        true => values.iter().map(size).max().unwrap_or_default(),
        false => together,
    };
    largest.max(text.len()) + HEAD_BYTES
}
