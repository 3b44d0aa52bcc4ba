//! `GET /api/v1/crud` and `/api/v1/crud/{db}`: the databases, tables and views that a key may use.

use crate::host::{Answer, Host};
use crate::roles::{Caller, create_role};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const CRUD: &str = "/api/v1/crud";

const TABLES: &[&str] = &[
    "CREATE TABLE orders (id INT PRIMARY KEY, n INT) COMMENT 'what \"was\" bought'",
    "CREATE TABLE `a b/ü` (id INT PRIMARY KEY)",
    "CREATE TABLE versions (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
    "CREATE SEQUENCE counter",
    "CREATE VIEW some AS SELECT id, n FROM orders",
    "CREATE VIEW grouped AS SELECT n, COUNT(*) AS c FROM orders GROUP BY n",
    "CREATE TABLE gone (id INT PRIMARY KEY)",
    "CREATE VIEW broken AS SELECT id FROM gone",
    "DROP TABLE gone",
];

const ALL: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

cases! {
    Both: [
        the_databases_of_the_project_are_listed,
        tables_and_views_are_listed_with_what_the_key_may_do,
        a_role_sees_only_what_its_rules_name,
        what_a_key_may_not_see_is_answered_like_what_does_not_exist,
        a_list_takes_no_option_and_is_only_read,
        a_long_list_is_whole,
    ],
}

async fn list(host: Host, path: &str, key: &str) -> Answer {
    host.get(path).key(key).send().await
}

fn names(answer: &Answer) -> Vec<String> {
    let payload = answer.payload();
    let items = payload.as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
}

async fn the_databases_of_the_project_are_listed(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for key in [&shared().full_key, &shared().read_key] {
        let answer = list(host, CRUD, key).await;
        let names = names(&answer);
        assert!(names.contains(&db.name) && names.contains(&"demo".to_owned()), "{answer}");
        assert!(names.is_sorted(), "{answer}");
        for system in ["information_schema", "mysql", "performance_schema", "sys", "selkie"] {
            assert!(!names.contains(&system.to_owned()), "{answer}");
        }
        let first = answer.payload()[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(first, ["name"]);
    }
    let project = unique("lister");
    shared().create_project(&project);
    let stranger = shared().create_key(&project, "full", &[]).token;
    assert_eq!(list(host, CRUD, &stranger).await.payload(), json!([]));
}

async fn tables_and_views_are_listed_with_what_the_key_may_do(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let path = format!("{CRUD}/{}", db.name);
    let reads = &ALL[..3];
    for (key, all) in [(&shared().full_key, &ALL[..]), (&shared().read_key, reads)] {
        let answer = list(host, &path, key).await;
        let item = |name: &str, kind: &str, comment: &str, methods: &[&str]| json!({"name": name, "kind": kind, "comment": comment, "methods": methods});
        let expected = json!([
            item("a b/ü", "table", "", all),
            item("broken", "view", "", &[]),
            item("grouped", "view", "", reads),
            item("orders", "table", "what \"was\" bought", all),
            item("some", "view", "", all),
            item("versions", "table", "", all),
        ]);
        assert_eq!(answer.payload(), expected, "{answer}");
        for table in ["orders", "some", "grouped", "broken"] {
            let schema = list(host, &format!("{path}/{table}/_schema"), key).await.payload();
            let listed = answer.payload();
            let listed = listed.as_array().unwrap().iter().find(|item| item["name"] == table).unwrap();
            assert_eq!(schema["methods"], listed["methods"], "{table}");
        }
    }
    db.exec("CREATE TABLE later (id INT PRIMARY KEY)").await;
    assert!(names(&list(host, &path, &shared().read_key).await).contains(&"later".to_owned()));
    let head = host.call(Method::HEAD, &path).send().await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), Some("application/json"));
}

