//! Concurrent inserts whose clients disconnect, or whose database fails or is slow.

use super::{CALLERS, TABLE, count, insert, stored};
use crate::case::eventually;
use crate::faults;
use crate::host::{Call, Host};
use crate::records::coalesced_reads::{SOON, lock, running, while_locked};
use crate::service::{Edge, Service, kill, shared};
use crate::test_db::TestDb;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use shared::error::ErrorCode;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

cases! {
    Origin: [
        who_leaves_disturbs_nobody_and_is_never_there_twice,
        what_nobody_waits_for_is_killed,
    ],
    Own: [
        many_inserts_take_few_statements,
        an_insert_is_never_repeated_when_the_database_is_killed,
        what_takes_too_long_is_told_to_each_and_never_happens,
    ],
}

async fn who_leaves_disturbs_nobody_and_is_never_there_twice(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    db.post("t", &json!({"v": -1})).await.payload();
    let callers = async {
        let calls: Vec<_> =
            (0..CALLERS).map(|v| (v, tokio::spawn(insert(&db, "t", &json!({"v": v})).attempt()))).collect();
        eventually("a statement waits", SOON, || async {
            (running(shared(), &format!("INTO `{}`.`t`", db.name)) > 0).then_some(())
        })
        .await;
        let (leaving, staying): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(v, _)| v % 3 > 0);
        for (_, call) in leaving {
            call.abort();
        }
        let mut answers = Vec::new();
        for (v, call) in staying {
            answers.push((v, call.await.unwrap().expect("an answer")));
        }
        answers
    };
    let answers = while_locked(&db, "DO 0", callers).await;
    let stored = stored(&db).await;
    for (v, answer) in answers {
        let id = answer.payload().as_i64().unwrap();
        assert_eq!(stored.get(&id), Some(&v));
    }
    let values: BTreeSet<_> = stored.values().collect();
    assert_eq!(values.len(), stored.len(), "a record is there twice");
}

async fn what_nobody_waits_for_is_killed(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    db.post("t", &json!({"v": -1})).await.payload();
    let text = format!("INTO `{}`.`t`", db.name);
    let locked = lock(shared(), &db.name, "SELECT SLEEP(4)").await;
    let calls: Vec<_> = (0..CALLERS).map(|v| tokio::spawn(insert(&db, "t", &json!({"v": v})).attempt())).collect();
    let several = format!("FOR INSERT {text}");
    eventually("a statement of several waits", SOON, || async { (running(shared(), &several) > 0).then_some(()) })
        .await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("none waits", SOON, || async { (running(shared(), &text) == 0).then_some(()) }).await;
    assert!(!locked.is_finished(), "they ended by themselves");
    locked.await.unwrap();
    assert_eq!(count(&db).await, 1);
}

async fn own(settings: &'static [(&str, &str)]) -> Service {
    let service = faults::start(Edge::Without, settings).await;
    faults::sql(&service, &TABLE.replace("TABLE t", "TABLE demo.t")).send().await.payload();
    own_insert(&service, -1).send().await.payload();
    service
}

fn own_insert(service: &Service, v: i64) -> Call {
    let call = Call::new(&service.origin, Method::POST, "/api/v1/crud/demo/t");
    call.key(&service.full_key).json(&json!({"v": v}))
}

/// Reads the values of the table as root.
fn own_values(service: &Service) -> Vec<i64> {
    let values = service.root_sql("SELECT v FROM demo.t WHERE v >= 0 ORDER BY v").unwrap();
    values.split_whitespace().map(|v| v.parse().unwrap()).collect()
}

async fn many_inserts_take_few_statements(_: Host) {
    let service: &'static Service = Box::leak(Box::new(own(&[]).await));
    let executed = || {
        let counted = service.root_sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        let counted = counted.unwrap();
        let number = counted.split_whitespace().last().map(str::parse::<i64>);
        number.unwrap().unwrap()
    };
    let locked = lock(service, "demo", "DO 0").await;
    let before = executed();
    for answer in join_all((0..300).map(|v| own_insert(service, v).send())).await {
        answer.payload();
    }
    let took = executed() - before;
    assert!(took < 150, "300 inserts took {took} statements");
    assert_eq!(own_values(service), (0..300).collect::<Vec<_>>());
    locked.await.unwrap();
    tokio::task::spawn_blocking(|| service.stop()).await.unwrap().unwrap();
}

async fn an_insert_is_never_repeated_when_the_database_is_killed(_: Host) {
    let service = own(&[]).await;
    let process = faults::database_process(&service).expect("a database");
    let answered = AtomicUsize::new(0);
    let killing = async {
        eventually("inserts run", SOON, || async { (answered.load(Ordering::Relaxed) > 300).then_some(()) }).await;
        kill(process, Signal::KILL);
    };
    let worker = async |worker: i64| {
        let mut known = Vec::new();
        for n in 0.. {
            let v = worker * 1_000_000 + n;
            let answer = own_insert(&service, v).attempt().await.expect("an answer");
            if answer.code() != "ok" {
                answer.refused(ErrorCode::DatabaseUnavailable);
                break;
            }
            known.push(v);
            answered.fetch_add(1, Ordering::Relaxed);
        }
        known
    };
    let ((), known) = tokio::join!(killing, join_all((0..60).map(worker)));
    eventually("it is back", Duration::from_secs(60), || async {
        let read = faults::get(&service, "/api/v1/crud/demo/t/1").send().await;
        (read.code() == "ok").then_some(())
    })
    .await;
    let values = own_values(&service);
    let distinct: BTreeSet<_> = values.iter().copied().collect();
    assert_eq!(distinct.len(), values.len(), "a record is there twice");
    for v in known.into_iter().flatten() {
        assert!(distinct.contains(&v), "{v} was answered and is lost");
    }
    faults::stop(service).await;
}

async fn what_takes_too_long_is_told_to_each_and_never_happens(_: Host) {
    let settings = &[("SELKIE_QUERY_TIMEOUT", "1s")];
    let service: &'static Service = Box::leak(Box::new(own(settings).await));
    let locked = lock(service, "demo", "SELECT SLEEP(8)").await;
    for answer in join_all((0..CALLERS).map(|v| own_insert(service, v).send())).await {
        match answer.code().as_str() {
            "overloaded" => {}
            _ => drop(answer.refused(ErrorCode::QueryTimeout)),
        }
    }
    locked.await.unwrap();
    eventually("nothing runs", SOON, || async { (running(service, "INTO `demo`.`t`") == 0).then_some(()) }).await;
    assert_eq!(own_values(service), [0; 0]);
    own_insert(service, 7).send().await.payload();
    tokio::task::spawn_blocking(|| service.stop()).await.unwrap().unwrap();
}
