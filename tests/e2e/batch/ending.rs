//! Batches that fail: deadlocks, timeouts, clients that disconnect; and the state of their sessions afterwards.

use super::{batch, call, get, post, put};
use crate::case::eventually;
use crate::faults::{database_process, sql, start, stop};
use crate::host::{Call, Host};
use crate::service::{Edge, Service, kill, shared};
use crate::test_db::TestDb;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::Duration;

const KILL_MAX: Duration = Duration::from_secs(5);
const SEEN_MAX: Duration = Duration::from_secs(10);

cases! {
    Both: [
        a_deadlock_is_tried_once_more_as_a_whole,
        a_deadlock_that_comes_again_is_told,
        transfers_side_by_side_lose_nothing,
        a_triggers_session_does_not_leak,
    ],
    // A local workerd doesn't notice a disconnect before the answer's head.
    Origin: [a_batch_whose_caller_left_leaves_nothing],
    Own: [
        a_batch_runs_no_longer_than_the_setting,
        whatever_moment_the_database_is_killed_a_batch_is_whole_or_nothing,
    ],
}

const TABLES: &[&str] = &[
    "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    // Rows of a non-transactional table count the attempts, since no rollback removes them.
    "CREATE TABLE attempts (n INT) ENGINE = Aria TRANSACTIONAL = 0",
    "INSERT INTO attempts VALUES (0)",
];

/// Error numbers of a deadlock, and of a row that has changed since the transaction began to read.
const CONFLICTS: [u16; 2] = [1213, 1020];

async fn conflicting(db: &TestDb, conflict: u16, until: i64) {
    db.exec(&format!(
        "CREATE OR REPLACE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN UPDATE attempts SET n = n + 1; \
         IF (SELECT n FROM attempts) < {until} THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {conflict}; END IF; END"
    ))
    .await;
}

async fn a_deadlock_is_tried_once_more_as_a_whole(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let (log, t) = (db.path("log"), db.path("t"));
    for conflict in CONFLICTS {
        conflicting(&db, conflict, 2).await;
        let done = batch(host, &[post(&log, json!({"n": 1})), post(&t, json!({"n": {"$ref": 0}}))]).await;
        done.payload();
        assert_eq!(db.value("SELECT n FROM attempts").await, 2);
        // The rollback removes the id of the first attempt; references of the second one must use its own id.
        let id = &db.column("log", "id").await;
        assert_eq!(id.len(), 1);
        assert_eq!(&db.column("t", "n").await, id);
        for emptied in ["DELETE FROM log", "DELETE FROM t", "UPDATE attempts SET n = 0"] {
            db.exec(emptied).await;
        }
    }
}

async fn a_deadlock_that_comes_again_is_told(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for conflict in CONFLICTS {
        conflicting(&db, conflict, 3).await;
        let answer = batch(host, &[post(&db.path("log"), json!({"n": 1})), post(&db.path("t"), json!({"n": 1}))]).await;
        let error = answer.refused(ErrorCode::Deadlock);
        assert_eq!(error["details"]["operation"], 1);
        assert_eq!(error["retryable"], true);
        assert_eq!(db.value("SELECT n FROM attempts").await, 2);
        assert_eq!(db.get("log").await.payload(), json!([]));
        db.exec("UPDATE attempts SET n = 0").await;
    }
}

async fn transfers_side_by_side_lose_nothing(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE a (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 0), (2, 0)"]).await;
    let a = db.path("a");
    // Pairs of updates that lock the same two rows in opposite orders.
    let transfer = |at: usize| {
        let (one, two) = if at.is_multiple_of(2) { (1, 2) } else { (2, 1) };
        call(host, &[put(&format!("{a}/{one}"), json!({"n": at})), put(&format!("{a}/{two}"), json!({"n": at}))]).send()
    };
    for round in 0..5 {
        let answers = join_all((0..8).map(|at| transfer(round * 8 + at))).await;
        let mut done = 0;
        for answer in answers {
            match answer.code().as_str() {
                "ok" => done += 1,
                code => assert_eq!(code, "deadlock", "{answer}"),
            }
        }
        assert!(done > 0);
        let now = db.column("a", "n").await;
        assert_eq!(now[0], now[1], "both rows are of one transfer");
    }
}

async fn a_triggers_session_does_not_leak(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    db.exec("CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW SET @leak = NEW.n").await;
    let insert = post(&db.path("t"), json!({"n": 1}));
    let missing = get(&format!("{}/999", db.path("t")));
    for _ in 0..4 {
        batch(host, &[insert.clone(), insert.clone()]).await.payload();
        let failed = batch(host, &[insert.clone(), missing.clone()]).await;
        failed.refused(ErrorCode::RecordNotFound);
        let probes = (0..24).map(|_| db.sql("SELECT @leak AS v, @@in_transaction AS t").send());
        for probe in join_all(probes).await {
            assert_eq!(probe.payload(), json!([{"v": null, "t": 0}]));
        }
    }
}

