//! Many concurrent reads of single records, which may share a statement: each client gets its own record, as if it were
//! alone.

use crate::case::eventually;
use crate::faults;
use crate::host::{Answer, Call, Host};
use crate::service::{Edge, Service, kill, shared};
use crate::test_db::{TestDb, unique};
use crate::worker::Worker;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use shared::error::ErrorCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Number of concurrent reads: too many for one statement.
const CALLERS: i64 = 150;
/// Table `t` has records with the ids 1 to this number; twice as many ids are requested.
const RECORDS: i64 = 40;
pub(in crate::records) const SOON: Duration = Duration::from_secs(20);

const TABLE: &[&str] = &[
    "CREATE TABLE t (name VARCHAR(40), id BIGINT UNSIGNED PRIMARY KEY, at DATETIME, body TEXT)",
    "INSERT INTO t SELECT CONCAT('name ', seq), seq, '2026-01-02 03:04:05', REPEAT(seq, 100) FROM seq_1_to_40",
];

cases! {
    Both: [
        each_of_many_gets_its_own_record,
        field_lists_and_forms_do_not_mix,
    ],
    Origin: [
        a_read_that_begins_after_an_update_sees_it,
        keys_and_projects_do_not_mix,
        keys_of_every_kind_are_read_right,
        a_caller_who_leaves_disturbs_nobody,
        what_nobody_waits_for_is_killed,
        a_table_that_is_dropped_is_gone_for_all,
        a_field_that_is_dropped_meanwhile_breaks_nobody,
    ],
    Own: [
        many_reads_take_few_statements,
        a_killed_database_is_told_to_each,
        a_pool_without_connections_is_told_to_each,
    ],
}

/// Locks `t` as root for 1.5 s while `callers` run, then runs `then` and unlocks.
pub(in crate::records) async fn while_locked<T>(db: &TestDb, then: &str, callers: impl Future<Output = T>) -> T {
    let locked = lock(shared(), &db.name, then).await;
    let outcome = callers.await;
    locked.await.unwrap();
    outcome
}

pub(in crate::records) async fn lock(service: &'static Service, db: &str, then: &str) -> tokio::task::JoinHandle<()> {
    let mark = unique("locked_");
    let script = format!("USE `{db}`; LOCK TABLES t WRITE; SELECT SLEEP(1.5) AS {mark}; {then}; UNLOCK TABLES");
    let locked = tokio::task::spawn_blocking(move || {
        service.root_sql(&script).unwrap();
    });
    eventually("the lock is held", SOON, || async { (running(service, &mark) > 0).then_some(()) }).await;
    locked
}

pub(in crate::records) fn running(service: &Service, text: &str) -> u64 {
    let (first, rest) = text.split_at(1);
    // The search text is composed in SQL, so that this query doesn't find itself.
    let query =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE CONCAT('%{first}', '{rest}%')");
    service.root_sql(&query).unwrap().trim().parse().unwrap()
}

async fn warm(db: &TestDb) {
    db.get("t/1").await.payload();
}

#[track_caller]
fn is_record(answer: &Answer, id: i64) {
    if id > RECORDS {
        answer.refused(ErrorCode::RecordNotFound);
        return;
    }
    let expected = json!({
        "name": format!("name {id}"),
        "id": id,
        "at": "2026-01-02 03:04:05",
        "body": id.to_string().repeat(100),
    });
    assert_eq!(answer.payload(), expected);
}

async fn each_of_many_gets_its_own_record(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let all = || {
        join_all((0..CALLERS).map(|n| {
            let id = n * 7 % (2 * RECORDS) + 1;
            let call = db.call(Method::GET, &format!("t/{id}"));
            async move { (id, call.send().await) }
        }))
    };
    for (id, answer) in while_locked(&db, "DO 0", all()).await {
        is_record(&answer, id);
    }
    for _ in 0..5 {
        for (id, answer) in all().await {
            is_record(&answer, id);
        }
    }
}

