//! Tests the schema cache: it is current at once after DDL through the service, and within 5 s after other DDL. Until
//! then, it never causes a wrong answer.

use crate::case::eventually;
use crate::faults;
use crate::host::{Call, Host};
use crate::service::{Edge, Service, shared};
use crate::test_db::{TestDb, unique};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::{Duration, Instant};

/// Maximum time until DDL is noticed. The API promises 5 s; the rest is a reserve for a loaded machine.
const FRESH_MAX: Duration = Duration::from_secs(9);

cases! {
    Both: [
        a_table_made_by_sql_is_there_at_once,
        each_change_by_sql_is_seen_at_once,
        a_database_dropped_by_sql_is_gone_at_once,
        a_table_made_elsewhere_is_there_soon,
        a_field_added_elsewhere_is_there_soon,
        a_field_dropped_elsewhere_breaks_nothing,
        a_field_renamed_elsewhere_breaks_nothing,
        a_table_dropped_elsewhere_is_not_found,
        a_table_replaced_elsewhere_is_read_right,
        a_type_changed_elsewhere_is_seen_soon,
        a_database_adopted_by_the_cli_is_there_soon,
    ],
    Own: [
        a_project_that_changes_its_schema_costs_no_other_a_load,
        statements_that_change_no_schema_cost_no_load,
        requests_that_need_a_description_at_once_share_one_load,
    ],
}

async fn loads(service: &Service) -> u64 {
    let metrics = Call::new(&service.origin, Method::GET, "/metrics");
    let text = metrics.send().await.text();
    let count = text.lines().find_map(|line| line.strip_prefix("selkie_schema_loads_total "));
    count.and_then(|count| count.parse().ok()).expect("a count")
}

/// Returns the maximum number of reads of a table's schema since `since` that its age can cause: one every two seconds.
fn by_age(since: Instant) -> u64 {
    1 + since.elapsed().as_secs() / 2
}

/// Creates a project with a table; returns a read of the table, and a function that runs SQL in the project.
async fn other_project(service: &Service) -> (Call, impl Fn(&str) -> Call + use<>) {
    let project = unique("apart");
    service.create_project(&project);
    let key = service.create_key(&project, "full", &[]).token;
    let sql = Call::new(&service.origin, Method::POST, "/api/v1/sql").key(&key);
    let database = format!("{}_shop", project.replace('-', "_"));
    for query in [format!("CREATE DATABASE {database}"), format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)")] {
        let call = sql.clone().json(&json!({"query": query}));
        call.send().await.payload();
    }
    let path = format!("/api/v1/crud/{database}/t");
    let read = Call::new(&service.origin, Method::GET, &path).key(&key);
    let run = move |query: &str| {
        let query = query.replace("{db}", &database);
        sql.clone().json(&json!({"query": query}))
    };
    (read, run)
}

async fn a_project_that_changes_its_schema_costs_no_other_a_load(_: Host) {
    let service = faults::start(Edge::Without, &[]).await;
    let (read, _) = other_project(&service).await;
    read.clone().send().await.payload();
    let (before, since) = (loads(&service).await, Instant::now());
    for n in 0..40 {
        let query = format!("CREATE OR REPLACE TABLE made (c{n} INT)");
        faults::sql(&service, &query).send().await.payload();
        read.clone().send().await.payload();
    }
    let spent = loads(&service).await - before;
    assert!(spent <= by_age(since), "{spent} loads");
    faults::stop(service).await;
}

async fn statements_that_change_no_schema_cost_no_load(_: Host) {
    let service = faults::start(Edge::Without, &[]).await;
    let (read, run) = other_project(&service).await;
    read.clone().send().await.payload();
    let (before, since) = (loads(&service).await, Instant::now());
    for query in [
        "DO 1",
        "SET @a = 1",
        "this is no SQL",
        "CREATE TABLE",
        "ALTER TABLE {db}.t ADD",
        "TRUNCATE {db}.t",
        "ANALYZE TABLE {db}.t",
        "INSERT INTO {db}.t VALUES (1)",
        "FLUSH NOTHING",
    ] {
        for _ in 0..5 {
            run(query).send().await;
            read.clone().send().await.payload();
        }
    }
    let spent = loads(&service).await - before;
    assert!(spent <= by_age(since), "{spent} loads");
    faults::stop(service).await;
}

