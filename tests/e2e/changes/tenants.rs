//! What one database's statements and rows do to the feeds of others, and to the origin.

use super::Copy;
use super::events::Events;
use crate::host::{Call, Host};
use crate::service::{Edge, Service, shared};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        columns_with_the_names_of_a_table_break_nothing,
        aliases_with_the_name_of_a_database_break_nothing,
        a_stream_ends_when_its_database_is_released,
    ],
    Own: [long_rows_take_bounded_memory],
}

async fn columns_with_the_names_of_a_table_break_nothing(host: Host) {
    let (own, other) =
        (TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await, TestDb::new(host, &[]).await);
    let mut copy = Copy::new(&own, "t", &[]).await;
    let name = &own.name;
    other.exec(&format!("CREATE TABLE {name} (t INT, g INT AS ({name}.t + 1))")).await;
    other.exec(&format!("ALTER TABLE {name} ADD CHECK ({name}.t > 0), ADD h INT AS ({name}.t) STORED")).await;
    own.exec("INSERT INTO t VALUES (1)").await;
    assert_eq!(copy.catch_up(10).await.len(), 1);
    copy.is_the_list().await;
}

/// Tables that are versioned by transactions are logged by statements.
async fn aliases_with_the_name_of_a_database_break_nothing(host: Host) {
    let versioned = "CREATE TABLE v (id INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, \
         e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING";
    let (own, other) = (
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await,
        TestDb::new(host, &[versioned, "CREATE TABLE t (id INT PRIMARY KEY)"]).await,
    );
    let (mut copy, of_other) = (Copy::new(&own, "t", &[]).await, Copy::new(&other, "t", &[]).await);
    let name = &own.name;
    other.exec("INSERT INTO v (id) VALUES (1)").await;
    other.exec(&format!("UPDATE v AS {name} SET {name}.id = (SELECT 2 AS {name})")).await;
    own.exec("INSERT INTO t VALUES (1)").await;
    assert_eq!(copy.catch_up(10).await.len(), 1);
    copy.is_the_list().await;
    let error = of_other.ask(&format!("since={}", of_other.token)).await.refused(ErrorCode::ResyncRequired);
    assert_eq!(error["details"]["reason"], "statement_logged");
}

async fn a_stream_ends_when_its_database_is_released(host: Host) {
    let (project, name) = (unique("adopter"), unique("brought"));
    let root = |statements: &str| shared().root_sql(statements).expect("root");
    root(&format!("CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)"));
    shared().create_project(&project);
    shared().cli_ok(&["database", "adopt", &name, "--project", &project]);
    let key = shared().create_key(&project, "full", &[]).token;
    let call = host.call(Method::GET, &format!("/api/v1/changes/{name}/t")).key(&key);
    let mut events = Events::open(call, None).await;
    assert_eq!(events.next().await.expect("an event").name, "transaction");
    shared().cli_ok(&["database", "release", &name, "--project", &project]);
    // The schema is cached for some seconds.
    let last = async {
        for id in 1.. {
            root(&format!("INSERT INTO {name}.t VALUES ({id})"));
            let event = events.next().await.expect("an event");
            if event.name == "failed" {
                return event;
            }
        }
        unreachable!()
    };
    let last = tokio::time::timeout(Duration::from_secs(60), last).await.expect("an end");
    assert_eq!(last.data["code"], "database_not_found", "{last:?}");
    root(&format!("DROP DATABASE {name}"));
}

/// Compressed columns are short in the log, and all rows of a prepared transaction are kept until its end.
async fn long_rows_take_bounded_memory(_: Host) {
    const COLUMNS: usize = 8;
    let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await;
    let service = service.expect("a task").expect("a service");
    let database = &service.database;
    let root = |statements: &str| service.root_sql(&format!("USE {database}; {statements}")).expect("root");
    let names: Vec<_> = (0..COLUMNS).map(|at| format!("c{at}")).collect();
    let compressed: Vec<_> = names.iter().map(|name| format!("{name} LONGBLOB COMPRESSED")).collect();
    root(&format!("CREATE TABLE packed (id INT PRIMARY KEY, {})", compressed.join(", ")));
    root("CREATE TABLE held (id INT PRIMARY KEY, s TEXT); CREATE TABLE t (id INT PRIMARY KEY)");
    let ask = |table: &str, options: &str| {
        let path = format!("/api/v1/changes/{database}/{table}?{options}");
        Call::new(&service.origin, Method::GET, &path).key(&service.full_key)
    };
    let mut tokens = Vec::new();
    for table in ["packed", "held", "t"] {
        let answer = ask(table, "").send().await;
        tokens.push(answer.json()["next"].as_str().expect("a token").to_owned());
    }
    let values = ["REPEAT('x', 40000000)"; COLUMNS].join(", ");
    root(&format!("INSERT INTO packed VALUES (1, {values})"));
    root(
        "XA START 'a'; INSERT INTO held SELECT seq, REPEAT(CHAR(1), 1900) FROM seq_1_to_40000; XA END 'a'; \
         XA PREPARE 'a'; XA COMMIT 'a'",
    );
    root("INSERT INTO t VALUES (1)");
    let page = ask("t", &format!("since={}&wait=20s", tokens[2])).send().await;
    assert_eq!(page.payload()[0]["key"], 1);
    for (table, token) in ["packed", "held"].into_iter().zip(&tokens) {
        let error = ask(table, &format!("since={token}")).send().await.refused(ErrorCode::ResyncRequired);
        assert_eq!(error["details"]["reason"], "too_slow", "{table}");
    }
    let peak = service.peak_bytes() / 1_000_000;
    assert!(peak < 400, "{peak} MB");
    let stopped = tokio::task::spawn_blocking(move || service.stop());
    stopped.await.expect("a task").expect("a stop");
}
