//! How long a statement runs: its timeout, its wait for locks, and the client's disconnect.

use crate::case::eventually;
use crate::host::Host;
use crate::service::{Edge, Service, shared};
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::Duration;

/// Maximum time until a statement is killed: the API promises 1 s, the rest is for a loaded machine.
const KILL_MAX: Duration = Duration::from_secs(5);
const SEEN_MAX: Duration = Duration::from_secs(10);

cases! {
    Both: [
        a_statement_with_a_limit_of_its_own_times_out,
        a_deadlock_is_said_so,
        a_statement_that_lost_a_deadlock_is_tried_once_more,
        a_connection_that_the_statement_kills_is_replaced,
    ],
    // A local workerd doesn't notice a disconnect before the answer's head (docs/troubleshooting.md).
    Origin: [
        a_lock_that_is_not_granted_is_a_lock_timeout,
        a_statement_whose_caller_left_is_killed,
        a_records_request_whose_caller_left_is_killed,
    ],
    Own: [a_statement_runs_no_longer_than_the_setting],
}

async fn a_statement_with_a_limit_of_its_own_times_out(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let answer = db.sql("SET STATEMENT max_statement_time = 0.2 FOR SELECT SLEEP(20)").send().await;
    answer.refused(ErrorCode::QueryTimeout);
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}

/// Returns how many running statements contain `text`, as root sees them.
fn running(service: &Service, text: &str) -> usize {
    let query = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{text}%' AND INFO NOT LIKE '%PROCESSLIST%' AND COMMAND <> 'Sleep'"
    );
    service.root_sql(&query).expect("the process list").trim().parse().expect("a number")
}

async fn wait_until_running(text: &str, count: usize) {
    let what = format!("{count} statements with {text}");
    let limit = if count == 0 { KILL_MAX } else { SEEN_MAX };
    eventually(&what, limit, || async { (running(shared(), text) == count).then_some(()) }).await;
}

async fn a_lock_that_is_not_granted_is_a_lock_timeout(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)"]).await;
    let mark = format!("holder_{}", db.name);
    // This statement holds the row's lock while it sleeps.
    let holder = db.sql(&format!("UPDATE t SET n = n + 1 + SLEEP(20) WHERE id = 1 /* {mark} */"));
    let holder = tokio::spawn(holder.attempt());
    wait_until_running(&mark, 1).await;
    let answer = db.sql("SET STATEMENT innodb_lock_wait_timeout = 1 FOR UPDATE t SET n = 5 WHERE id = 1").send().await;
    answer.refused(ErrorCode::LockTimeout);
    let answer = db.sql("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").send().await;
    answer.refused(ErrorCode::LockTimeout);
    holder.abort();
    wait_until_running(&mark, 0).await;
    assert_eq!(db.put("t/1", &json!({"n": 9})).await.payload(), 1);
}

async fn a_deadlock_is_said_so(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    db.exec("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213").await;
    db.post("t", &json!({"n": 1})).await.refused(ErrorCode::Deadlock);
    db.exec("DROP TRIGGER tr").await;
    db.post("t", &json!({"n": 1})).await.payload();
}

/// The rows of a non-transactional table count the attempts, since no rollback removes them.
async fn a_statement_that_lost_a_deadlock_is_tried_once_more(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE TABLE attempts (n INT) ENGINE = Aria TRANSACTIONAL = 0",
            "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN INSERT INTO attempts VALUES (1); \
             IF (SELECT COUNT(*) FROM attempts) < NEW.n THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF; END",
            "CREATE PROCEDURE p() INSERT INTO t (n) VALUES (2)",
        ],
    )
    .await;
    let attempts = async || {
        let count = db.value("SELECT COUNT(*) FROM attempts").await;
        db.exec("DELETE FROM attempts").await;
        count
    };
    assert_eq!(db.exec("INSERT INTO t (n) VALUES (2)").await["affectedRows"], 1);
    assert_eq!(attempts().await, 2);
    assert_eq!(
        db.sql_with("REPLACE INTO t (n) VALUES (?) RETURNING n", json!([2])).send().await.payload(),
        json!([{"n": 2}])
    );
    assert_eq!(attempts().await, 2);
    db.sql("INSERT INTO t (n) VALUES (3)").send().await.refused(ErrorCode::Deadlock);
    assert_eq!(attempts().await, 2);
    for statement in ["CALL p()", "BEGIN NOT ATOMIC INSERT INTO t (n) VALUES (2); END"] {
        db.sql(statement).send().await.refused(ErrorCode::Deadlock);
        assert_eq!(attempts().await, 1, "{statement} may have committed before");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
}

async fn a_statement_whose_caller_left_is_killed(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    for (n, query) in ["SELECT SLEEP(25)", "INSERT INTO t SELECT SLEEP(25)", "DO SLEEP(25)"].iter().enumerate() {
        let mark = format!("leaver_{n}_{}", db.name);
        let call = tokio::spawn(db.sql(&format!("{query} /* {mark} */")).attempt());
        wait_until_running(&mark, 1).await;
        call.abort();
        wait_until_running(&mark, 0).await;
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn a_records_request_whose_caller_left_is_killed(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    let view = format!("slow_{}", db.name);
    db.exec(&format!("CREATE VIEW {view} AS SELECT 1 AS id, SLEEP(25) AS s")).await;
    let call = tokio::spawn(db.call(reqwest::Method::GET, &view).attempt());
    wait_until_running(&view, 1).await;
    call.abort();
    wait_until_running(&view, 0).await;
}

async fn a_connection_that_the_statement_kills_is_replaced(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for _ in 0..3 {
        let answer = db.sql("KILL CONNECTION_ID()").send().await;
        answer.refused(ErrorCode::DatabaseUnavailable);
        assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
    }
}

async fn a_statement_runs_no_longer_than_the_setting(_: Host) {
    let start = || Service::start(Edge::Without, &[("SELKIE_QUERY_TIMEOUT", "1s")]);
    let service = tokio::task::spawn_blocking(start).await.unwrap().expect("a service");
    let run = |query: &str| {
        let call = crate::host::Call::new(&service.origin, reqwest::Method::POST, "/api/v1/sql").key(&service.full_key);
        call.json(&json!({"query": query, "database": "demo"})).send()
    };
    for query in [
        "SELECT SLEEP(60) /* limited */",
        "SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(60) /* limited */",
        "DO SLEEP(60) /* limited */",
        "UPDATE authors SET name = name WHERE id = 1 AND SLEEP(60) = 0 /* limited */",
        "BEGIN NOT ATOMIC SET SESSION max_statement_time = 0; DO SLEEP(60) /* limited */; END",
    ] {
        let answer = run(query).await;
        answer.refused(ErrorCode::QueryTimeout);
        eventually("the statement ends", KILL_MAX, || async { (running(&service, "limited") == 0).then_some(()) })
            .await;
    }
    assert_eq!(run("SELECT 1 AS v").await.payload(), json!([{"v": 1}]));
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}
