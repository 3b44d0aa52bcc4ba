//! One connection to MariaDB: its options, its session's state, and how it is opened, reset and killed. Knows nothing
//! of requests or queues.

use super::description_budget::DescriptionBudget;
use super::errno;
use super::error::{DbError, HostLost, means_lost};
use super::hosts::{Host, HostRole, Hosts, TRIES_MAX_COUNT};
use super::pool::{ConnectionBudget, Slot};
use super::position::Positions;
use super::prepared_statements::PreparedStatements;
use crate::config;
use crate::database::typed_rows;
use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{
    BinaryProtocol, ChangeUserOpts, Conn, DriverError, Error, IoError, Opts, OptsBuilder, Params, QueryResult,
    Statement, Value,
};
use shared::error::ErrorCode;
use shared::ident::DatabaseName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// A connection is pinged before a lease if its last lease began longer ago than this, unless its session is reset.
const PING_AFTER_IDLE: Duration = Duration::from_secs(20);
pub(crate) const KILLS_PER_ACCOUNT_MAX_COUNT: usize = 4;
/// The time limit for a KILL, with the wait for a permit and the opening of a connection.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest packet that the driver sends or accepts, and so the largest row.
const PACKET_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Times are in seconds, sizes in bytes. The query on a derived table sets FOUND_ROWS() to 1, since a reset keeps the
/// value of FOUND_ROWS().
const SESSION_SETUP: &str = "SET NAMES utf8mb4, time_zone = '+00:00', autocommit = 1, \
     sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION', \
     tx_isolation = IF(@@GLOBAL.tx_isolation = 'REPEATABLE-READ' AND @@binlog_format <> 'STATEMENT', 'READ-COMMITTED', \
     @@GLOBAL.tx_isolation), \
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

pub(super) struct Connection {
    pub(super) conn: Conn,
    statements: PreparedStatements,
    pub(super) schema: DefaultSchema,
    pub(super) session: SessionState,
    used_at: Instant,
    epoch: u64,
    trusted: u64,
    /// MariaDB's `max_allowed_packet`. MariaDB closes the connection when it gets a larger packet.
    packet_max_bytes: usize,
    pub(super) slot: Slot,
    pub(super) host: Host,
    pub(super) positions: Positions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefaultSchema {
    Unset,
    Set(DatabaseName),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    Pristine,
    /// The session has state that only a caller's SQL could read, but no statement of this program: a reset is needed
    /// only before a caller's SQL.
    Used,
    Dirty,
}

pub(super) struct Connector {
    hosts: Hosts,
    opts: Vec<Opts>,
    /// A number that grows when the open connections are to be closed instead of leased.
    epoch: AtomicU64,
    /// A number that grows when statements may have changed session state without marking their session as dirty, for
    /// example because a trigger was not known yet. Sessions from before are reset before their next use.
    trust: AtomicU64,
    kills: Arc<Semaphore>,
    budget: Arc<ConnectionBudget>,
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

    /// Discards all open connections of the account, since `host` was lost or can't be reached.
    pub(super) fn forget_all(&self, host: &Host) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.hosts.suspect(host);
    }

    pub(super) fn reset_all_sessions(&self) {
        self.trust.fetch_add(1, Ordering::Relaxed);
    }

