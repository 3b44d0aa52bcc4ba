//! Tests `Idempotency-Key` when a process is killed during an insert: afterwards the record and its receipt (the stored
//! answer) both exist, or neither does. Each case starts its own service.

use crate::case::eventually;
use crate::faults::{database_process, start, stop};
use crate::host::{Answer, Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service, kill};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

/// Maximum time of MariaDB's restart with crash recovery, on a loaded machine.
const RECOVERY_MAX: Duration = Duration::from_secs(60);
const ROWS: usize = 300;

cases! {
    Own: [
        two_origins_insert_once_between_them,
        whatever_moment_the_database_is_killed_an_insert_happens_once,
        whatever_moment_an_origin_is_killed_an_insert_happens_once,
        a_caller_who_leaves_finds_all_or_nothing,
    ],
}

fn insert(origin: &str, service: &Service, key: &str, n: usize) -> Call {
    let rows: Vec<Value> = (0..ROWS).map(|row| json!({"n": n, "row": row})).collect();
    Call::new(origin, Method::POST, "/api/v1/crud/demo/once")
        .key(&service.full_key)
        .header("idempotency-key", key)
        .json(&json!({"batchData": rows}))
}

async fn table(service: &Service) {
    let body = json!({
        "query": "CREATE TABLE once (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, row INT NOT NULL)",
        "database": "demo"
    });
    Call::new(&service.origin, Method::POST, "/api/v1/sql").key(&service.full_key).json(&body).send().await.payload();
}

/// Returns the number of inserted records; checks that each is complete and unique and has its receipt.
fn inserted(service: &Service) -> usize {
    let root = |query: &str| service.root_sql(query).expect("root");
    let whole = format!(
        "SELECT COUNT(*), COALESCE(SUM(size = {ROWS}), 0) FROM (SELECT COUNT(*) AS size FROM demo.once GROUP BY n) AS inserts"
    );
    let counts: Vec<usize> = root(&whole).split_whitespace().map(|count| count.parse().expect("a count")).collect();
    assert_eq!(counts[0], counts[1], "an insert is there in part, or twice");
    let receipts = "SELECT COUNT(*), COUNT(answer) FROM demo.selkie_receipts";
    let counts: Vec<usize> = root(receipts).split_whitespace().map(|count| count.parse().expect("a count")).collect();
    assert_eq!(counts[0], counts[1], "a receipt has no answer");
    counts[0]
}

/// Repeats an insert until it is answered, as a client does that follows `retryable`.
async fn until_answered(origin: &str, service: &Service, key: &str, n: usize) -> Answer {
    eventually("an answer", RECOVERY_MAX, || async {
        let answer = insert(origin, service, key, n).attempt().await.ok()?;
        if answer.status == 200 {
            return Some(answer);
        }
        let body = answer.json();
        assert_eq!(body["error"]["retryable"], true, "{answer}");
        None
    })
    .await
}

async fn two_origins_insert_once_between_them(_: Host) {
    let service = start(Edge::Without, &[]).await;
    table(&service).await;
    let second = SecondOrigin::start(&service).expect("a second origin");
    for n in 0..10 {
        let key = format!("race-{n}");
        let calls = (0..20).map(|at| {
            let origin = [&service.origin, &second.origin][at % 2];
            insert(origin, &service, &key, n).send()
        });
        let answers = futures_util::future::join_all(calls).await;
        let mut bodies: Vec<&[u8]> = Vec::new();
        let mut fresh = 0;
        for answer in &answers {
            if answer.status == 200 {
                bodies.push(&answer.body);
                fresh += usize::from(answer.header("idempotency-replayed").is_none());
            } else {
                answer.refused(ErrorCode::IdempotencyInProgress);
            }
        }
        assert_eq!(fresh, 1, "one inserts");
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        let replayed = until_answered(&second.origin, &service, &key, n).await;
        assert_eq!(replayed.body, bodies[0]);
    }
    assert_eq!(inserted(&service), 10);
    drop(second);
    stop(service).await;
}

async fn killed_in_between(service: &Service, origin: &str, kill_one: impl AsyncFn(u64)) -> usize {
    let mut sent = 0;
    for round in 0..5 {
        let keys: Vec<usize> = (sent..sent + 8).collect();
        sent += keys.len();
        let calls = keys.iter().map(|n| async move {
            // Staggered, so that each kill meets inserts at different steps.
            tokio::time::sleep(Duration::from_millis(*n as u64 % 8 * 7)).await;
            insert(origin, service, &format!("key-{n}"), *n).attempt().await
        });
        let (answers, ()) = tokio::join!(futures_util::future::join_all(calls), kill_one(round * 9 + 8));
        for (n, first) in keys.iter().zip(answers) {
            let answer = until_answered(origin, service, &format!("key-{n}"), *n).await;
            let first = first.ok().filter(|first| first.status == 200);
            if let Some(first) = first {
                assert_eq!(first.body, answer.body, "the first answer again");
                assert_eq!(answer.header("idempotency-replayed"), Some("true"));
            }
        }
    }
    sent
}

async fn whatever_moment_the_database_is_killed_an_insert_happens_once(_: Host) {
    let service = start(Edge::Without, &[]).await;
    table(&service).await;
    let sent = killed_in_between(&service, &service.origin, async |millis| {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        kill(database_process(&service).expect("a database"), Signal::KILL);
    })
    .await;
    assert_eq!(inserted(&service), sent);
    stop(service).await;
}

async fn whatever_moment_an_origin_is_killed_an_insert_happens_once(_: Host) {
    let service = start(Edge::Without, &[]).await;
    table(&service).await;
    let mut sent = 0;
    for round in 0..4_u64 {
        let mut second = SecondOrigin::start(&service).expect("a second origin");
        let origin = second.origin.clone();
        let keys: Vec<usize> = (sent..sent + 8).collect();
        sent += keys.len();
        let calls: Vec<_> = keys
            .iter()
            .map(|n| {
                let call = insert(&origin, &service, &format!("key-{n}"), *n);
                tokio::spawn(call.attempt())
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(15 + round * 25)).await;
        tokio::task::spawn_blocking(move || second.kill()).await.expect("a task");
        for (n, first) in keys.iter().zip(calls) {
            let first = first.await.expect("a task").ok();
            // The other origin finds the receipts that the killed origin wrote.
            let key = format!("key-{n}");
            let answer = until_answered(&service.origin, &service, &key, *n).await;
            if let Some(first) = first.filter(|first| first.status == 200) {
                assert_eq!(first.body, answer.body, "the first answer again");
            }
        }
    }
    assert_eq!(inserted(&service), sent);
    stop(service).await;
}

async fn a_caller_who_leaves_finds_all_or_nothing(_: Host) {
    let service = start(Edge::Without, &[]).await;
    table(&service).await;
    for n in 0..20_usize {
        let key = format!("left-{n}");
        let call = insert(&service.origin, &service, &key, n);
        let limit = Duration::from_millis(n as u64 * 4);
        let first = tokio::time::timeout(limit, call.attempt()).await;
        let answer = until_answered(&service.origin, &service, &key, n).await;
        if let Ok(Ok(first)) = first {
            assert_eq!(first.body, answer.body);
        }
    }
    assert_eq!(inserted(&service), 20);
    stop(service).await;
}
