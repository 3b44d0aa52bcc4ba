//! Many concurrent inserts of single records, which may share a statement: each client gets its own id or its own
//! error, as if it were alone.

mod ends;
mod kinds;

use super::coalesced_reads::{SOON, running};
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinHandle;

/// Number of concurrent inserts: too many for one statement.
const CALLERS: i64 = 150;

const TABLE: &str =
    "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL, name VARCHAR(20), u INT UNIQUE)";

cases! {
    Both: [
        each_of_many_gets_its_own_id,
        nobody_pays_for_a_neighbour,
        a_long_mixture_comes_out_as_it_was_answered,
    ],
    Origin: [
        who_waits_for_a_row_holds_nobody_up,
    ],
}

fn insert(db: &TestDb, table: &str, body: &Value) -> Call {
    db.call(Method::POST, table).json(body)
}

/// Inserts `bodies` concurrently and returns the answers in their order. `t` is locked at first, so that the inserts
/// wait and share statements.
async fn all_at_once(db: &TestDb, table: &str, bodies: &[Value]) -> Vec<Answer> {
    // Loads the table's schema before it is locked.
    db.get(&format!("{table}?limit=1")).await.payload();
    let held = hold(db, &["t"]).await;
    let answers = as_they_come(db, table, bodies).await;
    held.await.unwrap();
    answers
}

async fn as_they_come(db: &TestDb, table: &str, bodies: &[Value]) -> Vec<Answer> {
    let calls: Vec<_> = bodies.iter().map(|body| tokio::spawn(insert(db, table, body).send())).collect();
    join_all(calls).await.into_iter().map(Result::unwrap).collect()
}

/// Locks tables as root for a while.
async fn hold(db: &TestDb, tables: &[&str]) -> JoinHandle<()> {
    let mark = unique("held_");
    let tables = tables.join(" WRITE, ");
    let script = format!("USE `{}`; LOCK TABLES {tables} WRITE; SELECT SLEEP(0.8) AS {mark}; UNLOCK TABLES", db.name);
    let held = tokio::task::spawn_blocking(move || {
        shared().root_sql(&script).unwrap();
    });
    eventually("the lock is held", SOON, || async {
        (held.is_finished() || running(shared(), &mark) > 0).then_some(())
    })
    .await;
    held
}

async fn stored(db: &TestDb) -> BTreeMap<i64, i64> {
    let rows = db.exec("SELECT id, v FROM t").await;
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (row["id"].as_i64().unwrap(), row["v"].as_i64().unwrap())).collect()
}

async fn count(db: &TestDb) -> i64 {
    let count = db.value("SELECT COUNT(*) AS n FROM t").await;
    count.as_i64().unwrap()
}

async fn each_of_many_gets_its_own_id(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    assert_eq!(db.post("t", &json!({"v": 0})).await.payload(), 1);
    let mut expected = BTreeMap::from([(1, 0)]);
    let bodies = |round: i64| -> Vec<Value> {
        let values = (0..CALLERS).map(|n| json!({"v": round * CALLERS + n, "name": "n"}));
        values.collect()
    };
    let mut rounds = vec![(1, all_at_once(&db, "t", &bodies(1)).await)];
    for round in 2..6 {
        rounds.push((round, as_they_come(&db, "t", &bodies(round)).await));
    }
    for (round, answers) in rounds {
        for (n, answer) in (0..).zip(answers) {
            let id = answer.payload().as_i64().unwrap();
            let before = expected.insert(id, round * CALLERS + n);
            assert_eq!(before, None, "the id {id} was answered twice");
        }
    }
    assert_eq!(stored(&db).await, expected);
}

/// Inserts many valid rows concurrently with rows that are refused for different reasons: each refusal is the same as
/// if the row were inserted alone.
async fn nobody_pays_for_a_neighbour(host: Host) {
    let made = [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "INSERT INTO p VALUES (1)",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL, name VARCHAR(5), u INT UNIQUE, \
         p INT, tiny TINYINT, CONSTRAINT positive CHECK (v > 0), FOREIGN KEY (p) REFERENCES p (id))",
        "INSERT INTO t (v, u) VALUES (1, -1)",
    ];
    let db = TestDb::new(host, &made).await;
    let body =
        |v: i64, name: &str, u: i64, p: i64, tiny: i64| json!({"v": v, "name": name, "u": u, "p": p, "tiny": tiny});
    let bad = [
        (body(2, "a", -1, 1, 1), ErrorCode::DuplicateKey),
        (body(2, "a", -2, 2, 1), ErrorCode::ForeignKeyViolation),
        (body(-5, "a", -3, 1, 1), ErrorCode::InvalidValue),
        (body(2, "too long", -4, 1, 1), ErrorCode::InvalidValue),
        (body(2, "a", -5, 1, 500), ErrorCode::InvalidValue),
    ];
    let mut alone = Vec::new();
    for (body, code) in &bad {
        let mut error = db.post("t", body).await.refused(*code);
        error.as_object_mut().unwrap().remove("requestId");
        alone.push(error);
    }
    for every in [2, 9, 40] {
        let bodies: Vec<_> = (0..CALLERS)
            .map(|n| match n % every {
                0 => bad[usize::try_from(n / every).unwrap() % bad.len()].0.clone(),
                _ => body(n, "ok", every * 1_000 + n, 1, 1),
            })
            .collect();
        let before = count(&db).await;
        let answers = all_at_once(&db, "t", &bodies).await;
        let mut good = 0;
        for (n, answer) in (0..).zip(answers) {
            if n % every > 0 {
                let id = answer.payload();
                let row = db.get(&format!("t/{id}?selectFields=v,u")).await;
                assert_eq!(row.payload(), json!({"v": n, "u": every * 1_000 + n}));
                good += 1;
                continue;
            }
            let which = usize::try_from(n / every).unwrap() % bad.len();
            let mut error = answer.refused(bad[which].1);
            error.as_object_mut().unwrap().remove("requestId");
            assert_eq!(error, alone[which]);
        }
        assert_eq!(count(&db).await, before + good);
    }
}

