//! Batches that are refused before anything is run.

use super::{batch, call, get, post};
use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        only_a_full_key_runs_a_batch,
        a_fault_of_form_anywhere_runs_nothing,
        a_batch_is_posted,
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

async fn a_fault_of_form_anywhere_runs_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    let t = db.path("t");
    let answer = batch(host, &[post(&t, json!({"n": 1})), get("a/b/c/d"), post(&t, json!({}))]).await;
    answer.refused(ErrorCode::RouteNotFound);
    assert_eq!(db.get("t").await.payload(), json!([]));
    // The refused insert didn't use up an id.
    assert_eq!(batch(host, &[post(&t, json!({}))]).await.payload(), json!([1]));
}

async fn a_batch_is_posted(host: Host) {
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = host.call(method, "/api/v1/batch").send().await;
        answer.refused(ErrorCode::MethodNotAllowed);
        assert_eq!(answer.header("allow"), Some("POST"));
    }
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
