//! Large batches: few statements, within MariaDB's packets, all or none, ids in order.

use crate::host::{Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        ten_thousand_rows_of_one_field_are_inserted_in_order,
        thousands_of_wide_rows_are_inserted,
        rows_of_megabytes_are_inserted_all_or_none,
        one_row_too_many_is_refused,
        a_table_without_transactions_keeps_the_rows_before_a_fault,
    ],
    Own: [
        a_large_batch_takes_few_statements,
        small_packets_of_mariadb_bound_a_row_but_not_a_batch,
    ],
}

const ROWS: usize = 10_000;

async fn ten_thousand_rows_of_one_field_are_inserted_in_order(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT UNIQUE)"]).await;
    let rows: Vec<Value> = (0..ROWS).map(|n| json!({"n": n})).collect();
    let answer = db.post("t", &json!({"batchData": rows})).await;
    let expected: Vec<usize> = (1..=ROWS).collect();
    assert_eq!(answer.payload(), json!(expected));
    let sum = db.value("SELECT COUNT(*) FROM t WHERE n = id - 1").await;
    assert_eq!(sum, ROWS);
    // The last row is a duplicate, and is inserted many statements after the first.
    let mut rows: Vec<Value> = (0..ROWS).map(|n| json!({"n": ROWS + n})).collect();
    rows[ROWS - 1] = json!({"n": 0});
    db.post("t", &json!({"batchData": rows})).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, ROWS);
}

/// MariaDB allows 65,535 parameters per statement. The origin uses at most 65,000, which is 216 rows of 300 columns.
async fn thousands_of_wide_rows_are_inserted(host: Host) {
    let columns: Vec<String> = (0..300).map(|at| format!("c{at} INT")).collect();
    let create = format!("CREATE TABLE wide (id INT PRIMARY KEY AUTO_INCREMENT, {})", columns.join(", "));
    let db = TestDb::new(host, &[&create]).await;
    let rows: Vec<Value> = (0..1_000)
        .map(|row| {
            let cells = (0..300).map(|at| (format!("c{at}"), json!(row * at)));
            Value::Object(cells.collect())
        })
        .collect();
    let answer = db.post("wide", &json!({"batchData": rows})).await;
    let expected: Vec<usize> = (1..=1_000).collect();
    assert_eq!(answer.payload(), json!(expected));
    let right = "SELECT COUNT(*) FROM wide WHERE c1 = id - 1 AND c299 = (id - 1) * 299";
    assert_eq!(db.value(right).await, 1_000);
}

async fn rows_of_megabytes_are_inserted_all_or_none(host: Host) {
    const ROW_BYTES: usize = 5_000_000;
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT, blb LONGBLOB, n INT NOT NULL)"],
    )
    .await;
    let text = |letter: &str| letter.repeat(ROW_BYTES);
    let batch = json!({"batchData": [
        {"body": text("a"), "n": 1}, {"body": "small", "n": 2}, {"body": text("c"), "n": 3}, {"blb": text("QUFB"), "n": 4}
    ]});
    // Without the last row, whose 20 MB exceed the limit of a body, the batch is inserted.
    let mut fitting = batch.clone();
    fitting["batchData"][3]["blb"] = json!("QUFB".repeat(1_000_000));
    assert_eq!(db.post("t", &fitting).await.payload(), json!([1, 2, 3, 4]));
    let lengths = "SELECT GROUP_CONCAT(COALESCE(LENGTH(body), LENGTH(blb)) ORDER BY id) FROM t";
    assert_eq!(db.value(lengths).await, format!("{ROW_BYTES},5,{ROW_BYTES},3000000"));
    let mut faulty = fitting.clone();
    faulty["batchData"][3]["n"] = Value::Null;
    db.post("t", &faulty).await.refused(ErrorCode::InvalidValue);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 4);
    db.post("t", &batch).await.refused(ErrorCode::BodyTooLarge);
    // A single field that is as large as a body can be.
    let largest = json!({"body": "x".repeat(16 * 1024 * 1024 - 200), "n": 5});
    assert!(db.post("t", &largest).await.payload().is_i64());
}

