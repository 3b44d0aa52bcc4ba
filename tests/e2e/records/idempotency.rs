//! `Idempotency-Key`: an insert that is sent again with the same key is done only once.

use crate::host::{Answer, Call, Host};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

pub(super) const T: &[&str] =
    &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, n INT UNIQUE)"];

cases! {
    Both: [
        a_repeated_insert_gets_the_first_answer_and_inserts_nothing,
        a_repeated_batch_gets_the_first_answer,
        an_answer_too_large_to_keep_keeps_nothing,
        inserts_that_may_be_in_conflict_are_kept_too,
        another_body_table_or_option_is_a_mismatch,
        a_failed_insert_leaves_the_key_free,
        of_many_at_once_one_inserts,
        a_key_that_is_held_is_in_progress,
        an_old_receipt_is_replaced,
        a_key_of_the_wrong_form_is_refused,
        a_key_in_quotes_is_its_content,
        quotes_within_a_key_make_another_key,
        other_requests_refuse_the_header,
        a_table_without_transactions_refuses_the_header,
        keys_of_databases_do_not_meet,
        keys_of_projects_do_not_meet,
        keys_side_by_side_do_not_wait_for_each_other,
    ],
}

pub(super) fn insert(db: &TestDb, rest: &str, key: &str, body: &Value) -> Call {
    db.call(Method::POST, rest).header("idempotency-key", key).json(body)
}

pub(super) fn key() -> String {
    unique("key-of-this-run-")
}

#[track_caller]
pub(super) fn replays(again: &Answer, first: &Answer) {
    assert_eq!(again.status, 200, "{again}");
    assert_eq!(again.body, first.body, "byte for byte");
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{again}");
}

pub(super) async fn count(db: &TestDb) -> Value {
    db.value("SELECT COUNT(*) FROM t").await
}

async fn a_repeated_insert_gets_the_first_answer_and_inserts_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    let (key, body) = (key(), json!({"name": "a"}));
    let first = insert(&db, "t", &key, &body).send().await;
    assert_eq!(first.payload(), 1);
    assert_eq!(first.header("idempotency-replayed"), None);
    for _ in 0..3 {
        replays(&insert(&db, "t", &key, &body).send().await, &first);
    }
    // The stored answer is repeated even if the record was changed or deleted.
    assert_eq!(db.delete("t/1").await.payload(), 1);
    replays(&insert(&db, "t", &key, &body).send().await, &first);
    assert_eq!(count(&db).await, 0);
    let other = insert(&db, "t", &self::key(), &body).send().await;
    assert_eq!(other.payload(), 2, "another key inserts");
    assert_eq!(db.post("t", &body).await.payload(), 3, "as does none");
}

async fn a_repeated_batch_gets_the_first_answer(host: Host) {
    let db = TestDb::new(host, T).await;
    let rows: Vec<Value> = (0..10_000).map(|n| json!({"name": "b", "n": n})).collect();
    let (key, body) = (key(), json!({"batchData": rows}));
    let first = insert(&db, "t", &key, &body).send().await;
    assert_eq!(first.payload().as_array().map(Vec::len), Some(10_000));
    replays(&insert(&db, "t", &key, &body).send().await, &first);
    assert_eq!(count(&db).await, 10_000);
}

/// Inserts 1,500 records of 12 KB. MariaDB inserts 1,000 by a statement, so only the answers of all statements together
/// are too large.
async fn an_answer_too_large_to_keep_keeps_nothing(host: Host) {
    let table = "CREATE TABLE wide (id INT PRIMARY KEY AUTO_INCREMENT, n INT, body TEXT DEFAULT (REPEAT('x', 12000)))";
    let db = TestDb::new(host, &[table]).await;
    let body = json!({"batchData": vec![json!({"n": 1}); 1_500]});
    db.post("wide?returning=*", &body).await.refused(ErrorCode::InvalidBody);
    let key = key();
    insert(&db, "wide?returning=*", &key, &body).send().await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM wide").await, 0);
    // The refused request left the key free for a corrected request.
    let first = insert(&db, "wide?returning=n", &key, &body).send().await;
    assert_eq!(first.payload().as_array().map(Vec::len), Some(1_500));
    replays(&insert(&db, "wide?returning=n", &key, &body).send().await, &first);
    // A single record may be too large as well.
    let column = "LONGTEXT DEFAULT (REPEAT('x', 9000000))";
    db.exec(&format!("CREATE TABLE tall (id INT PRIMARY KEY AUTO_INCREMENT, n INT, one {column}, two {column})")).await;
    insert(&db, "tall?returning=*", &self::key(), &json!({"n": 2})).send().await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM tall").await, 0);
}

