//! The table that stores the receipts of `Idempotency-Key`: created on first use, owned by the project, and not
//! accessible by the records routes.

use super::idempotency::{T, count, elsewhere, insert, key, replays};
use crate::case::eventually;
use crate::host::{Answer, Host};
use crate::service::{Edge, Service, shared};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        first_uses_at_once_make_one_table,
        receipts_that_were_dropped_are_forgotten,
        an_account_that_can_keep_no_receipts_is_told_so,
        an_account_has_and_sees_no_more_for_its_receipts,
        the_table_of_receipts_is_none_of_the_interface,
    ],
    Own: [old_receipts_are_deleted_at_the_start_whatever_the_project_put_beside_them],
}

async fn first_uses_at_once_make_one_table(host: Host) {
    let db = TestDb::new(host, T).await;
    let keys: Vec<String> = (0..12).map(|_| key()).collect();
    let body = json!({"name": "a"});
    for round in 0..3 {
        if round > 0 {
            db.behind("DROP TABLE selkie_receipts");
        }
        let calls = keys.iter().map(|key| insert(&db, "t", key, &body).send());
        for answer in futures_util::future::join_all(calls).await {
            answer.payload();
            assert_eq!(answer.header("idempotency-replayed"), None, "{answer}");
        }
        assert_eq!(count(&db).await, 12 * (round + 1));
    }
    // All inserts have the same key, so only one is done.
    for _ in 0..5 {
        db.behind("DROP TABLE selkie_receipts; DELETE FROM t");
        let calls = (0..8).map(|_| insert(&db, "t", &keys[0], &body).send());
        let answers = futures_util::future::join_all(calls).await;
        let (done, refused): (Vec<&Answer>, Vec<&Answer>) = answers.iter().partition(|answer| answer.status == 200);
        for answer in refused {
            answer.refused(ErrorCode::IdempotencyInProgress);
        }
        let fresh = |answer: &&&Answer| answer.header("idempotency-replayed").is_none();
        assert_eq!(done.iter().filter(fresh).count(), 1, "one inserts");
        assert_eq!(count(&db).await, 1);
    }
}

async fn receipts_that_were_dropped_are_forgotten(host: Host) {
    let db = TestDb::new(host, T).await;
    let (key, body) = (key(), json!({"name": "a"}));
    for id in 1..4 {
        let first = insert(&db, "t", &key, &body).send().await;
        assert_eq!(first.payload(), id);
        assert_eq!(first.header("idempotency-replayed"), None);
        replays(&insert(&db, "t", &key, &body).send().await, &first);
        db.behind("DROP TABLE selkie_receipts");
    }
    // If the insert's own table is missing, the error names that table.
    db.behind("DROP TABLE t");
    let error = insert(&db, "t", &key, &body).send().await;
    let error = error.refused(ErrorCode::TableNotFound);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"t\""), "{error}");
    db.exec(T[0]).await;
    let first = insert(&db, "t", &key, &body).send().await;
    assert_eq!(first.payload(), 1);
    assert_eq!(first.header("idempotency-replayed"), None);
    // The failed insert rolled back its receipt, but the table of receipts, which it had created, remains.
    db.behind("DROP TABLE selkie_receipts");
    let long = json!({"name": "much too long for twenty characters"});
    let failed = insert(&db, "t", &key, &long).send().await;
    failed.refused(ErrorCode::InvalidValue);
    assert_eq!(db.value("SELECT COUNT(*) FROM selkie_receipts").await, 0);
    assert_eq!(count(&db).await, 1);
}

fn statement_of_the_docs() -> &'static str {
    let text = include_str!("../../../docs/accounts.md");
    let start = text.find("CREATE TABLE selkie_receipts").expect("one");
    let length = text[start..].find(';').expect("its end");
    &text[start..start + length]
}

async fn an_account_that_can_keep_no_receipts_is_told_so(host: Host) {
    let (project, body, key) = (unique("receiver"), json!({"name": "a"}), key());
    shared().create_project(&project);
    let token = shared().create_key(&project, "full", &[]).token;
    let database = format!("{project}_a");
    // The right is revoked before the account's first connection, so that no session has earlier rights.
    let prepared = format!(
        "REVOKE CREATE ON `{project}\\_%`.* FROM 'selkie-{project}-rw'@'localhost'; \
         CREATE DATABASE {database}; USE {database}; \
         CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT)"
    );
    shared().root_sql(&prepared).expect("root");
    let root = |statements: &str| {
        let text = format!("USE {database}; {statements}");
        shared().root_sql(&text).expect("root")
    };
    let send = async || {
        host.post(&format!("/api/v1/crud/{database}/t"), &body).key(&token).header("idempotency-key", &key).send().await
    };
    let told = |answer: Answer| {
        let error = answer.refused(ErrorCode::PermissionDenied);
        let (message, hint) = (error["message"].to_string(), error["hint"].to_string());
        assert!(message.contains("Idempotency-Key"), "{error}");
        assert!(hint.contains("selkie_receipts"), "{error}");
    };
    told(send().await);
    root("CREATE TABLE selkie_receipts (id INT)");
    told(send().await);
    assert_eq!(root("SELECT COUNT(*) FROM t").trim(), "0");
    root("DROP TABLE selkie_receipts");
    root(statement_of_the_docs());
    let first = send().await;
    first.payload();
    replays(&send().await, &first);
    // The table that the service creates is the one in the docs.
    let made = "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_KEY, ENGINE, TABLE_COMMENT \
         FROM information_schema.COLUMNS JOIN information_schema.TABLES \
         USING (TABLE_SCHEMA, TABLE_NAME) WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = 'selkie_receipts' ORDER BY ORDINAL_POSITION";
    let db = TestDb::new(host, T).await;
    insert(&db, "t", &key, &body).send().await.payload();
    assert_eq!(db.behind(made), root(made));
}

