//! Batches that are refused before anything is run.

use super::{batch, call, get, post};
use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        only_a_full_key_runs_a_batch,
        only_operations_on_records_stand_in_a_batch,
        a_fault_of_form_anywhere_runs_nothing,
        the_body_holds_operations_and_nothing_else,
        a_batch_is_posted_without_options,
        another_projects_key_sees_nothing,
    ],
}

const T: &[&str] = &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"];

async fn only_a_full_key_runs_a_batch(host: Host) {
    let db = TestDb::new(host, T).await;
    let read = call(host, &[get(&db.path("t"))]).key(&shared().read_key);
    read.send().await.refused(ErrorCode::FullAccessRequired);
    let nobody = call(host, &[get(&db.path("t"))]).no_key();
    nobody.send().await.refused(ErrorCode::MissingKey);
}

async fn only_operations_on_records_stand_in_a_batch(host: Host) {
    let db = TestDb::new(host, T).await;
    let t = db.path("t");
    for operation in [
        post("/api/v1/sql", json!({"query": "DELETE FROM t"})),
        post("/api/v1/batch", json!({"operations": [get(&t)]})),
        get("/api/v1/media"),
        get("/healthz"),
        get(&format!("http://127.0.0.1{t}")),
        get(&format!("{t}/_schema")),
        json!({"method": "OPTIONS", "path": t}),
        json!({"method": "HEAD", "path": t}),
        json!({"method": "TRACE", "path": t}),
        json!({"method": "GET", "path": t, "body": {}}),
        json!({"method": "GET", "path": t, "headers": {}}),
        json!({"method": "GET"}),
        json!({"path": t}),
        json!("GET"),
    ] {
        let foreign = operation["path"] == format!("http://127.0.0.1{t}");
        let answer = batch(host, &[post(&t, json!({"n": 1})), operation]).await;
        let error = answer.refused(if foreign { ErrorCode::RouteNotFound } else { ErrorCode::InvalidBody });
        assert_eq!(error["details"]["operation"], 1, "{answer}");
    }
    assert_eq!(db.get("t").await.payload(), json!([]));
}

async fn a_fault_of_form_anywhere_runs_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    let t = db.path("t");
    for (operation, code) in [
        (get(&format!("{t}?limit=x")), ErrorCode::InvalidQueryOption),
        (get(&format!("{t}?nonsense=1")), ErrorCode::InvalidQueryOption),
        (json!({"method": "DELETE", "path": t}), ErrorCode::InvalidBody),
        (json!({"method": "DELETE", "path": t, "body": {"deleteKeyValues": []}}), ErrorCode::InvalidFilter),
        (json!({"method": "PUT", "path": format!("{t}/1"), "body": {}}), ErrorCode::InvalidBody),
        (json!({"method": "POST", "path": t}), ErrorCode::InvalidJson),
        (json!({"method": "POST", "path": format!("{t}/1"), "body": {}}), ErrorCode::MethodNotAllowed),
        (get("a/b/c/d"), ErrorCode::RouteNotFound),
        (get(&format!("{t}/%zz")), ErrorCode::InvalidIdentifier),
        (get(&format!("{t}/{}", "x".repeat(17_000))), ErrorCode::UriTooLong),
        (post(&t, json!({"n": {"$ref": 1}})), ErrorCode::InvalidBody),
        (post(&t, json!({"n": {"$ref": 2}})), ErrorCode::InvalidBody),
        (post(&t, json!({"n": {"$ref": "0"}})), ErrorCode::InvalidBody),
        (get(&format!("{t}/$ref:9")), ErrorCode::InvalidBody),
    ] {
        let answer = batch(host, &[post(&t, json!({"n": 1})), operation, post(&t, json!({}))]).await;
        let error = answer.refused(code);
        assert_eq!(error["details"]["operation"], 1, "{answer}");
    }
    assert_eq!(db.get("t").await.payload(), json!([]));
    // The refused insert didn't use up an id.
    assert_eq!(batch(host, &[post(&t, json!({}))]).await.payload(), json!([1]));
}

async fn the_body_holds_operations_and_nothing_else(host: Host) {
    let send = |body: Value| host.call(Method::POST, "/api/v1/batch").json(&body).send();
    for body in [
        json!({}),
        json!({"operations": []}),
        json!({"operations": {}}),
        json!({"operations": [], "atomic": true}),
        json!([]),
    ] {
        let answer = send(body).await;
        assert_eq!(answer.refused(ErrorCode::InvalidBody).get("details"), None, "{answer}");
    }
    let broken = host.call(Method::POST, "/api/v1/batch").bytes("{\"operations\": [");
    broken.send().await.refused(ErrorCode::InvalidJson);
    let xml = host.call(Method::POST, "/api/v1/batch").bytes("<x/>").header("content-type", "text/xml");
    xml.send().await.refused(ErrorCode::UnsupportedMediaType);
}

async fn a_batch_is_posted_without_options(host: Host) {
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = host.call(method, "/api/v1/batch").send().await;
        answer.refused(ErrorCode::MethodNotAllowed);
        assert_eq!(answer.header("allow"), Some("POST"));
    }
    let odd = host.call(Method::POST, "/api/v1/batch?atomic=1");
    odd.json(&json!({"operations": []})).send().await.refused(ErrorCode::InvalidQueryOption);
    let db = TestDb::new(host, T).await;
    for header in ["idempotency-key", "if-match", "if-none-match"] {
        let insert = post(&db.path("t"), json!({"n": 1}));
        let marked = call(host, &[insert]).header(header, "\"x\"");
        marked.send().await.refused(ErrorCode::InvalidQueryOption);
    }
    assert_eq!(db.get("t").await.payload(), json!([]));
    let below = host.call(Method::POST, "/api/v1/batch/1");
    below.json(&json!({})).send().await.refused(ErrorCode::RouteNotFound);
}

async fn another_projects_key_sees_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    let project = crate::test_db::unique("batcher");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let answer = call(host, &[post(&db.path("t"), json!({"n": 1}))]).key(&key).send().await;
    let error = answer.refused(ErrorCode::DatabaseNotFound);
    assert_eq!(error["details"]["operation"], 0);
    assert_eq!(db.get("t").await.payload(), json!([]));
}