async fn inserts_that_may_be_in_conflict_are_kept_too(host: Host) {
    let db = TestDb::new(host, T).await;
    db.post("t", &json!({"name": "a", "n": 1})).await.payload();
    for (n, rest) in [(2, "t?onConflict=ignore"), (3, "t?onConflict=update")] {
        let key = key();
        let body = json!({"batchData": [{"name": "b", "n": 1}, {"name": "c", "n": n}]});
        let first = insert(&db, rest, &key, &body).send().await;
        assert_eq!(first.payload().as_array().map(Vec::len), Some(2));
        // A repeated request doesn't update the record again.
        db.exec("UPDATE t SET name = 'later' WHERE n = 1").await;
        replays(&insert(&db, rest, &key, &body).send().await, &first);
        assert_eq!(db.value("SELECT name FROM t WHERE n = 1").await, "later");
    }
    let null = insert(&db, "t?onConflict=ignore", &key(), &json!({"name": "z", "n": 1}));
    assert_eq!(null.clone().send().await.payload(), Value::Null);
    assert_eq!(null.send().await.payload(), Value::Null);
    assert_eq!(count(&db).await, 3);
}

async fn another_body_table_or_option_is_a_mismatch(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))").await;
    let (key, body) = (key(), json!({"name": "a"}));
    let first = insert(&db, "t", &key, &body).send().await;
    assert_eq!(first.payload(), 1);
    for (rest, body) in [
        ("t", json!({"name": "b"})),
        ("t", json!({"batchData": [{"name": "a"}]})),
        ("t?onConflict=update", body.clone()),
        ("u", body.clone()),
    ] {
        let other = insert(&db, rest, &key, &body).send().await;
        other.refused(ErrorCode::IdempotencyMismatch);
        assert_eq!(other.header("idempotency-replayed"), None);
    }
    assert_eq!(count(&db).await, 1);
    assert_eq!(db.value("SELECT COUNT(*) FROM u").await, 0);
    // The path may be encoded differently.
    let spelled = insert(&db, "%74", &key, &body).send().await;
    replays(&spelled, &first);
}

async fn a_failed_insert_leaves_the_key_free(host: Host) {
    let db = TestDb::new(host, T).await;
    db.post("t", &json!({"name": "a", "n": 1})).await.payload();
    let key = key();
    let taken = json!({"batchData": [{"name": "b", "n": 2}, {"name": "c", "n": 1}]});
    for _ in 0..2 {
        insert(&db, "t", &key, &taken).send().await.refused(ErrorCode::DuplicateKey);
    }
    assert_eq!(count(&db).await, 1);
    // The key is free even for another body, since nothing of a failed insert is stored.
    let long = json!({"name": "much too long for twenty characters"});
    insert(&db, "t", &key, &long).send().await.refused(ErrorCode::InvalidValue);
    insert(&db, "t", &key, &json!({"nope": 1})).send().await.refused(ErrorCode::UnknownField);
    db.delete_where("t", &json!({"deleteKeyValues": [{"key": "n", "value": 1}]})).await.payload();
    let first = insert(&db, "t", &key, &taken).send().await;
    assert_eq!(first.payload().as_array().map(Vec::len), Some(2));
    replays(&insert(&db, "t", &key, &taken).send().await, &first);
    assert_eq!(count(&db).await, 2);
}

async fn of_many_at_once_one_inserts(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("CREATE TRIGGER slow BEFORE INSERT ON t FOR EACH ROW SET NEW.name = IF(SLEEP(0.3), '', NEW.name)").await;
    let (key, body) = (key(), json!({"name": "a"}));
    let calls = (0..20).map(|_| insert(&db, "t", &key, &body).send());
    let answers = futures_util::future::join_all(calls).await;
    let fresh: Vec<&Answer> = answers
        .iter()
        .filter(|answer| answer.status == 200 && answer.header("idempotency-replayed").is_none())
        .collect();
    assert_eq!(fresh.len(), 1, "one inserts");
    for answer in &answers {
        match answer.status.as_u16() {
            200 => assert_eq!(answer.body, fresh[0].body),
            _ => drop(answer.refused(ErrorCode::IdempotencyInProgress)),
        }
    }
    assert_eq!(count(&db).await, 1);
    replays(&insert(&db, "t", &key, &body).send().await, fresh[0]);
}

/// Waits until root counts more than zero rows, including uncommitted ones.
async fn seen_by_root(what: &str, query: impl Fn() -> String) {
    let limit = std::time::Duration::from_secs(3);
    crate::case::eventually(what, limit, || async {
        let query = format!("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; {}", query());
        let count = shared().root_sql(&query).expect("root");
        (count.trim() != "0").then_some(())
    })
    .await;
}

