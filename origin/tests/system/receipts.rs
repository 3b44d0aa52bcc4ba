//! Idempotency receipts: the sweep of old ones.

use mysql_async::prelude::Queryable;
use origin::database::{PoolSettings, Pools, idempotency};
use origin::system::System;
use origin::system::projects::NameClaim;
use shared::ident::{DatabaseName, ProjectName};

use crate::server::{Installation, Server};

const DAY_SECONDS: u64 = 24 * 60 * 60;

fn pools(installation: &Installation, system: &System) -> Pools {
    let config = &installation.config;
    let settings = PoolSettings {
        size: config.pool_size,
        total: config.pool_total,
        queue: config.pool_queue,
        wait_timeout: config.pool_wait_timeout,
        connect_timeout: config.connect_timeout,
        query_timeout: config.query_timeout,
    };
    Pools::new(settings, system.hosts.clone(), system.projects.account_source())
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_older_than_a_day_are_swept_and_others_stay() {
    let server = Server::start(None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let project = ProjectName::parse("swept-1").unwrap();
    let other = ProjectName::parse("other").unwrap();
    for name in [&project, &other] {
        let made = system.projects.create(name, NameClaim::Refuse).await;
        made.unwrap();
    }
    let mut root = server.root().await;
    for (owner, name) in [
        (&project, "plain"),
        (&project, "Odd `name"),
        (&project, "swept-1_own"),
        (&project, "strange"),
        (&project, "without"),
        (&other, "others"),
    ] {
        let database = DatabaseName::parse(name).unwrap();
        let made = system.projects.create_database(owner, &database).await;
        made.unwrap();
    }
    root.query_drop("CREATE DATABASE nobodys").await.unwrap();
    root.query_drop("CREATE TABLE strange.selkie_receipts (id INT)").await.unwrap();
    let filled = ["plain", "Odd ``name", "swept-1_own", "others", "nobodys"];
    for name in filled {
        root.query_drop(format!(
            "CREATE TABLE `{name}`.selkie_receipts (key_hash BINARY(32) PRIMARY KEY, \
             fingerprint BINARY(32), created_at BIGINT UNSIGNED, answer LONGBLOB)"
        ))
        .await
        .unwrap();
        // MariaDB looks for the tables `seq_…` in the selected database.
        root.query_drop(format!("USE `{name}`")).await.unwrap();
        for (age, odd) in [(DAY_SECONDS + 1, 0), (DAY_SECONDS - 60, 1)] {
            root.query_drop(format!(
                "INSERT INTO `{name}`.selkie_receipts SELECT UNHEX(SHA2(seq, 256)), \
                 UNHEX(SHA2('', 256)), UNIX_TIMESTAMP() - {age}, '1' \
                 FROM seq_1_to_1400 WHERE seq % 2 = {odd}"
            ))
            .await
            .unwrap();
        }
    }
    let pools = pools(&installation, &system);
    // More than one batch in each database, and only old receipts.
    assert_eq!(idempotency::sweep(&pools, &project).await.unwrap(), 3 * 700);
    assert_eq!(idempotency::sweep(&pools, &project).await.unwrap(), 0);
    for name in filled {
        let left: Option<u64> =
            root.query_first(format!("SELECT COUNT(*) FROM `{name}`.selkie_receipts")).await.unwrap();
        let swept = !["others", "nobodys"].contains(&name);
        assert_eq!(left, Some(if swept { 700 } else { 1_400 }), "{name}");
    }
}

/// If the sweep had the administrator's rights, a trigger on the table of receipts, or a view with its name, would run
/// the project's code with these rights.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_project_put_behind_the_name_runs_with_its_own_rights() {
    let server = Server::start(None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let project = ProjectName::parse("sly").unwrap();
    system.projects.create(&project, NameClaim::Refuse).await.unwrap();
    let account = system.projects.account(&project, shared::key::Access::Full);
    let mut conn = server.login(&account).await.unwrap();
    for statement in [
        "CREATE DATABASE sly_a",
        "CREATE TABLE sly_a.seen (who TEXT)",
        "CREATE TABLE sly_a.selkie_receipts (key_hash BINARY(32) PRIMARY KEY, \
         created_at BIGINT UNSIGNED)",
        "CREATE TRIGGER sly_a.look BEFORE DELETE ON sly_a.selkie_receipts FOR EACH ROW \
         INSERT INTO sly_a.seen VALUES (USER())",
        "INSERT INTO sly_a.selkie_receipts VALUES (UNHEX(SHA2('', 256)), 1)",
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let pools = pools(&installation, &system);
    assert_eq!(idempotency::sweep(&pools, &project).await.unwrap(), 1);
    let seen: Vec<String> = conn.query("SELECT who FROM sly_a.seen").await.unwrap();
    assert_eq!(seen, ["selkie-sly-rw@localhost"]);
}