async fn one_row_too_many_is_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)"]).await;
    let rows = vec![json!({}); ROWS + 1];
    for rest in ["t", "t?onConflict=ignore"] {
        db.post(rest, &json!({"batchData": rows})).await.refused(ErrorCode::InvalidBody);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

fn count(service: &Service, name: &str) -> u64 {
    let status = format!("SHOW GLOBAL STATUS WHERE Variable_name = '{name}'");
    let line = service.root_sql(&status).expect("a status");
    let number = line.split_whitespace().last().expect("a number");
    number.parse().expect("a number")
}

async fn a_large_batch_takes_few_statements(_: Host) {
    let service = start().await;
    let table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT UNIQUE)";
    sql(&service, table).await;
    let rows: Vec<Value> = (0..ROWS).map(|n| json!({"n": n})).collect();
    let batch = json!({"batchData": rows});
    for (rest, most) in [("t", 10), ("t?onConflict=ignore", 10), ("t?onConflict=update", 10)] {
        let before = count(&service, "Com_insert");
        let answer = post(&service.origin, &service, rest, &batch).send().await;
        assert_eq!(answer.payload().as_array().map(Vec::len), Some(ROWS));
        let ran = count(&service, "Com_insert") - before;
        assert!(ran <= most, "{rest}: {ran} statements");
    }
    stop(service).await;
}

/// An origin learns MariaDB's packet size at its start, or when it opens a connection.
async fn small_packets_of_mariadb_bound_a_row_but_not_a_batch(_: Host) {
    let service = start().await;
    let table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)";
    sql(&service, table).await;
    service.root_sql("SET GLOBAL max_allowed_packet = 1048576").expect("a setting");
    let second = SecondOrigin::start(&service).expect("a second origin");
    let rows = vec![json!({"body": "x".repeat(100_000)}); 100];
    let batch = json!({"batchData": rows});
    let answer = post(&second.origin, &service, "t", &batch).send().await;
    let expected: Vec<usize> = (1..=100).collect();
    assert_eq!(answer.payload(), json!(expected));
    let large = json!({"body": "x".repeat(1_100_000)});
    for _ in 0..2 {
        let answer = post(&second.origin, &service, "t", &large).send().await;
        let error = answer.refused(ErrorCode::BodyTooLarge);
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("1048576"), "{answer}");
        let statement = json!({"query": "SELECT LENGTH(?)", "params": [large["body"]]});
        let call = Call::new(&second.origin, Method::POST, "/api/v1/sql").key(&service.full_key);
        call.json(&statement).send().await.refused(ErrorCode::BodyTooLarge);
    }
    // In a batch too, the large row is refused, and no row is inserted.
    let batch = json!({"batchData": [{"body": "a"}, large, {"body": "c"}]});
    post(&second.origin, &service, "t", &batch).send().await.refused(ErrorCode::BodyTooLarge);
    let count = service.root_sql("SELECT COUNT(*) FROM demo.t");
    assert_eq!(count.expect("a count").trim(), "100");
    drop(second);
    stop(service).await;
}

fn post(origin: &str, service: &Service, rest: &str, body: &Value) -> Call {
    let path = format!("/api/v1/crud/demo/{rest}");
    let call = Call::new(origin, Method::POST, &path).key(&service.full_key);
    call.json(body)
}

async fn sql(service: &Service, query: &str) {
    let call = Call::new(&service.origin, Method::POST, "/api/v1/sql").key(&service.full_key);
    let body = json!({"query": query, "database": "demo"});
    call.json(&body).send().await.payload();
}

async fn start() -> Service {
    let started = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await;
    started.expect("a task").expect("a service")
}

async fn stop(service: Service) {
    let stopped = tokio::task::spawn_blocking(move || service.stop()).await;
    stopped.expect("a task").expect("a clean end");
}

async fn a_table_without_transactions_keeps_the_rows_before_a_fault(host: Host) {
    for engine in ["Aria", "MyISAM"] {
        let create = format!("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = {engine}");
        let db = TestDb::new(host, &[&create]).await;
        for (at, is_list) in [(0, true), (1, true), (150, true), (2500, true), (0, false)] {
            db.exec("DELETE FROM t").await;
            db.exec("INSERT INTO t VALUES (-1, 0)").await;
            let mut rows: Vec<Value> = (0..at + 10).map(|n| json!({"id": n, "n": n})).collect();
            rows[at] = json!({"id": -1, "n": 0});
            let body = if is_list { json!({"batchData": rows}) } else { rows[at].clone() };
            let error = db.post("t", &body).await.refused(ErrorCode::DuplicateKey);
            assert_eq!(db.value("SELECT COUNT(*) - 1 FROM t").await, at, "{engine}: {error}");
            let said = error["hint"].as_str().unwrap_or_default().contains("are stored");
            assert_eq!(said, at > 0, "{engine}: {at}: {error}");
        }
        // In any row, a value that does not fit is refused rather than clipped.
        let rows = json!({"batchData": [{"id": 9000, "n": 1}, {"id": 9001, "n": 99_999_999_999_u64}]});
        db.post("t", &rows).await.refused(ErrorCode::InvalidValue);
        assert_eq!(db.exec("SELECT id, n FROM t WHERE id >= 9000").await, json!([{"id": 9000, "n": 1}]));
    }
}