async fn requests_that_need_a_description_at_once_share_one_load(_: Host) {
    let service = faults::start(Edge::Without, &[]).await;
    let (read, run) = other_project(&service).await;
    let (before, since) = (loads(&service).await, Instant::now());
    for n in 0..5 {
        run(&format!("ALTER TABLE {{db}}.t ADD c{n} INT")).send().await.payload();
        for answer in join_all((0..20).map(|_| read.clone().send())).await {
            answer.payload();
        }
    }
    let spent = loads(&service).await - before;
    assert!(spent <= 5 + by_age(since), "{spent} loads");
    faults::stop(service).await;
}

async fn a_table_made_by_sql_is_there_at_once(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for n in 0..10 {
        let table = format!("t{n}");
        db.get(&table).await.refused(ErrorCode::TableNotFound);
        db.exec(&format!("CREATE TABLE {table} (id INT PRIMARY KEY)")).await;
        assert_eq!(db.get(&table).await.payload(), json!([]));
        db.exec(&format!("DROP TABLE {table}")).await;
        db.get(&table).await.refused(ErrorCode::TableNotFound);
    }
}

async fn each_change_by_sql_is_seen_at_once(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
    for n in 0..10 {
        db.exec(&format!("ALTER TABLE t ADD COLUMN c{n} INT DEFAULT {n}")).await;
        assert_eq!(db.get("t/1").await.payload()[format!("c{n}")], n);
        assert_eq!(db.put("t/1", &json!({format!("c{n}"): 100})).await.payload(), 1);
    }
    db.exec("ALTER TABLE t RENAME COLUMN c0 TO other, DROP COLUMN c1").await;
    let record = db.get("t/1").await.payload();
    assert_eq!(record["other"], 100);
    assert!(record.get("c0").is_none() && record.get("c1").is_none(), "{record}");
    db.exec("RENAME TABLE t TO u").await;
    db.get("t/1").await.refused(ErrorCode::TableNotFound);
    assert_eq!(db.get("u/1").await.payload()["id"], 1);
    db.exec("ALTER TABLE u MODIFY c2 VARCHAR(10)").await;
    assert_eq!(db.get("u/1").await.payload()["c2"], "100");
    // DDL within a procedure also counts as DDL through the service.
    db.exec("CREATE PROCEDURE p() ALTER TABLE u ADD COLUMN hidden INT DEFAULT 7").await;
    db.exec("CALL p()").await;
    let seen = eventually("a column made by a procedure", FRESH_MAX, || async {
        let record = db.get("u/1").await.payload();
        record.get("hidden").cloned()
    });
    assert_eq!(seen.await, 7);
}

async fn a_database_dropped_by_sql_is_gone_at_once(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    assert_eq!(db.get("t").await.payload(), json!([]));
    host.sql(&json!({"query": format!("DROP DATABASE {}", db.name)})).send().await.payload();
    db.get("t").await.refused(ErrorCode::DatabaseNotFound);
    host.sql(&json!({"query": format!("CREATE DATABASE {}", db.name)})).send().await.payload();
    db.get("t").await.refused(ErrorCode::TableNotFound);
}

async fn a_table_made_elsewhere_is_there_soon(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE first (id INT PRIMARY KEY)"]).await;
    db.get("t").await.refused(ErrorCode::TableNotFound);
    db.behind("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (4);");
    let list = eventually("the table", FRESH_MAX, || async {
        let answer = db.get("t").await;
        (answer.code() == "ok").then(|| answer.payload())
    });
    assert_eq!(list.await, json!([{"id": 4}]));
}

async fn a_field_added_elsewhere_is_there_soon(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1}));
    db.behind("ALTER TABLE t ADD COLUMN late INT DEFAULT 5;");
    eventually("the field can be written", FRESH_MAX, || async {
        let answer = db.put("t/1", &json!({"late": 6})).await;
        if answer.code() != "ok" {
            answer.refused(ErrorCode::UnknownField);
            return None;
        }
        Some(())
    })
    .await;
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "late": 6}));
}