async fn an_account_has_and_sees_no_more_for_its_receipts(host: Host) {
    let (project, database, token) = elsewhere(host).await;
    let seen = async || {
        let mut all = Vec::new();
        for query in [
            "SELECT TABLE_SCHEMA, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES ORDER BY 1, 2",
            "SHOW DATABASES",
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA",
            "SELECT DISTINCT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT LIKE '%schema'",
        ] {
            let call = host.sql(&json!({"query": query})).key(&token);
            all.push(call.send().await.payload());
        }
        all
    };
    let before = seen().await;
    assert_eq!(before[3], json!([{"TABLE_SCHEMA": database}]), "{project}");
    let call = host
        .post(&format!("/api/v1/crud/{database}/t"), &json!({"name": "a"}))
        .key(&token)
        .header("idempotency-key", &key());
    call.send().await.payload();
    assert_eq!(seen().await, before);
}

async fn the_table_of_receipts_is_none_of_the_interface(host: Host) {
    let db = TestDb::new(host, T).await;
    let body = json!({"name": "a"});
    insert(&db, "t", &key(), &body).send().await.payload();
    // The answers for the table of receipts must be the same as for this name, which no table has.
    let (ours, none) = ("selkie_receipts", "selkie_deceipts");
    let join = |table: &str| {
        let joins =
            json!([{"tableName": table, "joinType": "JOIN", "match": {"source": "id", "target": "created_at"}}]);
        format!("t?{}", crate::host::option("join", &joins))
    };
    let changed = json!({"created_at": 1});
    let calls = |table: &str| {
        let path = format!("/api/v1/crud/{}/{table}", db.name);
        let batch = json!({"operations": [{"method": "POST", "path": path, "body": changed}]});
        vec![
            db.call(Method::GET, table),
            db.call(Method::HEAD, table),
            db.call(Method::GET, &format!("{table}?count=exact")),
            db.call(Method::GET, &format!("{table}/1")),
            db.call(Method::GET, &format!("{table}/_schema")),
            db.call(Method::GET, &join(table)),
            db.call(Method::POST, table).json(&changed),
            db.call(Method::POST, &format!("{table}/query")).json(&json!({})),
            insert(&db, table, &key(), &changed),
            db.call(Method::PUT, &format!("{table}/1")).json(&changed),
            db.call(Method::PATCH, &format!("{table}/1")).json(&changed),
            db.call(Method::DELETE, &format!("{table}/1")),
            db.host.post("/api/v1/batch", &batch),
        ]
    };
    for (call, other) in calls(ours).into_iter().zip(calls(none)) {
        let (answer, other) = (call.send().await, other.send().await);
        assert_eq!(answer.status, other.status, "{answer}");
        let said = |answer: &Answer| match answer.method {
            Method::HEAD => answer.text(),
            _ => {
                let mut body = answer.json();
                body["error"]["requestId"].take();
                body.to_string()
            }
        };
        assert_eq!(said(&answer), said(&other).replace(none, ours));
        assert!(answer.status.is_client_error(), "{answer}");
    }
    // No hint names the table of receipts, whatever the case of the letters.
    for near in ["selkie_receipt", "Selkie_Receipts", "selkie_receipts2"] {
        let answer = db.get(near).await;
        let error = answer.refused(ErrorCode::TableNotFound);
        assert_eq!(error.get("hint").filter(|hint| !hint.is_null()), None, "{answer}");
    }
    // In SQL, the receipts are an ordinary table of the project.
    assert_eq!(db.value("SELECT COUNT(*) FROM selkie_receipts WHERE answer = '1'").await, 1);
}

async fn old_receipts_are_deleted_at_the_start_whatever_the_project_put_beside_them(_: Host) {
    const PEAK_MAX_BYTES: u64 = 128 * 1024 * 1024;
    let service = Service::start(Edge::Without, &[]).expect("a service");
    let sql = |service: &Service, statements: &str| {
        service.root_sql(&format!("USE {}; {statements}", service.database)).expect("it runs")
    };
    let create = statement_of_the_docs().replace("BINARY(32) NOT NULL PRIMARY KEY", "LONGBLOB NOT NULL");
    assert!(create.contains("key_hash LONGBLOB"), "{create}");
    sql(&service, &create);
    let receipts = "INSERT INTO selkie_receipts (key_hash, fingerprint, created_at)";
    sql(&service, &format!("{receipts} SELECT REPEAT('x', 10000000), '', 0 FROM seq_1_to_40"));
    sql(&service, &format!("{receipts} VALUES (REPEAT('o', 32), '', 0), (REPEAT('n', 32), '', UNIX_TIMESTAMP())"));
    let directory = service.stop_and_keep().expect("an end");
    let service = Service::start_in(directory, Edge::Without, &[]).expect("a service");
    let short = || sql(&service, "SELECT LEFT(key_hash, 1) FROM selkie_receipts WHERE LENGTH(key_hash) = 32");
    eventually("the old receipt is deleted", Duration::from_secs(60), || async {
        (short().trim() == "n").then_some(())
    })
    .await;
    assert!(service.peak_bytes() < PEAK_MAX_BYTES, "{} bytes", service.peak_bytes());
}