async fn a_long_mixture_comes_out_as_it_was_answered(host: Host) {
    const WORKERS: i64 = 40;
    const EACH: i64 = 100;
    let db = TestDb::new(host, &[TABLE]).await;
    let worker = async |worker: i64| {
        let mut known = BTreeMap::new();
        let mut last = 0;
        for n in 0..EACH {
            let v = worker * EACH + n;
            let body = match v % 5 {
                0 => json!({"v": v}),
                1 => json!({"v": v, "name": null, "u": v}),
                // Inserts with the same value of a unique column, of which one succeeds.
                2 => json!({"v": v, "u": -n}),
                _ => json!({"v": v, "name": format!("n{v}")}),
            };
            let answer = db.post("t", &body).await;
            if answer.code() != "ok" {
                assert_eq!(v % 5, 2, "{answer}");
                answer.refused(ErrorCode::DuplicateKey);
                continue;
            }
            let id = answer.payload().as_i64().unwrap();
            assert!(id > last, "{id} comes behind {last}");
            last = id;
            known.insert(id, v);
            if n % 10 == 0 {
                let row = db.get(&format!("t/{id}?selectFields=v")).await;
                assert_eq!(row.payload(), json!({"v": v}));
            }
        }
        known
    };
    let mut expected = BTreeMap::new();
    for known in join_all((0..WORKERS).map(worker)).await {
        for (id, v) in known {
            assert_eq!(expected.insert(id, v), None, "{id} was answered twice");
        }
    }
    assert_eq!(stored(&db).await, expected);
    let taken = expected.values().filter(|v| **v % 5 == 2);
    let wanted: BTreeSet<_> = (0..WORKERS * EACH).filter(|v| v % 5 == 2).map(|v| v % EACH).collect();
    assert_eq!(taken.count(), wanted.len(), "one of each that competed");
}

/// Inserts whose parent row is locked by another transaction wait; all other inserts are answered before the lock is
/// released.
async fn who_waits_for_a_row_holds_nobody_up(host: Host) {
    let made = [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (2)",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL, p INT NOT NULL, \
         FOREIGN KEY (p) REFERENCES p (id))",
    ];
    let db = TestDb::new(host, &made).await;
    db.post("t", &json!({"v": -1, "p": 1})).await.payload();
    let script = format!(
        "USE `{}`; BEGIN; SELECT * FROM p WHERE id = 2 FOR UPDATE; SELECT SLEEP(8) AS held_{0}; COMMIT",
        db.name
    );
    let mark = format!("held_{}", db.name);
    let held = tokio::task::spawn_blocking(move || shared().root_sql(&script).unwrap());
    eventually("the lock is held", SOON, || async { (running(shared(), &mark) > 0).then_some(()) }).await;
    let together = hold(&db, &["t"]).await;
    // No more inserts wait for the locked row than the pool has connections to spare.
    let calls: Vec<_> = (0..CALLERS)
        .map(|v| {
            let parent = if v % 40 == 5 { 2 } else { 1 };
            let call = insert(&db, "t", &json!({"v": v, "p": parent}));
            (parent, tokio::spawn(call.send()))
        })
        .collect();
    let (waiting, free): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(p, _)| *p == 2);
    for (_, call) in free {
        call.await.unwrap().payload();
    }
    together.await.unwrap();
    assert!(!held.is_finished(), "they waited for a lock that is not theirs");
    assert_eq!(count(&db).await, 1 + CALLERS - waiting.len() as i64);
    for (_, call) in waiting {
        call.await.unwrap().payload();
    }
    held.await.unwrap();
    assert_eq!(count(&db).await, 1 + CALLERS);
}
