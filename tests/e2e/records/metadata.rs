//! `OPTIONS` and `_schema`, and CORS preflights, which also use OPTIONS.

use crate::host::{Call, Host};
use crate::roles::Caller;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const TABLES: &[&str] = &[
    "CREATE TABLE parents (code INT PRIMARY KEY)",
    "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, title VARCHAR(200) NOT NULL COMMENT 'shown first', \
     kind ENUM('a','it''s','c,d') NOT NULL DEFAULT 'a', tags SET('x','y'), price DECIMAL(10,2) DEFAULT 1.5, mail VARCHAR(50) UNIQUE, \
     parent INT, made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, body LONGTEXT, FOREIGN KEY (parent) REFERENCES parents (code))",
];

cases! {
    Both: [
        options_and_schema_are_the_same,
        each_field_is_described,
        full_text_indexes_of_readable_fields_are_listed,
        methods_are_what_the_key_may_do,
        a_preflight_needs_no_key,
        an_options_that_is_no_preflight_needs_a_key,
        a_views_schema_is_shown,
        fields_say_whether_they_can_be_written,
        a_broken_view_says_so,
        a_view_that_can_not_be_written_says_so_and_refuses,
        the_schema_of_a_missing_table_is_not_found,
        a_foreign_key_to_another_database_is_no_relation,
    ],
}

async fn schema(db: &TestDb, table: &str) -> Value {
    db.get(&format!("{table}/_schema")).await.payload()["schema"].clone()
}

fn field<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let fields = schema.as_array().expect("a list");
    fields.iter().find(|field| field["name"] == name).unwrap_or_else(|| panic!("no {name} in {schema}"))
}

async fn a_foreign_key_to_another_database_is_no_relation(host: Host) {
    let parents = "CREATE TABLE parents (id INT PRIMARY KEY)";
    let other = TestDb::new(host, &[parents]).await;
    let child = format!(
        "CREATE TABLE t (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES {}.parents (id))",
        other.name
    );
    let db = TestDb::new(host, &[parents, &child]).await;
    let described = db.get("t/_schema").await.payload();
    assert_eq!(described["relations"], json!([]));
    assert_eq!(field(&described["schema"], "parent_id")["references"], Value::Null);
    let whole = host.call(Method::GET, &format!("/api/v1/types.ts?database={}", db.name)).send().await;
    assert!(!whole.text().contains("references"), "{whole}");
}

async fn options_and_schema_are_the_same(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let options = db.call(Method::OPTIONS, "t").send().await.payload();
    assert_eq!(options, db.get("t/_schema").await.payload());
    let mut keys: Vec<&String> = options.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["kind", "methods", "relations", "schema"]);
}

async fn each_field_is_described(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let schema = schema(&db, "t").await;
    let names: Vec<&str> = schema.as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["id", "title", "kind", "tags", "price", "mail", "parent", "made", "body"],
        "in the table's order"
    );
    for (name, key, expected) in [
        ("id", "type", json!("int(10) unsigned")),
        ("id", "primaryKey", json!(true)),
        ("id", "autoIncrement", json!(true)),
        ("id", "required", json!(false)),
        ("id", "nullable", json!(false)),
        ("title", "type", json!("varchar(200)")),
        ("title", "required", json!(true)),
        ("title", "primaryKey", json!(false)),
        ("title", "autoIncrement", json!(false)),
        ("title", "unique", json!(false)),
        ("title", "comment", json!("shown first")),
        ("kind", "required", json!(false)),
        ("kind", "values", json!(["a", "it's", "c,d"])),
        ("tags", "values", json!(["x", "y"])),
        ("tags", "nullable", json!(true)),
        ("price", "type", json!("decimal(10,2)")),
        ("price", "required", json!(false)),
        ("mail", "unique", json!(true)),
        ("parent", "references", json!({"table": "parents", "field": "code"})),
        ("made", "required", json!(false)),
        ("body", "type", json!("longtext")),
    ] {
        assert_eq!(field(&schema, name)[key], expected, "{name}.{key}: {}", field(&schema, name));
    }
    let price = &field(&schema, "price")["default"];
    assert!(price.to_string().contains("1.5"), "default of price: {price}");
    let body = field(&schema, "body");
    for absent in ["values", "references"] {
        assert!(body.get(absent).is_none_or(Value::is_null), "{body}");
    }
}