async fn field_lists_and_forms_do_not_mix(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let method = |n: i64| match n % 12 {
        0 => Method::HEAD,
        _ => Method::GET,
    };
    let ask = |n: i64| {
        let id = n % RECORDS + 1;
        let (options, accept) = match n % 6 {
            0 => ("?selectFields=name", "application/json"),
            1 => ("?selectFields=id,name", "application/json"),
            2 => ("?omitFields=id,body", "application/json"),
            3 => ("?selectFields=id", "text/csv"),
            4 => ("?selectFields=name", "application/x-ndjson"),
            _ => ("?selectFields=name,name", "application/json"),
        };
        let call = db.call(method(n), &format!("t/{id}{options}"));
        let call = call.header("accept", accept);
        async move { (n, id, call.send().await) }
    };
    let callers = join_all((0..CALLERS).map(ask));
    for (n, id, answer) in while_locked(&db, "DO 0", callers).await {
        let name = format!("name {id}");
        match n % 6 {
            0 if method(n) == Method::HEAD => {
                assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
                assert!(answer.header("etag").is_some(), "{answer}");
            }
            0 => assert_eq!(answer.payload(), json!({"name": name})),
            1 => assert_eq!(
                answer.text(),
                format!("{{\"success\":true,\"payload\":{{\"id\":{id},\"name\":\"{name}\"}}}}")
            ),
            2 => assert_eq!(answer.payload(), json!({"name": name, "at": "2026-01-02 03:04:05"})),
            3 => assert_eq!(answer.text(), format!("id\r\n{id}\r\n")),
            4 => assert_eq!(answer.text(), format!("{{\"name\":\"{name}\"}}\n")),
            _ => {
                answer.refused(ErrorCode::InvalidQueryOption);
            }
        }
    }
}

async fn a_read_that_begins_after_an_update_sees_it(host: Host) {
    const READERS: usize = 24;
    const UPDATES: i64 = 150;
    let made = ["CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)"];
    let db = TestDb::new(host, &made).await;
    let acknowledged = AtomicI64::new(0);
    let write = async {
        for v in 1..=UPDATES {
            assert_eq!(db.put("t/2", &json!({"v": v})).await.payload(), 1);
            acknowledged.store(v, Ordering::SeqCst);
        }
    };
    let read = async |n: usize| {
        while acknowledged.load(Ordering::SeqCst) < UPDATES {
            if n.is_multiple_of(4) {
                assert_eq!(db.get("t/3").await.payload()["v"], 0);
                continue;
            }
            let known = acknowledged.load(Ordering::SeqCst);
            let seen = db.get("t/2").await.payload()["v"].as_i64().unwrap();
            assert!(seen >= known, "{seen} is read after {known} was acknowledged");
            assert!(seen <= acknowledged.load(Ordering::SeqCst) + 1);
        }
    };
    tokio::join!(write, join_all((0..READERS).map(read)));
}

async fn keys_and_projects_do_not_mix(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let project = unique("others");
    shared().create_project(&project);
    let theirs = shared().create_key(&project, "full", &[]).token;
    let reading = shared().read_key.clone();
    let callers = join_all((0..CALLERS).map(|n| {
        let id = n % RECORDS + 1;
        let call = db.call(Method::GET, &format!("t/{id}"));
        let call = match n % 3 {
            0 => call,
            1 => call.key(&reading),
            _ => call.key(&theirs),
        };
        async move { (n, id, call.send().await) }
    }));
    for (n, id, answer) in while_locked(&db, "DO 0", callers).await {
        match n % 3 {
            2 => {
                answer.refused(ErrorCode::DatabaseNotFound);
            }
            _ => is_record(&answer, id),
        }
    }
}

