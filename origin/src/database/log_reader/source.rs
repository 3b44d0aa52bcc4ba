//! Opens readers of the log: on the current database host and under the admin account, since no account of a project
//! may read the log. Checks the settings of MariaDB that changes need.

use super::prepared::{Found, PreparedInLog};
use super::table_facts::CollationNames;
use super::{
    EVENT_MAX_BYTES, FollowedTables, HEARTBEAT, LONG_EVENT_MAX_BYTES, LogError, LogReader, PreparedBefore, ResyncReason,
};
use crate::database::errno;
use crate::database::hosts::Hosts;
use crate::database::log_position::LogPosition;
use crate::database::position::gtid;
use crate::database::typed_rows;
use mysql_async::prelude::Queryable as _;
use mysql_async::{BinlogStream, BinlogStreamRequest, Conn, Opts};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The time limit for opening a connection and for the statements before the log is streamed.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct LogSource {
    hosts: Hosts,
    opts: Vec<Opts>,
    /// With [`LONG_EVENT_MAX_BYTES`].
    long_opts: Vec<Opts>,
    /// One reader for long events, which takes twice their memory.
    pub(super) long: Arc<Semaphore>,
    pub(super) collations: Arc<OnceLock<HashMap<u16, CollationNames>>>,
    pub(super) prepared: Arc<PreparedInLog>,
}

impl std::fmt::Debug for LogSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LogSource").field(&self.hosts).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogExtent {
    /// Waits at the end of the log for the next transaction.
    Always,
    ToEnd,
}

/// Asked for each page, unlike [`SETTINGS`], which is slower.
const FACTS: &str = "SELECT @@GLOBAL.log_bin, @@GLOBAL.binlog_format, @@GLOBAL.binlog_row_image, \
     @@GLOBAL.binlog_row_metadata, @@GLOBAL.gtid_binlog_pos, @@GLOBAL.gtid_binlog_state";
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'binlog_row_image', \
     'binlog_row_metadata', 'sync_binlog', 'binlog_expire_logs_seconds', 'slave_connections_needed_for_purge', \
     'log_slave_updates', 'wsrep_on', 'wsrep_gtid_mode')";

/// The state of the log, as MariaDB's variables tell it.
#[derive(Clone, Debug)]
pub struct LogFacts {
    pub position: LogPosition,
    /// Has the domains of `gtid_binlog_state`, which are all domains that the log knows.
    state: LogPosition,
}

impl LogFacts {
    pub(in crate::database) async fn ask(conn: &mut Conn) -> Result<Self, LogError> {
        type Row = (String, String, String, String, String, String);
        let found: Option<Row> = typed_rows::first(conn.query_iter(FACTS)).await.map_err(|error| fault(&error))?;
        let (log_bin, format, image, metadata, position, state) =
            found.ok_or_else(|| LogError::Lost("MariaDB told nothing of its log".to_owned()))?;
        if let Some(lack) = lacks([&log_bin, &format, &image, &metadata]).next() {
            let restart = if lack == LOG_BIN { ", and restart it" } else { "" };
            return Err(LogError::Unavailable(format!("Set {lack} in MariaDB{restart}.").into()));
        }
        let mut known = LogPosition::default();
        for gtid in state.split(',').filter_map(gtid) {
            known.advance(gtid);
        }
        let position = LogPosition::parse(&position)
            .ok_or_else(|| LogError::Unavailable("MariaDB has more than 16 replication domains.".into()))?;
        Ok(Self { position, state: known })
    }
}

const LOG_BIN: &str = "log_bin";

/// Returns the settings that are not as they must be.
fn lacks([log_bin, format, image, metadata]: [&str; 4]) -> impl Iterator<Item = &'static str> {
    let is = |found: &str, value: &str| found.eq_ignore_ascii_case(value);
    let are = [
        (is(log_bin, "1") || is(log_bin, "ON"), LOG_BIN),
        (is(format, "ROW"), "binlog_format=ROW"),
        (is(image, "FULL") || is(image, "FULL_NODUP"), "binlog_row_image=FULL"),
        (is(metadata, "FULL"), "binlog_row_metadata=FULL"),
    ];
    are.into_iter().filter(|(is_set, _)| !is_set).map(|(_, setting)| setting)
}