async fn full_text_indexes_of_readable_fields_are_listed(host: Host) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, title VARCHAR(50), body TEXT, note TEXT, code CHAR(9) UNIQUE, KEY (note(9)), \
                 FULLTEXT KEY b (title, body), FULLTEXT KEY a (note), FULLTEXT KEY c (title))";
    let db = TestDb::new(host, &[table, "CREATE TABLE plain (id INT PRIMARY KEY)"]).await;
    let caller = |fields: Value| Caller::new(&db, [("t", json!({"read": {"fields": fields}}))], json!({}));
    for (key, expected) in [
        (shared().full_key.clone(), json!([["note"], ["title", "body"], ["title"]])),
        (shared().read_key.clone(), json!([["note"], ["title", "body"], ["title"]])),
        (caller(json!({"omit": ["body"]})).key, json!([["note"], ["title"]])),
        (caller(json!(["id", "body"])).key, Value::Null),
    ] {
        let answer = db.call(Method::GET, "t/_schema").key(&key).send().await;
        assert_eq!(answer.payload()["fullText"], expected, "{answer}");
    }
    assert_eq!(db.get("plain/_schema").await.payload()["fullText"], Value::Null);
}

async fn methods_are_what_the_key_may_do(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let full = db.get("t/_schema").await.payload()["methods"].clone();
    let read = db.call(Method::GET, "t/_schema").key(&shared().read_key).send().await.payload()["methods"].clone();
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS"] {
        assert!(names(&full).iter().any(|name| name == method), "{full}");
    }
    for method in ["GET", "OPTIONS"] {
        assert!(names(&read).iter().any(|name| name == method), "{read}");
    }
    for method in ["PUT", "PATCH", "DELETE"] {
        assert!(!names(&read).iter().any(|name| name == method), "{read}");
    }
}

async fn a_preflight_needs_no_key(host: Host) {
    for (path, method) in
        [("/api/v1/crud/demo/posts", "DELETE"), ("/api/v1/crud/nope/nope/1", "PUT"), ("/api/v1/sql", "POST")]
    {
        let answer = Call::new(host.url(), Method::OPTIONS, path)
            .header("origin", "https://shop.example")
            .header("access-control-request-method", method)
            .header("access-control-request-headers", "authorization,content-type")
            .send()
            .await;
        assert_eq!(answer.status, 204, "{answer}");
        assert!(answer.body.is_empty());
        let origin = answer.header("access-control-allow-origin").unwrap_or_default().to_owned();
        assert_eq!(origin, "*");
        let allowed = |name: &str| answer.header(name).unwrap_or_default().to_lowercase();
        assert!(allowed("access-control-allow-methods").contains(&method.to_lowercase()));
        let headers = allowed("access-control-allow-headers");
        assert!(headers.contains("authorization"), "`*` does not cover authorization: {headers}");
        assert!(headers.contains("content-type"), "{headers}");
        assert_eq!(answer.header("access-control-max-age"), Some("86400"));
        assert_eq!(answer.header("access-control-allow-credentials"), None, "there are no cookies");
    }
}

async fn an_options_that_is_no_preflight_needs_a_key(host: Host) {
    let path = "/api/v1/crud/demo/posts";
    Call::new(host.url(), Method::OPTIONS, path).send().await.refused(ErrorCode::MissingKey);
    let only_origin = Call::new(host.url(), Method::OPTIONS, path).header("origin", "https://shop.example");
    only_origin.send().await.refused(ErrorCode::MissingKey);
    let only_method = Call::new(host.url(), Method::OPTIONS, path).header("access-control-request-method", "GET");
    only_method.send().await.refused(ErrorCode::MissingKey);
}

async fn a_views_schema_is_shown(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    db.exec("CREATE VIEW v AS SELECT id, title FROM t").await;
    let schema = schema(&db, "v").await;
    assert_eq!(field(&schema, "title")["type"], "varchar(200)");
}

