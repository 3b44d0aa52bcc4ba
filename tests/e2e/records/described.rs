//! Checks what `_schema` says of each kind of column, and that reads and writes behave accordingly.

use crate::host::Host;
use crate::roles::Caller;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const TABLES: &[&str] = &[
    "CREATE TABLE parents (code INT PRIMARY KEY)",
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, meta JSON, twice INT AS (n * 2) VIRTUAL, \
     kept INT AS (n + 1) STORED, hidden VARCHAR(9) INVISIBLE DEFAULT 'h' COMMENT 'seldom asked', \
     secret INT INVISIBLE UNIQUE, half VARCHAR(9) DEFAULT 'it''s', sum INT DEFAULT (1 + 2), a INT, b INT, \
     parent INT, kind ENUM('x','y,z') NOT NULL, tags SET('x','it''s'), checked INT CHECK (checked > 0), \
     UNIQUE (a, b), FOREIGN KEY (parent) REFERENCES parents (code))",
    "CREATE VIEW plain AS SELECT id, n, hidden AS h, parent FROM t",
    "CREATE VIEW computed AS SELECT id, n, n + 1 AS more, ' from ' AS word, `meta` FROM t",
    "CREATE VIEW grouped AS SELECT n, COUNT(*) AS total FROM t GROUP BY n",
];

cases! {
    Both: [
        each_kind_of_column_is_described_as_it_is,
        invisible_fields_are_returned_only_where_they_are_named,
        computed_fields_of_views_are_not_written,
    ],
}

async fn each_kind_of_column_is_described_as_it_is(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (table, kind, fields) in [
        (
            "t",
            "table",
            &[
                "id", "n", "meta", "twice", "kept", "half", "sum", "a", "b", "parent", "kind", "tags", "checked",
                "hidden", "secret",
            ][..],
        ),
        ("plain", "view", &["id", "n", "h", "parent"]),
        ("computed", "view", &["id", "n", "more", "word", "meta"]),
        ("grouped", "view", &["n", "total"]),
    ] {
        let described = db.get(&format!("{table}/_schema")).await.payload();
        assert_eq!(described["kind"], kind);
        let schema = described["schema"].as_array().unwrap();
        let names: Vec<_> = schema.iter().map(|field| field["name"].as_str().unwrap()).collect();
        assert_eq!(names, fields, "{table}");
    }
    let absent = Value::Null;
    for (table, field, part, expected) in [
        ("t", "meta", "jsonType", json!("json")),
        ("t", "meta", "type", json!("longtext")),
        ("t", "n", "jsonType", absent.clone()),
        ("t", "n", "required", json!(true)),
        ("t", "n", "invisible", absent.clone()),
        ("t", "twice", "generated", json!(true)),
        ("t", "twice", "writable", json!(false)),
        ("t", "twice", "required", json!(false)),
        ("t", "kept", "generated", json!(true)),
        ("t", "kept", "writable", json!(false)),
        ("t", "hidden", "invisible", json!(true)),
        ("t", "hidden", "writable", json!(true)),
        ("t", "hidden", "default", json!("h")),
        ("t", "hidden", "comment", json!("seldom asked")),
        ("t", "secret", "invisible", json!(true)),
        ("t", "secret", "unique", json!(true)),
        ("t", "half", "default", json!("it's")),
        ("t", "half", "unique", json!(false)),
        ("t", "sum", "default", json!("(1 + 2)")),
        ("t", "a", "unique", json!(false)),
        ("t", "parent", "references", json!({"table": "parents", "field": "code"})),
        ("t", "kind", "values", json!(["x", "y,z"])),
        ("t", "kind", "required", json!(true)),
        ("t", "tags", "values", json!(["x", "it's"])),
        ("t", "id", "required", json!(false)),
        ("plain", "h", "writable", json!(true)),
        ("plain", "h", "generated", json!(false)),
        ("plain", "parent", "references", absent.clone()),
        ("computed", "n", "writable", json!(true)),
        ("computed", "meta", "writable", json!(true)),
        ("computed", "more", "generated", json!(true)),
        ("computed", "more", "writable", json!(false)),
        ("computed", "word", "writable", json!(false)),
        ("grouped", "n", "writable", json!(false)),
        ("grouped", "total", "writable", json!(false)),
    ] {
        for method in [Method::GET, Method::OPTIONS] {
            let rest = if method == Method::GET { format!("{table}/_schema") } else { table.to_owned() };
            let schema = db.call(method, &rest).send().await.payload()["schema"].take();
            let described = schema.as_array().unwrap().iter().find(|one| one["name"] == field).unwrap();
            assert_eq!(described[part], expected, "{table}.{field}.{part}: {described}");
        }
    }
}