async fn a_field_dropped_elsewhere_breaks_nothing(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO t VALUES (1, 2, 3)"])
            .await;
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "a": 2, "b": 3}));
    db.behind("ALTER TABLE t DROP COLUMN a;");
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "b": 3}));
    db.behind("ALTER TABLE t DROP COLUMN b;");
    db.put("t/1", &json!({"b": 1})).await.refused(ErrorCode::UnknownField);
    assert_eq!(db.get("t").await.payload(), json!([{"id": 1}]));
    db.get("t?query[b]=1").await.refused(ErrorCode::UnknownField);
}

async fn a_field_renamed_elsewhere_breaks_nothing(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 2)"]).await;
    assert_eq!(db.get("t").await.payload(), json!([{"id": 1, "a": 2}]));
    db.behind("ALTER TABLE t RENAME COLUMN a TO z;");
    assert_eq!(db.get("t").await.payload(), json!([{"id": 1, "z": 2}]));
    db.behind("ALTER TABLE t RENAME COLUMN z TO y;");
    db.get("t?selectFields=z").await.refused(ErrorCode::UnknownField);
    assert_eq!(db.post("t", &json!({"id": 2, "y": 5})).await.payload(), 2);
}

async fn a_table_dropped_elsewhere_is_not_found(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)"]).await;
    assert_eq!(db.get("t").await.payload(), json!([]));
    assert_eq!(db.get("u").await.payload(), json!([]));
    db.behind("DROP TABLE t; RENAME TABLE u TO v;");
    db.get("t").await.refused(ErrorCode::TableNotFound);
    db.post("u", &json!({"id": 1})).await.refused(ErrorCode::TableNotFound);
    assert_eq!(db.get("v").await.payload(), json!([]));
    db.delete("t/1").await.refused(ErrorCode::TableNotFound);
}

async fn a_table_replaced_elsewhere_is_read_right(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 2)"]).await;
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "a": 2}));
    db.behind(
        "DROP TABLE t; CREATE TABLE t (code VARCHAR(5) PRIMARY KEY, b DATE); INSERT INTO t VALUES ('x', '2026-01-01');",
    );
    assert_eq!(db.get("t").await.payload(), json!([{"code": "x", "b": "2026-01-01"}]));
    assert_eq!(db.get("t/x").await.payload(), json!({"code": "x", "b": "2026-01-01"}));
}

async fn a_type_changed_elsewhere_is_seen_soon(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 2)"]).await;
    assert_eq!(db.get("t/1").await.payload()["a"], 2);
    db.behind("ALTER TABLE t MODIFY a VARCHAR(10);");
    eventually("the new type", FRESH_MAX, || async { (db.get("t/1").await.payload()["a"] == "2").then_some(()) }).await;
    eventually("the new schema", FRESH_MAX, || async {
        let schema = db.get("t/_schema").await.payload();
        (schema["schema"][1]["type"] == "varchar(10)").then_some(())
    })
    .await;
}

async fn a_database_adopted_by_the_cli_is_there_soon(host: Host) {
    // Uses a project of its own, since after an adoption some statements are refused that other cases run.
    let (project, name) = (unique("legacy"), unique("legacy-shop "));
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    shared().root_sql(&format!("CREATE DATABASE `{name}`; CREATE TABLE `{name}`.t (id INT PRIMARY KEY)")).unwrap();
    let path = format!("/api/v1/crud/{}/t", crate::host::enc(&name));
    host.get(&path).key(&key).send().await.refused(ErrorCode::DatabaseNotFound);
    shared().cli_ok(&["database", "adopt", &name, "--project", &project]);
    eventually("the adopted database", FRESH_MAX, || async {
        (host.get(&path).key(&key).send().await.code() == "ok").then_some(())
    })
    .await;
    assert!(shared().cli_ok(&["database", "list"]).contains(&name));
}
