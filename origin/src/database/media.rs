//! Typed functions over the media tables of the system schema: files, folders, the ledger (the keys of stored objects
//! to which no file refers) and resumable uploads. Media requests have their own connection pools, so that they never
//! wait for administration requests, and look-ups never wait for lists and writes. This module knows nothing of HTTP,
//! and handles only the keys of stored objects, never the objects.

mod error;
mod ledger;
mod list;
mod look;
mod object_key;
mod objects;
mod row;
mod uploader;
mod uploads;
mod write;

use std::future::Future;
use std::time::Duration;

use mysql_async::{Conn, OptsBuilder, PoolConstraints, PoolOpts, Value};
use shared::ident::ProjectName;

use super::error::HostLost;
use super::hosts::{HostPools, Hosts};
use super::retry::Retries;
use crate::project_quota::{ProjectQuota, QuotaGuard};

pub(crate) use self::error::exists;
pub use self::error::{TableError, WriteError};
pub(crate) use self::object_key::FOLDER;
pub use self::object_key::ObjectKey;
pub use self::row::{MediaRow, StoredObject};
pub use self::uploader::{ChangeableFiles, ReadableFiles, Uploader};
pub use self::uploads::UploadRow;
pub use self::write::{FinishedUpload, NewRow, NewRows, Written};

/// The maximum number of connections to one MariaDB host in each of the two pools: one pool for look-ups of files, one
/// for lists and writes. A look-up takes well under 1 ms, so four connections serve thousands a second.
pub(crate) const CONNECTIONS_MAX_COUNT: usize = 4;

/// The maximum number of connections in each pool that one project may use at the same time. Sweeps and other
/// work of the installation itself have no share.
pub(crate) const CONNECTIONS_PER_PROJECT_MAX_COUNT: usize = 2;

const IDLE_TTL: Duration = Duration::from_secs(120);

/// The time limit for one statement or transaction, usually with the wait for its connection. Longer than MariaDB's
/// limits for one statement (see [`SESSION`]), so that MariaDB's error usually arrives first.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum number of object keys in one statement. Functions that get a longer list split the list.
const KEYS_MAX_COUNT: usize = 500;

/// Session settings of each connection: strict SQL mode, UTC, and limits in seconds on lock waits and statements.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
     time_zone = '+00:00', autocommit = 1, lock_wait_timeout = 10, innodb_lock_wait_timeout = 10, \
     max_statement_time = 15";

/// The maximum number of runs of a statement or transaction that fails because of a deadlock or a concurrent change
/// ([`TableError::Contended`]), and the pauses between the runs.
const RETRIES: Retries = Retries { tries: 6, pause: Duration::from_millis(5) };

/// Access to the media tables of the system schema. Clones share their connections.
#[derive(Clone, Debug)]
pub struct MediaTable {
    lookups: Connections,
    others: Connections,
    connect_timeout: Duration,
}

#[derive(Clone, Debug)]
struct Connections {
    pool: HostPools,
    shares: ProjectQuota,
}

impl Connections {
    fn new(hosts: &Hosts, finish: impl Fn(OptsBuilder) -> OptsBuilder) -> Self {
        Self {
            pool: HostPools::new(hosts, finish),
            shares: ProjectQuota::new(CONNECTIONS_MAX_COUNT as u64, CONNECTIONS_PER_PROJECT_MAX_COUNT as u64),
        }
    }
}

/// A pooled connection, and the share of a project that it takes.
struct ProjectConn {
    // Dropped before `_share`: the connection must be back in the pool when the next request of the project gets the
    // share.
    conn: Conn,
    _share: Option<QuotaGuard>,
}

impl MediaTable {
    /// Prepares the pools without connecting. `connect_timeout` limits the total time that a request waits for its
    /// project's share, for a free connection, and for the opening of a connection.
    pub fn new(hosts: &Hosts, connect_timeout: Duration) -> Self {
        let pool_options = PoolOpts::default()
            .with_constraints(PoolConstraints::new(0, CONNECTIONS_MAX_COUNT).unwrap_or_default())
            .with_inactive_connection_ttl(IDLE_TTL)
            // No statement here changes session state, so the pool need not reset it.
            .with_reset_connection(false);
        let finish = |options: OptsBuilder| {
            options
                // With this option, `affected_rows` counts every row that an UPDATE found, even if
                // the UPDATE changed nothing in it.
                .client_found_rows(true)
                .setup(vec![SESSION])
                .pool_opts(pool_options.clone())
        };
        Self { lookups: Connections::new(hosts, finish), others: Connections::new(hosts, finish), connect_timeout }
    }

    /// Closes the connections, waiting one second at most.
    pub async fn close(self) {
        let closed =
            futures_util::future::join(self.lookups.pool.clone().disconnect(), self.others.pool.clone().disconnect());
        let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
    }

    /// Returns a connection for any work but look-ups, which counts against the share of `project`. `None` is for work
    /// of the installation itself, which has no share. Fails with [`TableError::TimedOut`] after `connect_timeout`, or
    /// with the error of connecting.
    async fn conn_of(&self, project: Option<&ProjectName>) -> Result<ProjectConn, TableError> {
        self.lend(&self.others, project).await
    }

    /// Returns a connection for a project's look-up of a single row by an index, which counts against the project's
    /// share of the connections for look-ups. Fails with [`TableError::TimedOut`] after `connect_timeout`, or with the
    /// error of connecting.
    async fn lookup_conn(&self, project: &ProjectName) -> Result<ProjectConn, TableError> {
        self.lend(&self.lookups, Some(project)).await
    }

    async fn lend(&self, of: &Connections, project: Option<&ProjectName>) -> Result<ProjectConn, TableError> {
        let lent = async {
            let share = match project {
                Some(project) => Some(of.shares.take(project, 1).await),
                None => None,
            };
            Ok(ProjectConn { conn: of.pool.get_conn().await?, _share: share })
        };
        let lent = tokio::time::timeout(self.connect_timeout, lent).await;
        lent.unwrap_or(Err(TableError::TimedOut))
    }

    /// Runs `attempt`, and runs it again after [`TableError::Contended`], up to the limits in [`RETRIES`]. Each run may
    /// take [`EXCHANGE_TIMEOUT`].
    async fn retrying<T, E, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, E>
    where
        E: From<TableError> + error::Retry,
        F: Future<Output = Result<T, E>>,
    {
        RETRIES.run(E::is_worth_retrying, || self.within(attempt())).await
    }

    /// Waits for the result of a statement or transaction. Fails with [`TableError::TimedOut`] after
    /// [`EXCHANGE_TIMEOUT`], and with [`TableError::Unavailable`] at once if the host is left (see `database::hosts`).
    async fn within<T, E: From<TableError>>(&self, exchange: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::select! {
            biased;
            outcome = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange) => {
                outcome.unwrap_or_else(|_| Err(TableError::TimedOut.into()))
            }
            () = self.others.pool.left() => Err(TableError::Unavailable(HostLost.into()).into()),
        }
    }
}

/// Returns `?, ?, ?`, with `count` placeholders.
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn bound(keys: &[ObjectKey]) -> Vec<Value> {
    keys.iter().map(|key| key.as_uuid().into()).collect()
}
