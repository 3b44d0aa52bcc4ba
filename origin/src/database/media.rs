//! The media tables of the system schema: files and folders, the ledger of objects that nothing names, and uploads that
//! can be resumed. Typed functions over static SQL, one file a subject.
//!
//! Runs on a few connections of its own under the admin account, so that no reader of files waits behind administration.
//! Look-ups have some for themselves, so that they wait for no list and no write either.
//! Knows nothing of HTTP, and never touches an object: only their keys.

mod error;
mod ledger;
mod list;
mod look;
mod object_key;
mod row;
mod uploads;
mod write;

use std::future::Future;
use std::time::Duration;

use mysql_async::{Conn, OptsBuilder, Pool, PoolConstraints, PoolOpts, Value};
use shared::ident::ProjectName;

use super::connect::options;
use super::retry::Retries;
use crate::address::DatabaseAddress;
use crate::shares::{Guard, Shares};

pub(crate) use self::error::exists;
pub use self::error::{TableError, WriteError};
pub(crate) use self::object_key::FOLDER;
pub use self::object_key::ObjectKey;
pub use self::row::{MediaRow, StoredObject};
pub use self::uploads::UploadRow;
pub use self::write::{FinishedUpload, NewRow, NewRows, Written};

/// Connections of one origin for look-ups of media, and as many for lists and writes. A look-up takes well under a
/// millisecond, so that four serve thousands a second.
pub(crate) const CONNECTIONS_MAX_COUNT: usize = 4;

/// Connections of either kind that one project may have at once.
pub(crate) const CONNECTIONS_PER_PROJECT_MAX_COUNT: usize = 2;

/// How long an idle connection is kept.
const IDLE_TTL: Duration = Duration::from_secs(120);

/// How long one statement, or one transaction, may take. Longer than MariaDB lets any statement run or wait, so that
/// its own answer comes first.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Keys of one statement.
const KEYS_MAX_COUNT: usize = 500;

/// What each connection begins with: times as numbers, faults as faults, no endless waits.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
     time_zone = '+00:00', autocommit = 1, lock_wait_timeout = 10, innodb_lock_wait_timeout = 10, \
     max_statement_time = 15";

/// For a transaction that MariaDB chose to break up, since another stood against it.
const RETRIES: Retries = Retries { tries: 6, pause: Duration::from_millis(5) };

/// The media tables. Clones are cheap and share their connections.
#[derive(Clone, Debug)]
pub struct MediaTable {
    lookups: Connections,
    others: Connections,
    connect_timeout: Duration,
}

/// Connections, and the projects that have them.
#[derive(Clone, Debug)]
struct Connections {
    pool: Pool,
    shares: Shares,
}

impl Connections {
    fn new(options: OptsBuilder) -> Self {
        Self {
            pool: Pool::new(options),
            shares: Shares::new(CONNECTIONS_MAX_COUNT as u64, CONNECTIONS_PER_PROJECT_MAX_COUNT as u64),
        }
    }
}

/// A connection out of a project's share.
struct Lent {
    // Dropped first: the connection is back in the pool when the next one may have it.
    conn: Conn,
    _share: Guard,
}

impl MediaTable {
    /// Prepares the connections; nothing is contacted yet. `connect_timeout` bounds the opening of a connection, and the
    /// wait for a free one.
    #[must_use]
    pub fn new(address: &DatabaseAddress, connect_timeout: Duration) -> Self {
        let pool_options = PoolOpts::default()
            .with_constraints(PoolConstraints::new(0, CONNECTIONS_MAX_COUNT).unwrap_or_default())
            .with_inactive_connection_ttl(IDLE_TTL)
            // No statement of ours leaves anything behind in a session.
            .with_reset_connection(false);
        let options = options(address, &address.admin_user, &address.admin_password)
            // A row that is set to what it held counts as found.
            .client_found_rows(true)
            .setup(vec![SESSION])
            .pool_opts(pool_options);
        Self { lookups: Connections::new(options.clone()), others: Connections::new(options), connect_timeout }
    }

    /// Closes the connections; within a second, or not at all.
    pub async fn close(self) {
        let closed = futures_util::future::join(self.lookups.pool.disconnect(), self.others.pool.disconnect());
        let _ = tokio::time::timeout(Duration::from_secs(1), closed).await;
    }

    /// A connection for a short statement that is no project's.
    async fn conn(&self) -> Result<Conn, TableError> {
        match tokio::time::timeout(self.connect_timeout, self.others.pool.get_conn()).await {
            Ok(conn) => Ok(conn?),
            Err(_) => Err(TableError::TimedOut),
        }
    }

    /// A connection for a list or a write of a project.
    async fn conn_of(&self, project: &ProjectName) -> Result<Lent, TableError> {
        self.lend(&self.others, project).await
    }

    /// A connection for a look-up of a project, by an index.
    async fn lookup_conn(&self, project: &ProjectName) -> Result<Lent, TableError> {
        self.lend(&self.lookups, project).await
    }

    async fn lend(&self, of: &Connections, project: &ProjectName) -> Result<Lent, TableError> {
        let lent = async {
            let share = of.shares.take(project, 1).await;
            Ok(Lent { conn: of.pool.get_conn().await?, _share: share })
        };
        let lent = tokio::time::timeout(self.connect_timeout, lent).await;
        lent.unwrap_or(Err(TableError::TimedOut))
    }

    /// Tries `deed` again, a few times, while MariaDB breaks it up in favour of another.
    async fn retrying<T, E, F>(&self, mut deed: impl FnMut() -> F) -> Result<T, E>
    where
        E: From<TableError> + error::Retry,
        F: Future<Output = Result<T, E>>,
    {
        RETRIES.run(E::is_worth_retrying, || within(deed())).await
    }
}

/// Runs one exchange with MariaDB within the time-out.
async fn within<T, E: From<TableError>>(exchange: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    tokio::time::timeout(EXCHANGE_TIMEOUT, exchange).await.unwrap_or_else(|_| Err(TableError::TimedOut.into()))
}

/// `?, ?, ?`.
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn bound(keys: &[ObjectKey]) -> Vec<Value> {
    keys.iter().map(|key| key.as_uuid().into()).collect()
}
