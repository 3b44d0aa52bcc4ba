//! What is measured: a MariaDB, and an origin on it.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Result;
use mysql_async::{Conn, prelude::Queryable as _};
use rustix::process::Signal;
use tokio::{task::JoinSet, time::interval};

use super::{SESSIONS, all};
use crate::{
    accounting, data,
    mariadb::{self, MariaDb},
    process::Started,
    selkie::{self, Endpoint},
};

/// The log as Selkie's private MariaDB keeps it.
const LOG: [&str; 6] = [
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--sync-binlog=1",
    "--server-id=1",
];
const ALLOW: (&str, &str) = ("SELKIE_WEBHOOK_ALLOW", "127.0.0.0/8");
const ORDERS: &str = "CREATE TABLE orders (
       id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
       customer INT UNSIGNED NOT NULL,
       status VARCHAR(20) NOT NULL,
       amount DECIMAL(10,2) NOT NULL,
       note VARCHAR(200) NOT NULL,
       KEY orders_customer (customer)
     ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";
pub(super) const ORDER: &str =
    "INSERT INTO orders (customer, status, amount, note) VALUES (?, 'open', '12.50', 'Leave it at the door')";

/// A MariaDB with the table `orders`, and `other` like it, and an origin.
pub(super) struct Subject {
    // Dropped in this order: the origin ends before MariaDB.
    process: Started,
    pub(super) endpoint: Endpoint,
    pub(super) admin: Conn,
    pub(super) mariadb: MariaDb,
    pub(super) binary: PathBuf,
}

impl Subject {
    pub(super) async fn start(binary: &Path, has_log: bool) -> Result<Self> {
        let mariadb = MariaDb::start_with(if has_log { &LOG } else { &[] }).await?;
        let mut admin = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
        admin.query_drop(format!("CREATE DATABASE {0}", data::DATABASE)).await?;
        admin.query_drop(format!("USE {0}", data::DATABASE)).await?;
        admin.query_drop(ORDERS).await?;
        admin.query_drop("CREATE TABLE other LIKE orders").await?;
        let settings = [("SELKIE_CHANGES", if has_log { "on" } else { "off" }), ALLOW];
        let (process, endpoint) = selkie::start_with(binary, &mariadb, &settings).await?;
        Ok(Self { process, endpoint, admin, mariadb, binary: binary.to_owned() })
    }

    /// Replaces the origin by one that has read nothing of the log.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.process.signal(Signal::KILL);
        let (process, address) = selkie::serve(&self.binary, &self.mariadb, &[ALLOW]).await?;
        self.process = process;
        self.endpoint.address = address;
        Ok(())
    }

    pub(super) async fn session(&self) -> Result<Conn> {
        Ok(Conn::new(mariadb::options(&self.mariadb.socket(), Some(data::DATABASE))).await?)
    }

    /// Inserts orders with these keys by several sessions, `per_second` of them together. Calls `note` with the key, and the
    /// times before and after each insert. Returns the inserts a second.
    pub(super) async fn insert_at(
        &self,
        per_second: usize,
        keys: Range<usize>,
        note: impl Fn(usize, Instant, Instant) + Clone + Send + 'static,
    ) -> Result<f64> {
        let mut sessions = JoinSet::new();
        let began = Instant::now();
        for session in 0..SESSIONS {
            let (mut connection, note) = (self.session().await?, note.clone());
            let keys = keys.clone().skip(session).step_by(SESSIONS);
            sessions.spawn(async move {
                let insert = "INSERT INTO orders VALUES (?, 7, 'open', '12.50', 'Leave it at the door')";
                let insert = connection.prep(insert).await?;
                let mut due = interval(Duration::from_secs(1) * u32::try_from(SESSIONS)? / u32::try_from(per_second)?);
                for id in keys {
                    due.tick().await;
                    let before = Instant::now();
                    connection.exec_drop(&insert, (id,)).await?;
                    note(id, before, Instant::now());
                }
                anyhow::Ok(())
            });
        }
        all(sessions).await?;
        Ok(keys.len() as f64 / began.elapsed().as_secs_f64())
    }

    pub(super) fn cpu(&self) -> Result<Duration> {
        accounting::cpu(self.process.pid())
    }

    pub(super) fn megabytes(&self) -> Result<f64> {
        Ok(accounting::resident(self.process.pid())? as f64 / 1e6)
    }
}

/// Returns a statement that inserts rows.
pub(super) fn many(table: &str, rows: usize) -> String {
    format!(
        "INSERT INTO {table} (customer, status, amount, note)
         SELECT 1 + seq % 100, 'open', seq % 9999 / 100, CONCAT('Leave it at the door, no. ', seq) FROM seq_1_to_{rows}"
    )
}