async fn a_role_sees_only_what_its_rules_name(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    db.exec("CREATE TABLE missing (id INT PRIMARY KEY)").await;
    let empty = TestDb::new(host, &[]).await;
    let other = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    let role = json!({"tables": {
        format!("{}.orders", db.name): {"read": {"rows": {"id": 1}}, "delete": true},
        format!("{}.versions", db.name): {"insert": true},
        format!("{}.grouped", db.name): {"read": true, "insert": true},
        format!("{}.some", db.name): {},
        format!("{}.missing", db.name): {"read": true},
        format!("{}.*", empty.name): {"read": true},
        format!("{}.t", other.name): {},
    }});
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    db.exec("DROP TABLE missing").await;
    assert_eq!(names(&list(host, CRUD, &caller.key).await), [db.name.as_str()]);
    let tables = list(host, &format!("{CRUD}/{}", db.name), &caller.key).await;
    let expected = json!([
        {"name": "grouped", "kind": "view", "comment": "", "methods": ["GET", "HEAD", "OPTIONS"]},
        {"name": "orders", "kind": "table", "comment": "what \"was\" bought",
         "methods": ["GET", "HEAD", "OPTIONS", "DELETE"]},
        {"name": "versions", "kind": "table", "comment": "", "methods": ["POST"]},
    ]);
    assert_eq!(tables.payload(), expected, "{tables}");
    assert_eq!(list(host, &format!("{CRUD}/{}", empty.name), &caller.key).await.payload(), json!([]));
    let hidden = list(host, &format!("{CRUD}/{}", other.name), &caller.key).await;
    assert_eq!(hidden.refused(ErrorCode::DatabaseNotFound).get("hint"), None);
    let pattern = Caller::with_role(&db, &create_role(&json!({"tables": {"*": {"read": true}}})), json!({}));
    let seen = names(&list(host, CRUD, &pattern.key).await);
    assert!(seen.contains(&db.name) && seen.contains(&other.name) && !seen.contains(&empty.name), "{seen:?}");
    let missing = list(host, &format!("{CRUD}/{}x", db.name), &pattern.key).await;
    assert_eq!(missing.refused(ErrorCode::DatabaseNotFound).get("hint"), None);
}

async fn what_a_key_may_not_see_is_answered_like_what_does_not_exist(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let project = unique("lister");
    shared().create_project(&project);
    let stranger = shared().create_key(&project, "full", &[]).token;
    let full = &shared().full_key;
    for (database, key) in
        [(db.name.as_str(), &stranger), ("mysql", full), ("Information_Schema", full), ("selkie", full), ("nope", full)]
    {
        list(host, &format!("{CRUD}/{database}"), key).await.refused(ErrorCode::DatabaseNotFound);
    }
    let near = list(host, &format!("{CRUD}/dem"), full).await.refused(ErrorCode::DatabaseNotFound);
    assert_eq!(near["hint"], "Did you mean \"demo\"?");
    list(host, &format!("{CRUD}/{}", "d".repeat(65)), full).await.refused(ErrorCode::InvalidIdentifier);
}

async fn a_list_takes_no_option_and_is_only_read(host: Host) {
    for path in [CRUD.to_owned(), format!("{CRUD}/demo")] {
        for option in ["explain=true", "limit=1", "selectFields=name"] {
            let answer = host.get(&format!("{path}?{option}")).send().await;
            let error = answer.refused(ErrorCode::InvalidQueryOption);
            assert_eq!(error["hint"], "This request takes no options.", "{answer}");
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            let answer = host.call(method, &path).send().await;
            answer.refused(ErrorCode::MethodNotAllowed);
            assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{answer}");
        }
    }
    let operation = json!({"operations": [{"method": "GET", "path": CRUD}]});
    host.post("/api/v1/batch", &operation).send().await.refused(ErrorCode::InvalidBody);
}

/// The list has several chunks.
async fn a_long_list_is_whole(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let create = "CREATE TABLE t', n, ' (id INT PRIMARY KEY) ENGINE=MyISAM COMMENT ''', REPEAT('c', 2000), '''";
    db.exec(&format!("BEGIN NOT ATOMIC FOR n IN 100..199 DO EXECUTE IMMEDIATE CONCAT('{create}'); END FOR; END")).await;
    let tables = list(host, &format!("{CRUD}/{}", db.name), &shared().read_key).await;
    let expected: Vec<_> = (100..200).map(|n| format!("t{n}")).collect();
    assert_eq!(names(&tables), expected);
    let is_whole = |item: &Value| item["comment"].as_str().is_some_and(|comment| comment.len() == 2000);
    assert!(tables.payload().as_array().unwrap().iter().all(is_whole));
}
