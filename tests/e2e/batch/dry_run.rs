//! A batch with `dryRun` answers what each operation would answer, and changes nothing.

use super::{delete, get, post, put};
use crate::host::{Answer, Host};
use crate::roles::Caller;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_dry_run_answers_each_operation_and_changes_nothing,
        a_dry_run_fails_as_the_batch_would,
        a_dry_run_writes_to_no_table_that_cannot_be_undone,
        a_dry_run_keeps_to_a_role,
    ],
}

const SHOP: &[&str] = &[
    "CREATE TABLE authors (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL UNIQUE)",
    "CREATE TABLE posts (id INT PRIMARY KEY AUTO_INCREMENT, author INT NOT NULL, \
        FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE)",
    "INSERT INTO authors VALUES (1, 'Ada')",
    "INSERT INTO posts VALUES (1, 1)",
];

async fn dry(host: Host, operations: &[Value]) -> Answer {
    let body = json!({"operations": operations, "dryRun": true});
    host.call(Method::POST, "/api/v1/batch").json(&body).send().await
}

async fn a_dry_run_answers_each_operation_and_changes_nothing(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let (authors, posts) = (db.path("authors"), db.path("posts"));
    let done = dry(
        host,
        &[
            post(&authors, json!({"name": "Bo"})),
            post(&posts, json!({"author": {"$ref": 0}})),
            put(&format!("{authors}/1?returning=*"), json!({"name": "Cy"})),
            post(&format!("{authors}?dryRun=true"), json!({"name": "Bo2"})),
            get(&format!("{authors}?select=name&order=id")),
            delete(&format!("{authors}/1")),
            get(&format!("{posts}?select=author")),
        ],
    )
    .await;
    let expected = json!([2, 2, {"id": 1, "name": "Cy"}, 1, [{"name": "Cy"}, {"name": "Bo"}], 1, [{"author": 2}]]);
    assert_eq!(done.payload(), expected);
    assert_eq!(db.get("authors").await.payload(), json!([{"id": 1, "name": "Ada"}]));
    assert_eq!(db.get("posts").await.payload(), json!([{"id": 1, "author": 1}]));
}

async fn a_dry_run_fails_as_the_batch_would(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let operations =
        [post(&db.path("authors"), json!({"name": "Bo"})), post(&db.path("authors"), json!({"name": "Ada"}))];
    let error = dry(host, &operations).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(error["details"]["operation"], 1);
    assert_eq!(db.value("SELECT COUNT(*) FROM authors").await, 1);
}

async fn a_dry_run_writes_to_no_table_that_cannot_be_undone(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE logs (id INT PRIMARY KEY) ENGINE=Aria"]).await;
    let error = dry(host, &[post(&db.path("logs"), json!({"id": 1}))]).await.refused(ErrorCode::InvalidBody);
    assert!(error["message"].as_str().is_some_and(|message| message.contains("\"logs\"")), "{error}");
    assert_eq!(db.value("SELECT COUNT(*) FROM logs").await, 0);
    let upload = json!({"method": "POST", "path": "/api/v1/media", "body": {}});
    dry(host, &[upload]).await.refused(ErrorCode::InvalidBody);
}

async fn a_dry_run_keeps_to_a_role(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let rules = json!({"read": true, "update": {"rows": {"name": "Ada"}}});
    let caller = Caller::new(&db, [("authors", rules)], json!({}));
    let body =
        json!({"dryRun": true, "operations": [put(&format!("{}/1", db.path("authors")), json!({"name": "Bo"}))]});
    let call = host.call(Method::POST, "/api/v1/batch").key(&caller.key).json(&body);
    call.send().await.refused(ErrorCode::RoleForbids);
}