async fn keys_of_every_kind_are_read_right(host: Host) {
    let kinds = [
        ("TINYINT", vec!["-128", "0", "127"], vec!["128", "-129", "70"]),
        ("SMALLINT UNSIGNED", vec!["0", "65535"], vec!["65536", "-1"]),
        ("INT(6) ZEROFILL", vec!["0", "7"], vec!["007", "8"]),
        ("BIGINT", vec!["-9223372036854775808", "-5", "9223372036854775807"], vec!["9223372036854775808", "5"]),
        (
            "BIGINT UNSIGNED",
            vec!["1", "9223372036854775808", "18446744073709551615"],
            vec!["-1", "18446744073709551616", "2"],
        ),
        ("YEAR", vec!["1970", "2070"], vec!["1971", "0"]),
        ("VARCHAR(20)", vec!["1", "01", "a"], vec!["001", "b"]),
        ("DECIMAL(5,1)", vec!["1.0", "2.5"], vec!["3"]),
    ];
    for (kind, there, missing) in kinds {
        let made = format!("CREATE TABLE t (v VARCHAR(30), id {kind} PRIMARY KEY)");
        let db = TestDb::new(host, &[&made]).await;
        for id in &there {
            db.exec(&format!("INSERT INTO t VALUES ('{id}', '{id}')")).await;
        }
        warm_up(&db, there[0]).await;
        let asked = there.iter().map(|id| (*id, true));
        let asked: Vec<_> = asked.chain(missing.iter().map(|id| (*id, false))).collect();
        let callers = join_all((0..40).map(|n| {
            let (id, is_there) = asked[n % asked.len()];
            let call = db.call(Method::GET, &format!("t/{id}?selectFields=v"));
            async move { (id, is_there, call.send().await) }
        }));
        for (id, is_there, answer) in callers.await {
            match is_there {
                true => assert_eq!(answer.payload(), json!({"v": id}), "{kind}"),
                false => {
                    answer.refused(ErrorCode::RecordNotFound);
                }
            }
        }
    }
}

async fn warm_up(db: &TestDb, id: &str) {
    db.get(&format!("t/{id}")).await.payload();
}

async fn a_caller_who_leaves_disturbs_nobody(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let callers = async {
        let calls: Vec<_> = (0..CALLERS)
            .map(|n| {
                let id = n % (2 * RECORDS) + 1;
                let call = db.call(Method::GET, &format!("t/{id}"));
                (n, id, tokio::spawn(call.attempt()))
            })
            .collect();
        // The first statements are now waiting for the lock; the other reads are collected for the next statements.
        eventually("the statements wait", SOON, || async {
            (running(shared(), &format!("`{}`.`t` WHERE", db.name)) > 0).then_some(())
        })
        .await;
        let mut answers = Vec::new();
        let (leaving, staying): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(n, ..)| n % 3 > 0);
        for (.., call) in leaving {
            call.abort();
        }
        for (_, id, call) in staying {
            answers.push((id, call.await.unwrap().expect("an answer")));
        }
        answers
    };
    for (id, answer) in while_locked(&db, "DO 0", callers).await {
        is_record(&answer, id);
    }
}

async fn what_nobody_waits_for_is_killed(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let text = format!("`{}`.`t` WHERE", db.name);
    let locked = lock(shared(), &db.name, "SELECT SLEEP(4)").await;
    let calls: Vec<_> = (0..CALLERS)
        .map(|n| {
            let call = db.call(Method::GET, &format!("t/{}", n % RECORDS + 1));
            tokio::spawn(call.attempt())
        })
        .collect();
    eventually("statements of several wait", SOON, || async {
        (running(shared(), &format!("{text} `id` IN")) > 0).then_some(())
    })
    .await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("none waits", SOON, || async { (running(shared(), &text) == 0).then_some(()) }).await;
    assert!(!locked.is_finished(), "they ended by themselves");
    locked.await.unwrap();
    is_record(&db.get("t/3").await, 3);
}

async fn a_table_that_is_dropped_is_gone_for_all(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let callers = join_all((0..CALLERS).map(|n| db.call(Method::GET, &format!("t/{}", n % RECORDS + 1)).send()));
    for answer in while_locked(&db, "DROP TABLE t", callers).await {
        answer.refused(ErrorCode::TableNotFound);
    }
}

async fn a_field_that_is_dropped_meanwhile_breaks_nobody(host: Host) {
    let db = TestDb::new(host, TABLE).await;
    warm(&db).await;
    let callers = join_all((0..CALLERS).map(|n| {
        let id = n % RECORDS + 1;
        let call = db.call(Method::GET, &format!("t/{id}"));
        async move { (id, call.send().await) }
    }));
    let dropped = "ALTER TABLE t DROP COLUMN body, DROP COLUMN at";
    for (id, answer) in while_locked(&db, dropped, callers).await {
        let expected = json!({"name": format!("name {id}"), "id": id});
        assert_eq!(answer.payload(), expected);
    }
}