async fn invisible_fields_are_returned_only_where_they_are_named(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (key_ INT INVISIBLE PRIMARY KEY AUTO_INCREMENT, n INT, hidden INT INVISIBLE)",
            "CREATE TABLE u (id INT PRIMARY KEY, t INT)",
            "INSERT INTO u VALUES (1, 1), (2, 2)",
        ],
    )
    .await;
    assert_eq!(db.post("t", &json!({"n": 5, "hidden": 7})).await.payload(), 1);
    assert_eq!(
        db.post("t", &json!({"batchData": [{"n": 4, "hidden": 8}, {"n": 3, "hidden": 9}]})).await.payload(),
        json!([2, 3])
    );
    assert_eq!(db.put("t/2", &json!({"hidden": 6})).await.payload(), 1);
    let join = r#"join={"tableName":"t","match":{"source":"t","target":"key_"}}&order=id&limit=1"#;
    for (rest, expected) in [
        ("t/1", json!({"n": 5})),
        ("t?order=key_", json!([{"n": 5}, {"n": 4}, {"n": 3}])),
        ("t?order=-hidden&limit=2", json!([{"n": 3}, {"n": 5}])),
        ("t?query[hidden]=6", json!([{"n": 4}])),
        ("t?omitFields=hidden&limit=1&order=key_", json!([{"n": 5}])),
        ("t?selectFields=n,hidden,key_&query[n]=5", json!([{"n": 5, "hidden": 7, "key_": 1}])),
        ("t/1?selectFields=hidden", json!({"hidden": 7})),
        (&format!("u?{join}"), json!([{"id": 1, "t": 1, "n": 5}])),
    ] {
        assert_eq!(db.get(rest).await.payload(), expected, "{rest}");
    }
    let csv = db.call(Method::GET, "t?order=key_&limit=1").header("accept", "text/csv").send().await;
    assert_eq!(csv.text(), "n\r\n5\r\n");
    // Pages are ordered by an invisible field, which their rows do not contain.
    let mut seen = Vec::new();
    let mut rest = "t?limit=1&order=-hidden".to_owned();
    loop {
        let answer = db.get(&rest).await;
        seen.extend(answer.payload().as_array().unwrap().iter().map(|row| row["n"].clone()));
        let Some(next) = answer.json()["next"].as_str().map(str::to_owned) else { break };
        rest = format!("t?limit=1&order=-hidden&after={next}");
    }
    assert_eq!(seen, [3, 5, 4]);
    let caller = Caller::new(&db, [("t", json!({"read": {"fields": ["n", "hidden"]}}))], json!({}));
    let read = async |rest: &str| caller.call(Method::GET, rest).send().await.payload();
    assert_eq!(read("t?query[hidden]=6").await, json!([{"n": 4}]));
    assert_eq!(read("t?selectFields=hidden&query[hidden]=6").await, json!([{"hidden": 6}]));
    let schema = read("t/_schema").await;
    assert_eq!((&schema["schema"][0]["name"], &schema["schema"][1]["name"]), (&json!("n"), &json!("hidden")));
}

async fn computed_fields_of_views_are_not_written(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    db.post("t", &json!({"n": 1, "kind": "x"})).await.payload();
    assert_eq!(db.put("computed/1", &json!({"n": 5})).await.payload(), 1);
    for field in ["more", "word"] {
        let error = db.put("computed/1", &json!({field: 5})).await.refused(ErrorCode::InvalidValue);
        assert!(error["message"].to_string().contains("computed"), "{error}");
    }
    assert_eq!(db.get("computed/1?selectFields=n,more").await.payload(), json!({"n": 5, "more": 6}));
}
