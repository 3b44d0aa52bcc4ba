//! What errors of writes say about the place of the fault: field, row, constraint, and all faults of a body at once.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::{
    self, DuplicateKey, ForeignKeyViolation, InvalidBody, InvalidFilter, InvalidQueryOption, InvalidValue,
    RejectedByDatabase, UnknownField,
};

cases! {
    Both: [
        an_error_names_field_row_and_constraint,
        all_faults_of_a_body_are_listed,
        faults_of_a_batch_name_the_operation,
    ],
}

const TABLES: &[&str] = &[
    "CREATE TABLE authors (id INT PRIMARY KEY)",
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, title VARCHAR(5) NOT NULL, n TINYINT, day DATE, author INT, \
     twice INT AS (n * 2), UNIQUE KEY one_title (title), CONSTRAINT positive CHECK (n > 0), \
     CONSTRAINT of_author FOREIGN KEY (author) REFERENCES authors (id))",
    "INSERT INTO t (id, title) VALUES (1, 'one')",
];

/// Returns the place of the fault from an error's details: all of them except `errno` and `sqlState`.
fn place(error: &Value) -> Value {
    let mut details = error["details"].as_object().cloned().unwrap_or_default();
    details.retain(|key, _| !matches!(key.as_str(), "errno" | "sqlState"));
    Value::Object(details)
}