async fn a_key_that_is_held_is_in_progress(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("INSERT INTO t (name, n) VALUES ('a', 1)").await;
    // The lock on this row makes the insert below wait.
    let holder =
        format!("START TRANSACTION; UPDATE `{}`.t SET name = 'held' WHERE n = 1; DO SLEEP(4); COMMIT", db.name);
    let held = tokio::task::spawn_blocking(move || shared().root_sql(&holder));
    seen_by_root("the row is held", || format!("SELECT COUNT(*) FROM `{}`.t WHERE name = 'held'", db.name)).await;
    // The first insert with a key creates the table of receipts, which the query below reads.
    let body = json!({"name": "c", "n": 2});
    insert(&db, "t", &key(), &body).send().await.payload();
    let (key, body) = (key(), json!({"name": "b", "n": 1}));
    let first = insert(&db, "t?onConflict=update", &key, &body).send();
    let second = async {
        seen_by_root("the first one has taken the key", || {
            let receipts = format!("`{}`.selkie_receipts", db.name);
            format!("SELECT COUNT(*) FROM {receipts} WHERE key_hash = UNHEX(SHA2('{key}', 256))")
        })
        .await;
        insert(&db, "t?onConflict=update", &key, &body).send().await
    };
    let (first, second) = tokio::join!(first, second);
    let error = second.refused(ErrorCode::IdempotencyInProgress);
    assert_eq!(error["retryable"], true);
    assert_eq!(first.payload(), 1);
    held.await.unwrap().unwrap();
    let third = insert(&db, "t?onConflict=update", &key, &body).send().await;
    replays(&third, &first);
}

async fn an_old_receipt_is_replaced(host: Host) {
    let db = TestDb::new(host, T).await;
    let (key, body) = (key(), json!({"name": "a"}));
    let first = insert(&db, "t", &key, &body).send().await;
    let age = |seconds: u32| {
        let statement = format!(
            "UPDATE selkie_receipts SET created_at = UNIX_TIMESTAMP() - {seconds} \
             WHERE key_hash = UNHEX(SHA2('{key}', 256))"
        );
        db.behind(&statement);
    };
    age(24 * 60 * 60 - 60);
    replays(&insert(&db, "t", &key, &body).send().await, &first);
    age(24 * 60 * 60 + 1);
    // Expired receipts don't cause a mismatch.
    let calls = (0..5).map(|_| insert(&db, "t", &key, &json!({"name": "b"})).send());
    let answers = futures_util::future::join_all(calls).await;
    let fresh = answers.iter().filter(|answer| answer.status == 200 && answer.header("idempotency-replayed").is_none());
    assert_eq!(fresh.count(), 1, "one inserts");
    assert_eq!(count(&db).await, 2);
    let again = insert(&db, "t", &key, &json!({"name": "b"})).send().await;
    assert_eq!(again.payload(), 2);
    insert(&db, "t", &key, &body).send().await.refused(ErrorCode::IdempotencyMismatch);
}

async fn a_key_of_the_wrong_form_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let long = "k".repeat(256);
    for key in ["", "two words", &long, "ümlaut", "\"open", "\"\"", "\"k\"; a=1", "\"a\\b\""] {
        let answer = insert(&db, "t", key, &json!({"name": "a"})).send().await;
        let error = answer.refused(ErrorCode::InvalidQueryOption);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("Idempotency-Key"), "{answer}");
    }
    assert_eq!(count(&db).await, 0);
    let longest = key() + &"!~".repeat(100);
    let answer = insert(&db, "t", &longest[..200], &json!({"name": "a"}));
    assert_eq!(answer.send().await.payload(), 1);
}

async fn a_key_in_quotes_is_its_content(host: Host) {
    let db = TestDb::new(host, T).await;
    let body = json!({"name": "a"});
    for (n, key, content) in [(1, key(), None), (2, key(), Some(" of two words"))] {
        let quoted = format!("\"{key}{}\"", content.unwrap_or_default());
        let first = insert(&db, "t", &quoted, &body).send().await;
        assert_eq!(first.payload(), n);
        replays(&insert(&db, "t", &quoted, &body).send().await, &first);
        if content.is_none() {
            replays(&insert(&db, "t", &key, &body).send().await, &first);
        }
        let other = insert(&db, "t", &quoted, &json!({"name": "b"}));
        other.send().await.refused(ErrorCode::IdempotencyMismatch);
    }
    assert_eq!(count(&db).await, 2);
}

async fn quotes_within_a_key_make_another_key(host: Host) {
    let db = TestDb::new(host, T).await;
    let (key, body) = (key(), json!({"name": "a"}));
    for (n, quoted) in [(1, format!("\"\\\"{key}\\\"\"")), (2, format!("\"{key}\""))] {
        assert_eq!(insert(&db, "t", &quoted, &body).send().await.payload(), n, "{quoted}");
    }
}

