//! Tests migrations that several origins start at once on nodes of a cluster, where no lock is shared and one
//! transaction of a conflict is rolled back. Each origin here has a different secret, and so a different name for its
//! lock.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::config::{Config, Sources};
use crate::database::connect::options;
use crate::database::typed_rows;
use crate::embedded::{Embedded, LockRole};
use crate::secret::InstallationSecret;
use crate::system::System;

const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    embedded: Embedded,
    systems: Vec<System>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    /// Starts an empty MariaDB, and systems (one per origin) that share only this MariaDB.
    async fn start(systems: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = |name: &str| {
            let mut sources = Sources { directory: directory.path().join(name), ..Sources::default() };
            let small = (8 << 20).to_string();
            sources.flags.insert("mariadb_buffer_pool_bytes", small);
            let config = Config::load(sources).unwrap();
            let secret = InstallationSecret::load_or_create(config.secret.as_ref(), &config.data_dir).unwrap();
            (config, secret)
        };
        let (first, secret) = config("0");
        let embedded = Embedded::attach_or_start(&first, &secret, LockRole::Service).await.unwrap();
        let system = |number: usize| {
            let (config, secret) = config(&number.to_string());
            System::new(embedded.address(), Arc::new(secret), &config)
        };
        Self { systems: (0..systems).map(system).collect(), embedded, _directory: directory }
    }

    async fn conn(&self) -> Conn {
        let address = self.embedded.address();
        Conn::new(options(&address.endpoint, &address.admin_user, &address.admin_password)).await.unwrap()
    }

    async fn stop(self) {
        for system in self.systems {
            system.close().await;
        }
        self.embedded.stop().await;
    }
}

async fn number(conn: &mut Conn, query: &str) -> u64 {
    typed_rows::first(conn.query_iter(query)).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn origins_that_start_at_once_without_a_common_lock_all_get_ready() {
    let fixture = Fixture::start(4).await;
    let starts = fixture.systems.iter().map(System::prepare);
    for started in futures_util::future::join_all(starts).await {
        started.unwrap();
    }
    let mut conn = fixture.conn().await;
    let keys = number(&mut conn, "SELECT COUNT(*) FROM selkie.signing_keys").await;
    let projects = number(&mut conn, "SELECT COUNT(*) FROM selkie.projects").await;
    let version = number(&mut conn, "SELECT MAX(version) FROM selkie.migrations").await;
    drop(conn);
    fixture.stop().await;
    assert_eq!((keys, projects), (1, 1));
    assert_eq!(version, u64::from(super::SCHEMA_VERSION));
}

/// Forces a deadlock: a trigger of the migration's INSERT locks row `a` and waits for row `b`, while another
/// transaction holds `b` and waits for `a`. MariaDB rolls back the transaction that has changed less.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_loses_a_deadlock_is_tried_again() {
    let fixture = Fixture::start(1).await;
    let (mut other, mut watcher) = (fixture.conn().await, fixture.conn().await);
    for statement in [
        "CREATE DATABASE selkie CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE TABLE selkie.key_changes (id TINYINT UNSIGNED NOT NULL PRIMARY KEY, version BIGINT UNSIGNED NOT NULL)",
        "CREATE DATABASE held",
        "CREATE TABLE held.locks (name CHAR(1) PRIMARY KEY, taken INT NOT NULL)",
        "INSERT INTO held.locks VALUES ('a', 0), ('b', 0)",
        "CREATE TABLE held.weight (n INT)",
        "CREATE TRIGGER selkie.conflict BEFORE INSERT ON selkie.key_changes FOR EACH ROW BEGIN \
         UPDATE held.locks SET taken = taken + 1 WHERE name = 'a'; \
         UPDATE held.locks SET taken = taken + 1 WHERE name = 'b'; END",
        "USE held",
        "START TRANSACTION",
        "INSERT INTO held.weight SELECT seq FROM seq_1_to_1000",
        "UPDATE held.locks SET taken = taken + 1 WHERE name = 'b'",
    ] {
        other.query_drop(statement).await.unwrap();
    }
    let system = fixture.systems[0].clone();
    let migration = tokio::spawn(async move { system.init().await });
    let blocked = async {
        let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
        while number(&mut watcher, waiting).await == 0 {
            // MariaDB refreshes this table only if nobody has read it for 0.1 s.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, blocked).await.unwrap();
    for statement in ["UPDATE held.locks SET taken = taken + 1 WHERE name = 'a'", "COMMIT"] {
        other.query_drop(statement).await.unwrap();
    }
    let migrated = migration.await.unwrap();
    let taken = number(&mut watcher, "SELECT SUM(taken) FROM held.locks").await;
    drop((other, watcher));
    fixture.stop().await;
    migrated.unwrap();
    // Two updates by the other transaction, and two by the one attempt of the migration that was not rolled back.
    assert_eq!(taken, 4);
}
