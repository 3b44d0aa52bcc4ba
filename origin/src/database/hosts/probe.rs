//! Probes a host: whether it answers, and whether it can be used. The probe uses only statements
//! that MariaDB answers even on a cluster node that is not ready.

use super::{HostRole, SharedHosts};
use crate::database::typed_rows;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, Row};
use std::sync::Weak;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);
/// The time limit for an answer. A host that does not answer in time counts as lost.
const TIMEOUT: Duration = Duration::from_secs(2);
const LAG_MAX_SECONDS: u64 = 5;

/// The `wsrep_local_state` of a node that has all of the cluster's writes.
const SYNCED: &str = "4";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Well,
    /// The host answers, but may lack data: a node that is not synced, or a replica with too much or an unknown lag.
    Behind,
    Lost(Lost),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    NoAnswer,
    /// The node is outside the primary component or still starting (`wsrep_ready` is `OFF`).
    NotReady,
    ReadOnly,
    NoReplica,
}

impl Health {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Behind => "behind",
            Self::Lost(Lost::NoAnswer) => "not answering",
            Self::Lost(Lost::NotReady) => "not ready (wsrep_ready is OFF)",
            Self::Lost(Lost::ReadOnly) => "read-only",
            Self::Lost(Lost::NoReplica) => "not replicating",
        }
    }
}

#[derive(Clone, Debug)]
pub struct HostFacts {
    pub is_galera: bool,
    /// The value of `wsrep_cluster_status`; empty if MariaDB does not report it.
    pub cluster_status: String,
    pub binlog_format: String,
    pub is_well: bool,
    pub state: &'static str,
}

pub(super) async fn facts(options: Opts, purpose: HostRole) -> Result<HostFacts, String> {
    let asking = async {
        let mut conn = Conn::new(options).await?;
        let health = ask_health(&mut conn, purpose).await?;
        let query = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'binlog_format')";
        let variables: Vec<(String, String)> = typed_rows::all(conn.query_iter(query)).await?;
        let query = "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_status'";
        let status: Option<(String, String)> = typed_rows::first(conn.query_iter(query)).await?;
        conn.disconnect().await?;
        let value = |name: &str| variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        Ok::<_, mysql_async::Error>(HostFacts {
            is_galera: value("wsrep_on").is_some_and(|value| value == "ON"),
            cluster_status: status.map(|(_, value)| value).unwrap_or_default(),
            binlog_format: value("binlog_format").unwrap_or_default(),
            is_well: health == Health::Well,
            state: health.words(),
        })
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("it is silent".to_owned()),
    }
}

/// Probes a host until `hosts` are dropped.
pub(super) async fn always(hosts: Weak<SharedHosts>, index: usize, options: Opts) {
    let mut conn = None;
    loop {
        let Some(purpose) = hosts.upgrade().map(|inner| inner.purpose) else {
            return;
        };
        let probed = tokio::time::timeout(TIMEOUT, probe(&mut conn, &options, purpose)).await;
        let health = match probed {
            Ok(Ok(health)) => health,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a database host does not answer");
                conn = None;
                Health::Lost(Lost::NoAnswer)
            }
            Err(_) => {
                conn = None;
                Health::Lost(Lost::NoAnswer)
            }
        };
        let Some(inner) = hosts.upgrade() else {
            return;
        };
        inner.report(index, health);
        let pause = tokio::time::timeout(INTERVAL, inner.wake[index].notified());
        let _ = pause.await;
    }
}

async fn probe(conn: &mut Option<Conn>, options: &Opts, purpose: HostRole) -> mysql_async::Result<Health> {
    if let Some(open) = conn
        && let Ok(health) = ask_health(open, purpose).await
    {
        return Ok(health);
    }
    // The server may have closed the idle connection: the host is lost only if a new connection fails too.
    *conn = None;
    let open = conn.insert(Conn::new(options.clone()).await?);
    ask_health(open, purpose).await
}

async fn ask_health(conn: &mut Conn, purpose: HostRole) -> mysql_async::Result<Health> {
    let statement = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on')";
    let variables: Vec<(String, String)> = typed_rows::all(conn.query_iter(statement)).await?;
    let is_on = |name: &str| variables.iter().any(|(found, value)| found == name && value != "OFF" && value != "0");
    if is_on("wsrep_on") {
        let statement = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state')";
        let status: Vec<(String, String)> = typed_rows::all(conn.query_iter(statement)).await?;
        let is = |name: &str, wanted: &str| status.iter().any(|(found, value)| found == name && value == wanted);
        return Ok(match () {
            () if !is("wsrep_ready", "ON") => Health::Lost(Lost::NotReady),
            () if !is("wsrep_local_state", SYNCED) => Health::Behind,
            () if purpose == HostRole::Serving && is_on("read_only") => Health::Lost(Lost::ReadOnly),
            () => Health::Well,
        });
    }
    match purpose {
        HostRole::Serving if is_on("read_only") => Ok(Health::Lost(Lost::ReadOnly)),
        HostRole::Serving => Ok(Health::Well),
        HostRole::Reading => {
            let row: Option<Row> = typed_rows::first(conn.query_iter("SHOW SLAVE STATUS")).await?;
            Ok(row.map_or(Health::Lost(Lost::NoReplica), |row| replication(&row)))
        }
    }
}

fn replication(row: &Row) -> Health {
    let text = |name: &str| row.get_opt::<Option<String>, _>(name).and_then(Result::ok).flatten();
    let runs = |name: &str| text(name).is_some_and(|value| value == "Yes");
    if !runs("Slave_SQL_Running") || !runs("Slave_IO_Running") {
        return Health::Lost(Lost::NoReplica);
    }
    match text("Seconds_Behind_Master").and_then(|lag| lag.parse::<u64>().ok()) {
        Some(lag) if lag <= LAG_MAX_SECONDS => Health::Well,
        _ => Health::Behind,
    }
}