fn running(service: &Service, text: &str) -> usize {
    let query = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{text}%' AND INFO NOT LIKE '%PROCESSLIST%' AND COMMAND <> 'Sleep'"
    );
    let count = service.root_sql(&query).expect("the process list");
    count.trim().parse().expect("a number")
}

async fn a_batch_whose_caller_left_leaves_nothing(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let slow = format!("slow_{}", db.name);
    db.exec(&format!("CREATE VIEW {slow} AS SELECT 1 AS id, SLEEP(25) AS s")).await;
    let leaver = call(host, &[post(&db.path("t"), json!({"n": 1})), get(&format!("{}?limit=1", db.path(&slow)))]);
    let leaver = tokio::spawn(leaver.attempt());
    eventually("the batch runs", SEEN_MAX, || async { (running(shared(), &slow) == 1).then_some(()) }).await;
    leaver.abort();
    eventually("the batch ends", KILL_MAX, || async { (running(shared(), &slow) == 0).then_some(()) }).await;
    // Waits for the lock of the inserted row, if the rollback left one.
    db.exec("ALTER TABLE t COMMENT 'free'").await;
    assert_eq!(db.get("t").await.payload(), json!([]));
}

async fn a_batch_runs_no_longer_than_the_setting(_: Host) {
    let start = || Service::start(Edge::Without, &[("SELKIE_QUERY_TIMEOUT", "1s")]);
    let service = tokio::task::spawn_blocking(start).await.unwrap().expect("a service");
    let send = |path: &str, body: serde_json::Value| {
        Call::new(&service.origin, Method::POST, path).key(&service.full_key).json(&body).send()
    };
    for query in [
        "CREATE TABLE patient (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
        "CREATE VIEW slow AS SELECT 1 AS id, SLEEP(0.6) AS s",
    ] {
        send("/api/v1/sql", json!({"query": query, "database": "demo"})).await.payload();
    }
    // Each of the reads alone is fast enough.
    let operations = [post("demo/patient", json!({"n": 1})), get("demo/slow?limit=1"), get("demo/slow?limit=1")];
    let answer = send("/api/v1/batch", json!({"operations": operations})).await;
    let error = answer.refused(ErrorCode::QueryTimeout);
    assert_eq!(error["details"]["operation"], 2);
    let count = send("/api/v1/sql", json!({"query": "SELECT COUNT(*) AS c FROM patient", "database": "demo"}));
    assert_eq!(count.await.payload(), json!([{"c": 0}]));
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}

const PAIRS: usize = 60;

async fn whatever_moment_the_database_is_killed_a_batch_is_whole_or_nothing(_: Host) {
    let service = start(Edge::Without, &[]).await;
    for table in ["half", "other"] {
        let create = format!("CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL)");
        sql(&service, &create).send().await.payload();
    }
    let mut done = Vec::new();
    for round in 0..4_usize {
        let batches = (round * 6..round * 6 + 6).map(|n| {
            let pair = [post("demo/half", json!({"n": n})), post("demo/other", json!({"n": n}))];
            let operations: Vec<_> = pair.iter().cycle().take(2 * PAIRS).collect();
            let call = Call::new(&service.origin, Method::POST, "/api/v1/batch")
                .key(&service.full_key)
                .json(&json!({"operations": operations}));
            async move { (n, call.attempt().await) }
        });
        let killer = async {
            tokio::time::sleep(Duration::from_millis(10 + 30 * round as u64)).await;
            kill(database_process(&service).expect("a database"), Signal::KILL);
        };
        let (answers, ()) = tokio::join!(join_all(batches), killer);
        for (n, answer) in answers {
            match answer {
                Ok(answer) if answer.status == 200 => done.push(n),
                Ok(answer) => assert_eq!(answer.json()["error"]["retryable"], true, "{answer}"),
                Err(_) => {}
            }
        }
        eventually("the database answers again", Duration::from_secs(60), || async {
            let answer = sql(&service, "SELECT 1").attempt().await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
    }
    let whole = |table: &str| {
        let query = format!("SELECT n, COUNT(*) AS c FROM {table} GROUP BY n ORDER BY n");
        sql(&service, &query).send()
    };
    let (half, other) = (whole("half").await.payload(), whole("other").await.payload());
    assert_eq!(half, other);
    let rows = half.as_array().unwrap();
    assert!(rows.iter().all(|row| row["c"] == PAIRS), "{half}");
    for n in done {
        assert!(rows.iter().any(|row| row["n"] == n), "batch {n} was answered, and is gone");
    }
    stop(service).await;
}