/// MariaDB's settings of its log, by name.
#[derive(Clone, Debug)]
pub struct LogSettings(HashMap<String, String>);

impl LogSettings {
    async fn ask(conn: &mut Conn) -> Result<Self, LogError> {
        let found: Vec<(String, String)> =
            typed_rows::all(conn.query_iter(SETTINGS)).await.map_err(|error| fault(&error))?;
        Ok(Self(found.into_iter().collect()))
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns the settings without which the log can't serve changes, as they are written in MariaDB's configuration.
    pub fn lacks(&self) -> impl Iterator<Item = &'static str> {
        let is_node = self.get("wsrep_on") == "ON";
        // Else the nodes give different GTIDs to the same transaction.
        let of_nodes = [("log_slave_updates", "log_slave_updates=ON"), ("wsrep_gtid_mode", "wsrep_gtid_mode=ON")];
        let of_nodes = of_nodes.into_iter().filter(move |(name, _)| is_node && self.get(name) != "ON");
        let names = ["log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata"];
        lacks(names.map(|name| self.get(name))).chain(of_nodes.map(|(_, setting)| setting))
    }

    /// Whether the log has every committed transaction after a crash of the machine.
    pub fn is_durable(&self) -> bool {
        self.get("sync_binlog") == "1"
    }

    /// Returns after how many seconds MariaDB deletes a file of the log; `None` for never.
    pub fn expires_after(&self) -> Option<u64> {
        self.get("binlog_expire_logs_seconds").parse().ok().filter(|seconds| *seconds > 0)
    }

    /// Whether MariaDB deletes files of the log only while replicas are connected, as 11.4 and later do by default.
    pub fn expires_with_replicas_only(&self) -> bool {
        !matches!(self.get("slave_connections_needed_for_purge"), "" | "0")
    }
}

impl LogSource {
    pub fn new(hosts: &Hosts) -> Self {
        let address = hosts.address();
        let opts = |event_max_bytes: usize| {
            hosts.options(&address.admin_user, &address.admin_password, |options| {
                options
                    .max_allowed_packet(Some(event_max_bytes))
                    .stmt_cache_size(0)
                    .setup(vec!["SET NAMES utf8mb4, time_zone = '+00:00'"])
            })
        };
        Self {
            hosts: hosts.clone(),
            opts: opts(EVENT_MAX_BYTES),
            long_opts: opts(LONG_EVENT_MAX_BYTES),
            long: Arc::new(Semaphore::new(1)),
            collations: Arc::default(),
            prepared: Arc::default(),
        }
    }

    pub(super) async fn connect(&self) -> Result<Conn, LogError> {
        self.connect_by(&self.opts).await
    }

    async fn connect_by(&self, opts: &[Opts]) -> Result<Conn, LogError> {
        let lost = || LogError::Lost("no database host can be reached".to_owned());
        let host = self.hosts.pick().await.ok_or_else(lost)?;
        let opts = opts.get(host.index).cloned().ok_or_else(lost)?;
        self.hosts.on(&host, Conn::new(opts)).await.map_err(|error| fault(&error))
    }

    /// Returns the log's present position. Fails if the log can't serve changes.
    pub async fn facts(&self) -> Result<LogFacts, LogError> {
        in_time(async {
            let mut conn = self.connect().await?;
            let facts = LogFacts::ask(&mut conn).await?;
            conn.disconnect().await.map_err(|error| fault(&error))?;
            Ok(facts)
        })
        .await
    }

    pub async fn settings(&self) -> Result<LogSettings, LogError> {
        in_time(async {
            let mut conn = self.connect().await?;
            let settings = LogSettings::ask(&mut conn).await?;
            conn.disconnect().await.map_err(|error| fault(&error))?;
            Ok(settings)
        })
        .await
    }

    /// Reads the log from `from` on. Fails with [`LogError::Gone`] if the host does not have all transactions since.
    pub async fn open(
        &self,
        from: LogPosition,
        extent: LogExtent,
        followed: Arc<FollowedTables>,
    ) -> Result<LogReader, LogError> {
        let stream = self.stream(&from, extent).await?;
        Ok(LogReader::new(stream, from, followed, (PreparedBefore::Look(self.clone()), extent)))
    }