    /// Kills the connection in MariaDB, in a task of its own. Errors are only logged.
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
                // The connection ended by itself in the meantime.
                Ok(Ok(())) => {}
                Ok(Err(mysql_async::Error::Server(error))) if error.code == errno::NO_SUCH_THREAD => {}
                Ok(Err(error)) => tracing::warn!(%error, "a statement could not be killed"),
                Err(_) => tracing::warn!("killing a statement took too long"),
            }
        });
    }

    async fn open(&self) -> Result<Box<Connection>, DbError> {
        let slot = self.budget.slot().await?;
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

struct Server {
    packet_max_bytes: usize,
    positions: Positions,
}

impl Connector {
    async fn server(&self, conn: &mut Conn) -> Result<Server, mysql_async::Error> {
        let query = "SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on', 'log_bin')";
        let found: Vec<(String, String)> = typed_rows::all(conn.query_iter(query)).await?;
        let value = |name: &str| found.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let positions = match self.hosts.purpose() {
            _ if value("wsrep_on") == Some("ON") => Positions::Galera,
            HostRole::Reading => Positions::Replica,
            HostRole::Serving if value("log_bin") == Some("ON") && self.hosts.has_replicas() => Positions::Primary,
            HostRole::Serving => Positions::None,
        };
        let packet_max_bytes = value("max_allowed_packet").and_then(|value| value.parse().ok());
        Ok(Server { packet_max_bytes: packet_max_bytes.unwrap_or(PACKET_MAX_BYTES), positions })
    }

    /// Opens a connection. If all attempts fail, discards the account's connections, unless the host has too many.
    async fn connect(&self) -> Result<(Host, Conn, Server), DbError> {
        let mut tries = 1;
        loop {
            let lost = || DbError::Unavailable(HostLost.to_string().into());
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
                    let error = DbError::from(error);
                    if error.code() != Some(ErrorCode::Overloaded) {
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
    type Error = DbError;

    async fn create(&self) -> Result<Box<Connection>, DbError> {
        // The future of `open` is boxed: it seldom runs, but every request's future would reserve space for it.
        Box::pin(self.open()).await
    }

    async fn recycle(&self, connection: &mut Box<Connection>, _: &Metrics) -> RecycleResult<DbError> {
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
            Box::pin(connection.conn.ping()).await.map_err(DbError::from)?;
        }
        connection.used_at = Instant::now();
        Ok(())
    }
}

impl Connection {
    pub(super) async fn run(
        &mut self,
        text: &str,
        params: Params,
    ) -> Result<QueryResult<'_, 'static, BinaryProtocol>, DbError> {
        let statement = self.prepare(text, &params).await?;
        self.execute(statement, params).await
    }

    pub(super) async fn prepare(&mut self, text: &str, params: &Params) -> Result<Statement, DbError> {
        if packet_bytes(text, params, self.packet_max_bytes) > self.packet_max_bytes {
            return Err(DbError::PacketTooLarge(self.packet_max_bytes));
        }
        Ok(self.statements.get(&mut self.conn, text).await?)
    }

    /// Prepares a statement. `is_wide` is whether its result may have more columns than MariaDB counts.
    pub(super) async fn prepare_checked(
        &mut self,
        text: &str,
        params: &Params,
        is_wide: bool,
    ) -> Result<Statement, DbError> {
        let prepared = self.prepare(text, params).await?;
        if is_wide {
            self.check_columns().await?;
        }
        Ok(prepared)
    }

    /// Fails if the driver has not read all that MariaDB sent when it prepared a statement: MariaDB describes each column
    /// of the result, but tells their number in 16 bits.
    async fn check_columns(&mut self) -> Result<(), DbError> {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
        let asked = async {
            let mut result = self.conn.query_iter("SELECT 'in step'").await?;
            let is_answer = result.next().await?.is_some_and(|row| row.as_ref(0) == Some(&Value::from("in step")));
            if is_answer {
                result.drop_result().await?;
            }
            Ok(is_answer)
        };
        match asked.await {
            Ok(true) => Ok(()),
            Err(error @ (Error::Server(_) | Error::Driver(DriverError::ConnectionClosed))) => Err(error.into()),
            Err(Error::Io(IoError::Io(error)))
                if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected) =>
            {
                Err(Error::from(error).into())
            }
            Ok(false) | Err(_) => Err(DbError::TooManyColumns),
        }
    }

    pub(super) async fn execute(
        &mut self,
        statement: Statement,
        params: Params,
    ) -> Result<QueryResult<'_, 'static, BinaryProtocol>, DbError> {
        match self.conn.exec_iter(&statement, params).await {
            Ok(result) => Ok(result),
            Err(error) => {
                self.statements.drop_failed(&statement);
                Err(error.into())
            }
        }
    }

    pub(super) async fn ask<T: FromRow + Send + 'static>(
        &mut self,
        text: &'static str,
        params: impl Into<Params> + Send,
    ) -> Result<Vec<T>, DbError> {
        let statement = self.statements.get(&mut self.conn, text).await?;
        Ok(typed_rows::all(self.conn.exec_iter(statement, params)).await?)
    }

    pub(super) async fn ask_within<T: FromRow + Send + 'static>(
        &mut self,
        text: &'static str,
        params: impl Into<Params> + Send,
        budget: &mut DescriptionBudget,
    ) -> Result<Vec<T>, DbError> {
        let statement = self.statements.get(&mut self.conn, text).await?;
        typed_rows::all_within(self.conn.exec_iter(statement, params), budget).await
    }

    /// Logs in again (`COM_CHANGE_USER`), which also resets the session and drops its prepared statements.
    pub(super) async fn leave_schema(&mut self) -> Result<(), DbError> {
        self.statements.forget();
        self.conn.change_user(ChangeUserOpts::new().with_db_name(None)).await?;
        self.session = SessionState::Pristine;
        self.schema = DefaultSchema::Unset;
        Ok(())
    }

    /// Resets the session. The default schema stays (MariaDB's manual, `COM_RESET_CONNECTION`).
    pub(super) async fn reset(&mut self) -> Result<(), DbError> {
        self.statements.forget();
        self.conn.query_drop("ROLLBACK").await?;
        if !self.conn.reset().await? {
            // The driver skipped the reset, since it takes the server for too old.
            return Err(DbError::Unavailable("the server can't reset a session".into()));
        }
        self.session = SessionState::Pristine;
        Ok(())
    }
}

/// Returns an upper bound, in bytes, of the largest packet that the statement needs.
fn packet_bytes(text: &str, params: &Params, packet_max_bytes: usize) -> usize {
    /// The size of all values from which each value gets packets of its own, of at most this size.
    const ALONE_BYTES: usize = 16 * 1024 * 1024 - 1;
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