async fn other_requests_refuse_the_header(host: Host) {
    let db = TestDb::new(host, T).await;
    db.post("t", &json!({"name": "a"})).await.payload();
    let some = json!({"name": "b"});
    let many = json!({"updateKeyValues": [{"key": "id", "value": 1}], "data": some});
    let path = format!("/api/v1/crud/{}/t/1", db.name);
    let batch = json!({"operations": [{"method": "DELETE", "path": path}]});
    for call in [
        db.call(Method::GET, "t"),
        db.call(Method::GET, "t/1"),
        db.call(Method::PUT, "t/1").json(&some),
        db.call(Method::PATCH, "t/1").json(&some),
        db.call(Method::PUT, "t").json(&many),
        db.call(Method::DELETE, "t/1"),
        db.call(Method::POST, "t/query").json(&json!({})),
        db.sql("DELETE FROM t"),
        db.host.post("/api/v1/batch", &batch),
    ] {
        let answer = call.header("idempotency-key", &key()).send().await;
        let error = answer.refused(ErrorCode::InvalidQueryOption);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("Idempotency-Key"), "{answer}");
    }
    assert_eq!(db.value("SELECT name FROM t").await, "a");
}

async fn a_table_without_transactions_refuses_the_header(host: Host) {
    let db = TestDb::new(host, T).await;
    for engine in ["Aria", "MyISAM", "MEMORY"] {
        let table = format!("CREATE TABLE plain (id INT PRIMARY KEY, n INT) ENGINE = {engine}");
        db.exec(&table).await;
        let answer = insert(&db, "plain", &key(), &json!({"id": 1})).send().await;
        let error = answer.refused(ErrorCode::InvalidQueryOption);
        assert!(error["message"].as_str().unwrap_or_default().contains("plain"), "{answer}");
        assert_eq!(db.value("SELECT COUNT(*) FROM plain").await, 0);
        db.exec("DROP TABLE plain").await;
    }
    db.exec("CREATE VIEW v AS SELECT id, name FROM t").await;
    insert(&db, "v", &key(), &json!({"name": "a"})).send().await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(count(&db).await, 0);
}

async fn keys_of_databases_do_not_meet(host: Host) {
    let (one, two) = (TestDb::new(host, T).await, TestDb::new(host, T).await);
    let (key, body) = (key(), json!({"name": "a"}));
    for db in [&one, &two] {
        let first = insert(db, "t", &key, &body).send().await;
        assert_eq!(first.payload(), 1);
        assert_eq!(first.header("idempotency-replayed"), None);
        replays(&insert(db, "t", &key, &body).send().await, &first);
    }
}

/// Creates another project with a database; returns their names and the project's full key.
pub(super) async fn elsewhere(host: Host) -> (String, String, String) {
    let project = unique("receiver");
    shared().create_project(&project);
    let token = shared().create_key(&project, "full", &[]).token;
    let database = format!("{project}_a");
    for query in [
        format!("CREATE DATABASE {database}"),
        format!("CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT)"),
    ] {
        let call = host.sql(&json!({"query": query})).key(&token);
        call.send().await.payload();
    }
    (project, database, token)
}

async fn keys_of_projects_do_not_meet(host: Host) {
    let db = TestDb::new(host, T).await;
    let (_, database, token) = elsewhere(host).await;
    let (key, body) = (key(), json!({"name": "a"}));
    insert(&db, "t", &key, &body).send().await.payload();
    let call = host.post(&format!("/api/v1/crud/{database}/t"), &body).key(&token).header("idempotency-key", &key);
    let answer = call.send().await;
    assert_eq!(answer.payload(), 1);
    assert_eq!(answer.header("idempotency-replayed"), None);
    // SQL can't read another project's receipts either.
    let query = format!("SELECT * FROM {}.selkie_receipts", db.name);
    let call = host.sql(&json!({"query": query})).key(&token);
    call.send().await.refused(ErrorCode::PermissionDenied);
}

/// Concurrent inserts whose keys have neighbouring hashes in the index of the receipts do not wait for each other.
async fn keys_side_by_side_do_not_wait_for_each_other(host: Host) {
    let db = TestDb::new(host, T).await;
    let keys: Vec<String> = (0..60).map(|_| key()).collect();
    for round in 0..3 {
        let calls = keys.iter().map(|key| {
            let body = json!({"name": key.chars().rev().take(10).collect::<String>()});
            insert(&db, "t", key, &body).send()
        });
        for answer in futures_util::future::join_all(calls).await {
            answer.payload();
            let replayed = answer.header("idempotency-replayed").is_some();
            assert_eq!(replayed, round > 0, "{answer}");
        }
    }
    assert_eq!(count(&db).await, 60);
}