    /// Like [`Self::open`], up to the log's end and with [`LONG_EVENT_MAX_BYTES`].
    pub(super) async fn open_long(
        &self,
        from: LogPosition,
        followed: Arc<FollowedTables>,
    ) -> Result<LogReader, LogError> {
        let stream = self.stream_by(&self.long_opts, Some(&from), LogExtent::ToEnd).await?;
        Ok(LogReader::new(stream, from, followed, (PreparedBefore::Add(Found::default()), LogExtent::ToEnd)))
    }

    /// Reads the log from `from`, or from its begin, to its end, and adds what it says of prepared transactions to `found`.
    pub(super) async fn open_to_search(&self, from: Option<LogPosition>, found: Found) -> Result<LogReader, LogError> {
        let stream = self.stream_by(&self.long_opts, from.as_ref(), LogExtent::ToEnd).await?;
        let before = (PreparedBefore::Add(found), LogExtent::ToEnd);
        Ok(LogReader::new(stream, from.unwrap_or_default(), Arc::default(), before))
    }

    pub(super) async fn stream(&self, from: &LogPosition, extent: LogExtent) -> Result<BinlogStream, LogError> {
        self.stream_by(&self.opts, Some(from), extent).await
    }

    async fn stream_by(
        &self,
        opts: &[Opts],
        from: Option<&LogPosition>,
        extent: LogExtent,
    ) -> Result<BinlogStream, LogError> {
        in_time(async {
            let mut conn = self.connect_by(opts).await?;
            let facts = LogFacts::ask(&mut conn).await?;
            let mut settings = format!(
                "SET @mariadb_slave_capability = 4, @slave_gtid_strict_mode = 1, @master_heartbeat_period = {}",
                HEARTBEAT.as_nanos()
            );
            if let Some(from) = from {
                // For a domain that it does not know, MariaDB would begin at the start of the log.
                if from.domains().any(|domain| !facts.state.domains().any(|known| known == domain)) {
                    return Err(LogError::Gone(ResyncReason::UnknownPosition));
                }
                settings.push_str(&format!(", @slave_connect_state = '{from}'"));
            }
            conn.query_drop(settings).await.map_err(|error| fault(&error))?;
            // MariaDB ends the connection of a reader if another one has the same server number.
            let number = getrandom::u32().map_err(|error| LogError::Lost(error.to_string()))? | 1 << 31;
            let request = BinlogStreamRequest::new(number).with_pos(4);
            let request = if extent == LogExtent::ToEnd { request.with_non_blocking() } else { request };
            conn.get_binlog_stream(request).await.map_err(|error| fault(&error))
        })
        .await
    }
}

pub(super) async fn in_time<T>(asking: impl Future<Output = Result<T, LogError>>) -> Result<T, LogError> {
    let outcome = tokio::time::timeout(OPEN_TIMEOUT, asking).await;
    outcome.map_err(|_| LogError::Lost("MariaDB did not answer in time".to_owned()))?
}

/// The error number of MariaDB for a position that the log does not have, and for a log that is switched off.
const LOG_READ_ERROR: u16 = 1236;

pub(super) fn fault(error: &mysql_async::Error) -> LogError {
    match error {
        mysql_async::Error::Server(refused) if refused.code == LOG_READ_ERROR => {
            if refused.message.contains("purged") || refused.message.contains("Could not find GTID state") {
                LogError::Gone(ResyncReason::LogPurged)
            } else if refused.message.contains("not in the master's binlog") || refused.message.contains("GTID") {
                LogError::Gone(ResyncReason::UnknownPosition)
            } else {
                LogError::Lost(error.to_string())
            }
        }
        mysql_async::Error::Server(refused)
            if matches!(refused.code, errno::ACCESS_DENIED | errno::SPECIFIC_ACCESS_DENIED) =>
        {
            LogError::Unavailable("Grant REPLICATION SLAVE to the admin account in MariaDB.".into())
        }
        _ => LogError::Lost(error.to_string()),
    }
}

pub(super) fn is_too_long(error: &mysql_async::Error) -> bool {
    matches!(error, mysql_async::Error::Driver(mysql_async::DriverError::PacketTooLarge))
        || error.to_string().contains("larger than max_allowed_packet")
}