async fn an_error_names_field_row_and_constraint(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (record, field, key) in
        [(json!({"title": "one"}), "title", "one_title"), (json!({"id": 1, "title": "x"}), "id", "PRIMARY")]
    {
        let error = db.post("t", &record).await.refused(DuplicateKey);
        assert_eq!(place(&error), json!({"field": field, "constraint": key}), "{error}");
    }
    // With a trigger, the key may be that of a table to which the trigger writes.
    db.exec(
        "CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW IF NEW.title = 'no' THEN SIGNAL SQLSTATE '45000'; END IF",
    )
    .await;
    for (record, code, expected) in [
        (json!({"title": "one"}), DuplicateKey, json!({"constraint": "one_title"})),
        (json!({"id": 1, "title": "x"}), DuplicateKey, json!({"constraint": "PRIMARY"})),
        (
            json!({"title": "x", "author": 5}),
            ForeignKeyViolation,
            json!({"field": "author", "constraint": "of_author"}),
        ),
        (json!({"title": "x", "n": -1}), InvalidValue, json!({"constraint": "positive"})),
        (json!({"title": "x", "n": 300}), InvalidValue, json!({"field": "n"})),
        (json!({"title": "too long"}), InvalidValue, json!({"field": "title"})),
        (json!({"title": null}), InvalidValue, json!({"field": "title"})),
        (json!({"n": 1}), InvalidValue, json!({"field": "title"})),
        (json!({"title": "no"}), RejectedByDatabase, json!({})),
        // These faults are found before any SQL runs.
        (json!({"title": "x", "n": "many"}), InvalidValue, json!({"field": "n"})),
        (json!({"title": "x", "day": "tomorrow"}), InvalidValue, json!({"field": "day"})),
        (json!({"title": "x", "twice": 1}), InvalidValue, json!({"field": "twice"})),
        (json!({"title": "x", "nope": 1}), UnknownField, json!({"field": "nope"})),
    ] {
        let error = db.post("t", &record).await.refused(code);
        assert_eq!(place(&error), expected, "{record}: {error}");
        // In a list, the error also has the row. In such a statement, a missing field gets its default.
        let list = json!({"batchData": [{"title": "a"}, {"title": "b"}, record, {"title": "c"}]});
        let error = db.post("t", &list).await.refused(code);
        let mut of_row = expected.clone();
        // MariaDB does not know at which row a trigger raised a signal.
        if code != RejectedByDatabase {
            of_row["row"] = json!(2);
        }
        assert_eq!(place(&error), of_row, "{list}: {error}");
    }
    // The insert takes several statements, of which the later one fails.
    let mut rows: Vec<_> = (0..1500).map(|at| json!({"title": format!("r{at}")})).collect();
    rows[1300]["title"] = json!("one");
    let error = db.post("t", &json!({"batchData": rows})).await.refused(DuplicateKey);
    assert_eq!(place(&error), json!({"constraint": "one_title", "row": 1300}), "{error}");
    rows[1300]["title"] = json!("too long");
    let error = db.post("t", &json!({"batchData": rows})).await.refused(InvalidValue);
    assert_eq!(
        (&error["message"], &error["details"]["row"]),
        (&json!("Data too long for column 'title'."), &json!(1300))
    );
    let error = db.post("t?onConflict=update", &json!({"batchData": [{"title": "a"}, {"title": "b", "n": 300}]})).await;
    assert_eq!(place(&error.refused(InvalidValue)), json!({"field": "n", "row": 1}));
    let error = db.put("t/1", &json!({"n": 300})).await.refused(InvalidValue);
    assert_eq!(place(&error), json!({"field": "n"}));
    let error = db.put("t/1", &json!({"n": {"$add": "x"}})).await.refused(InvalidValue);
    assert_eq!(place(&error), json!({"field": "n"}));
    let error = db.get("t?selectFields=nope").await.refused(UnknownField);
    assert_eq!(place(&error), json!({"field": "nope"}));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

/// Returns code and place of each fault, sorted.
fn faults(body: &Value) -> Vec<(String, Value)> {
    let errors = body["errors"].as_array().cloned().unwrap_or_default();
    let code = |error: &Value| error["code"].as_str().unwrap_or_default().to_owned();
    sorted(errors.iter().map(|error| (code(error), place(error))).collect())
}

fn sorted(mut faults: Vec<(String, Value)>) -> Vec<(String, Value)> {
    faults.sort_by_key(|(_, place)| place.to_string());
    faults
}

fn expected(faults: &[(ErrorCode, Value)]) -> Vec<(String, Value)> {
    sorted(faults.iter().map(|(code, place)| (code.as_str().to_owned(), place.clone())).collect())
}

async fn all_faults_of_a_body_are_listed(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let record = json!({"title": "x", "n": "many", "nope": 1, "day": "never", "twice": 2});
    let wanted = expected(&[
        (UnknownField, json!({"field": "nope"})),
        (InvalidValue, json!({"field": "twice"})),
        (InvalidValue, json!({"field": "n"})),
        (InvalidValue, json!({"field": "day"})),
    ]);
    let answer = db.post("t", &record).await;
    answer.refused(UnknownField);
    assert_eq!(faults(&answer.json()), wanted, "{answer}");
    for answer in [db.put("t/1", &record).await, db.put("t", &json!({"query": {"id": 1}, "data": record})).await] {
        assert_eq!(faults(&answer.json()), wanted, "{answer}");
    }
    let list = json!({"batchData": [{"title": "a"}, {"n": "x"}, {"title": "b", "nope": 1, "day": 5}, {"nope": 2}]});
    let answer = db.post("t", &list).await;
    let wanted = expected(&[
        (UnknownField, json!({"field": "nope", "row": 2})),
        (UnknownField, json!({"field": "nope", "row": 3})),
        (InvalidValue, json!({"field": "n", "row": 1})),
        (InvalidValue, json!({"field": "day", "row": 2})),
    ]);
    assert_eq!(faults(&answer.json()), wanted, "{answer}");
    let query = json!({"gone": 1, "n": "x", "group": {"__query": {"lost": 1, "day": "never"}}});
    let mut wanted = vec![
        (UnknownField, json!({"field": "gone"})),
        (InvalidFilter, json!({"field": "n"})),
        (UnknownField, json!({"field": "lost"})),
        (InvalidFilter, json!({"field": "day"})),
    ];
    for answer in [
        db.call(Method::DELETE, "t").json(&json!({"query": query})).send().await,
        db.post("t/query", &json!({"query": query})).await,
    ] {
        assert_eq!(faults(&answer.json()), expected(&wanted), "{answer}");
    }
    wanted.push((UnknownField, json!({"field": "nope"})));
    let answer = db.put("t", &json!({"query": query, "data": {"nope": 1}})).await;
    assert_eq!(faults(&answer.json()), expected(&wanted), "{answer}");
    let rows = db.post("t", &json!({"batchData": [1, {"title": "a"}, "x", {"title": "b"}]})).await;
    assert_eq!(faults(&rows.json()), expected(&[0, 2].map(|row| (InvalidBody, json!({"row": row})))), "{rows}");
    let parts = json!({"one": 1, "query": {"id": 1}, "two": 2});
    for (answer, code) in [
        (db.post("t/query", &parts).await, InvalidQueryOption),
        (db.put("t", &parts).await, InvalidBody),
        (db.call(Method::DELETE, "t").json(&parts).send().await, InvalidBody),
    ] {
        assert_eq!(faults(&answer.json()), expected(&[(code, json!({})), (code, json!({}))]), "{answer}");
        assert!(answer.json()["errors"][1]["message"].as_str().unwrap().contains("\"two\""), "{answer}");
    }
    let many = json!({"batchData": vec![json!({"n": "x"}); 100]});
    let answer = db.post("t", &many).await;
    assert_eq!(faults(&answer.json()).len(), 20, "{answer}");
    let one = db.post("t", &json!({"title": "a", "n": "x"})).await;
    assert_eq!(one.json().get("errors"), None, "{one}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn faults_of_a_batch_name_the_operation(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let path = db.path("t");
    let operations = json!({"operations": [
        {"method": "POST", "path": path, "body": {"title": "a"}},
        {"method": "POST", "path": path, "body": {"batchData": [{"title": "b"}, {"title": "c", "n": "x", "day": "y"}]}},
    ]});
    let answer = host.post("/api/v1/batch", &operations).send().await;
    answer.refused(InvalidValue);
    let place = |field: &str| (InvalidValue, json!({"field": field, "row": 1, "operation": 1}));
    assert_eq!(faults(&answer.json()), expected(&[place("n"), place("day")]), "{answer}");
    let operations = json!({"operations": [
        {"method": "POST", "path": path, "body": {"title": "a"}},
        {"method": "POST", "path": path, "body": {"batchData": [{"title": "b"}, {"title": "a"}]}},
    ]});
    let error = host.post("/api/v1/batch", &operations).send().await.refused(DuplicateKey);
    let expected = json!({"field": "title", "constraint": "one_title", "row": 1, "operation": 1});
    assert_eq!(self::place(&error), expected);
}