async fn many_reads_take_few_statements(_: Host) {
    let service: &'static Service = Box::leak(Box::new(faults::start(Edge::Without, &[]).await));
    faults::sql(service, "CREATE TABLE t AS SELECT * FROM posts").send().await.payload();
    faults::sql(service, "ALTER TABLE t ADD PRIMARY KEY (id)").send().await.payload();
    let path = |id: i64| format!("/api/v1/crud/demo/t/{id}");
    faults::get(service, &path(1)).send().await.payload();
    let executed = || {
        let counted = service.root_sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        let counted = counted.unwrap();
        let number = counted.split_whitespace().last().map(str::parse::<i64>);
        number.unwrap().unwrap()
    };
    let locked = lock(service, "demo", "DO 0").await;
    let before = executed();
    let calls = (0..300).map(|n| {
        let id = n % 100 + 1;
        let call = faults::get(service, &path(id));
        async move { (id, call.send().await) }
    });
    for (id, answer) in join_all(calls).await {
        assert_eq!(answer.payload()["id"], id);
    }
    let took = executed() - before;
    assert!(took < 150, "300 reads took {took} statements");
    locked.await.unwrap();
    tokio::task::spawn_blocking(|| service.stop()).await.unwrap().unwrap();
}

async fn a_killed_database_is_told_to_each(_: Host) {
    let service = faults::start(Edge::Without, &[]).await;
    let path = |n: i64| format!("/api/v1/crud/demo/posts/{}", n % 50 + 1);
    faults::get(&service, &path(1)).send().await.payload();
    let process = faults::database_process(&service).expect("a database");
    // A stopped MariaDB accepts statements but answers none.
    kill(process, Signal::STOP);
    let calls: Vec<_> = (0..CALLERS)
        .map(|n| {
            let call: Call = faults::get(&service, &path(n));
            tokio::spawn(call.attempt())
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    kill(process, Signal::KILL);
    for (n, call) in (0..).zip(calls) {
        let answer = call.await.unwrap().expect("an answer");
        match answer.code().as_str() {
            "ok" => assert_eq!(answer.payload()["id"], n % 50 + 1),
            _ => {
                answer.refused(ErrorCode::DatabaseUnavailable);
            }
        }
    }
    eventually("it is back", Duration::from_secs(60), || async {
        let read = faults::get(&service, &path(7)).send().await;
        (read.code() == "ok").then_some(())
    })
    .await;
    faults::stop(service).await;
}

async fn a_pool_without_connections_is_told_to_each(_: Host) {
    let settings = &[("SELKIE_POOL_SIZE", "1"), ("SELKIE_POOL_WAIT_TIMEOUT", "2s")];
    let service = faults::start(Edge::Without, settings).await;
    let read = |n: i64| faults::get(&service, &format!("/api/v1/crud/demo/posts/{n}"));
    read(1).send().await.payload();
    let sleeping = tokio::spawn(faults::sql(&service, "SELECT SLEEP(12) AS taken").attempt());
    eventually("the only connection is taken", SOON, || async { (running(&service, "AS taken") > 0).then_some(()) })
        .await;
    // One of the reads goes through an edge, which forwards it to this origin.
    let jwks = service.cli_ok(&["key", "jwks"]);
    let variables = [("ORIGINS", service.origin.as_str()), ("JWKS", jwks.trim())];
    let worker = tokio::task::block_in_place(|| Worker::start(&variables));
    let through = read(1).at(&worker.url);
    let calls = (1..=CALLERS).map(|n| read(n).send());
    for answer in join_all(calls.chain([through.send()])).await {
        answer.refused(ErrorCode::Overloaded);
    }
    sleeping.await.unwrap().expect("an answer").payload();
    for (n, answer) in (1..).zip(join_all((1..=CALLERS).map(|n| read(n).send())).await) {
        assert_eq!(answer.payload()["id"], n);
    }
    faults::stop(service).await;
}