async fn fields_say_whether_they_can_be_written(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, j JSON, twice INT AS (n * 2) VIRTUAL, kept INT AS (n + 1) STORED, \
             made DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)",
        ],
    )
    .await;
    let schema = schema(&db, "t").await;
    for (name, generated) in
        [("id", false), ("n", false), ("j", false), ("twice", true), ("kept", true), ("made", false)]
    {
        let field = field(&schema, name);
        assert_eq!(field["generated"], generated, "{field}");
        assert_eq!(field["writable"], !generated, "{field}");
    }
    let json = field(&schema, "j");
    assert_eq!(json["type"], "longtext");
    assert_eq!(json["jsonType"], "json");
    assert_eq!(field(&schema, "n").get("jsonType"), None);
    db.post("t", &json!({"id": 1, "n": 1})).await.payload();
    for (method, rest, body) in [
        (Method::POST, "t", json!({"id": 2, "twice": 2})),
        (Method::POST, "t", json!({"batchData": [{"id": 2}, {"id": 3, "kept": 2}]})),
        (Method::PUT, "t/1", json!({"twice": 2})),
    ] {
        let answer = db.call(method, rest).json(&body).send().await;
        let error = answer.refused(ErrorCode::InvalidValue);
        assert!(error["message"].to_string().contains("computed"), "{answer}");
        assert!(error["hint"].to_string().contains("Leave it out"), "{answer}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn a_view_that_can_not_be_written_says_so_and_refuses(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
            "INSERT INTO t VALUES (1, 1), (2, 1)",
            "CREATE VIEW some AS SELECT id, n FROM t WHERE n > 0",
            "CREATE VIEW grouped AS SELECT n AS id, COUNT(*) AS n FROM t GROUP BY t.n",
            "CREATE VIEW united AS SELECT id, n FROM t UNION SELECT n, id FROM t",
            "CREATE ALGORITHM = TEMPTABLE VIEW copied AS SELECT id, n FROM t",
        ],
    )
    .await;
    let some = db.get("some/_schema").await.payload();
    assert_eq!(some["methods"], db.get("t/_schema").await.payload()["methods"]);
    assert_eq!(some["schema"][1]["writable"], true);
    db.post("some", &json!({"id": 3, "n": 1})).await.payload();
    for view in ["grouped", "united", "copied"] {
        let described = db.get(&format!("{view}/_schema")).await.payload();
        assert_eq!(described["methods"], json!(["GET", "HEAD", "OPTIONS"]), "{view}");
        assert_eq!(described["schema"][1]["writable"], false, "{view}");
        db.get(view).await.payload();
        for (method, rest, body) in [
            (Method::POST, "", json!({"id": 9, "n": 9})),
            (Method::PUT, "/1", json!({"n": 9})),
            (Method::PATCH, "/1", json!({"n": 9})),
            (Method::DELETE, "/1", Value::Null),
            (Method::DELETE, "", json!({"deleteKeyValues": [{"key": "n", "value": 1}]})),
        ] {
            let mut call = db.call(method, &format!("{view}{rest}"));
            if !body.is_null() {
                call = call.json(&body);
            }
            let answer = call.send().await;
            let error = answer.refused(ErrorCode::MethodNotAllowed);
            assert!(error["message"].to_string().contains(view), "{answer}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{answer}");
        }
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 3);
}

async fn a_broken_view_says_so(host: Host) {
    let tables = ["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE TABLE u (id INT PRIMARY KEY, a INT)"];
    let db = TestDb::new(host, &tables).await;
    for view in ["without_table", "without_field"] {
        let table = if view == "without_table" { "t" } else { "u" };
        db.exec(&format!("CREATE VIEW {view} AS SELECT id, a FROM {table}")).await;
        db.get(view).await.payload();
    }
    // First the cached schema still has the fields, so that MariaDB refuses; then the view has none.
    db.behind("DROP TABLE t; ALTER TABLE u DROP COLUMN a");
    for is_known in [false, true] {
        for view in ["without_table", "without_field"] {
            if is_known {
                db.exec("CREATE OR REPLACE TABLE other (id INT)").await;
                let described = db.get(&format!("{view}/_schema")).await.payload();
                assert_eq!((&described["schema"], &described["methods"]), (&json!([]), &json!([])), "{view}");
            }
            let join =
                format!("other?join={{\"tableName\":\"{view}\",\"match\":{{\"source\":\"id\",\"target\":\"id\"}}}}");
            let calls = [
                (Method::GET, view.to_owned(), Value::Null),
                (Method::GET, format!("{view}?selectFields=COUNT(*)"), Value::Null),
                (Method::POST, view.to_owned(), json!({"id": 1})),
                (Method::PUT, format!("{view}/1"), json!({"id": 1})),
                (Method::GET, join, Value::Null),
            ];
            for (method, rest, body) in calls.into_iter().take(if is_known { 5 } else { 1 }) {
                let call = db.call(method, &rest);
                let answer = if body.is_null() { call } else { call.json(&body) }.send().await;
                let error = answer.refused(ErrorCode::SqlError);
                let message = error["message"].as_str().unwrap_or_default();
                assert!(message.contains(view) && message.contains("is broken"), "{rest}: {answer}");
                assert!(error["hint"].to_string().contains("CREATE OR REPLACE VIEW"), "{rest}: {answer}");
            }
        }
    }
}

async fn the_schema_of_a_missing_table_is_not_found(host: Host) {
    let db = TestDb::new(host, &[]).await;
    db.get("nope/_schema").await.refused(ErrorCode::TableNotFound);
    db.call(Method::OPTIONS, "nope").send().await.refused(ErrorCode::TableNotFound);
}
