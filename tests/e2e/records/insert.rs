//! Inserts: one record, many records, defaults, and refusals.

use crate::host::Host;
use crate::ledger::NEVER_LOGGED;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const T: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL DEFAULT 'new', \
                 qty INT, code VARCHAR(10) UNIQUE)";

cases! {
    Both: [
        an_insert_answers_the_new_id,
        an_empty_object_inserts_defaults,
        a_given_id_is_kept_and_answered,
        a_batch_answers_its_ids_in_order,
        a_missing_key_of_a_batch_takes_the_default,
        a_batch_is_all_or_none,
        an_unknown_field_is_refused,
        a_body_of_the_wrong_shape_is_refused,
        duplicate_keys_in_an_object_are_refused,
        a_key_that_is_no_integer_is_answered,
        a_value_that_does_not_fit_names_its_field,
        a_taken_unique_value_is_a_duplicate_key,
        a_missing_parent_is_a_foreign_key_violation,
        a_required_field_left_out_is_an_invalid_value,
        a_column_named_batch_data_is_reached_through_a_batch,
        a_generated_column_is_not_written,
        an_insert_into_a_view_that_takes_none_is_refused,
        values_do_not_reach_the_log,
        a_tables_triggers_run,
        batches_side_by_side_answer_each_its_own_ids,
    ],
}

async fn an_insert_answers_the_new_id(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    assert_eq!(db.post("t", &json!({"name": "a"})).await.payload(), 1);
    assert_eq!(db.post("t", &json!({"name": "b", "qty": 2})).await.payload(), 2);
    assert_eq!(db.get("t/2").await.payload(), json!({"id": 2, "name": "b", "qty": 2, "code": null}));
}

async fn an_empty_object_inserts_defaults(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    assert_eq!(db.post("t", &json!({})).await.payload(), 1);
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "name": "new", "qty": null, "code": null}));
}

async fn a_given_id_is_kept_and_answered(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    assert_eq!(db.post("t", &json!({"id": 41})).await.payload(), 41);
    assert_eq!(db.post("t", &json!({"id": "77"})).await.payload(), 77);
    assert_eq!(db.post("t", &json!({"id": null})).await.payload(), 78);
    db.exec("CREATE TABLE plain (id BIGINT PRIMARY KEY, x INT)").await;
    assert_eq!(db.post("plain", &json!({"id": 7, "x": 1})).await.payload(), 7);
}

async fn a_batch_answers_its_ids_in_order(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    let batch = json!({"batchData": [{"name": "c"}, {"name": "a"}, {"name": "b"}]});
    assert_eq!(db.post("t", &batch).await.payload(), json!([1, 2, 3]));
    assert_eq!(db.column("t?order[field]=id", "name").await, ["c", "a", "b"]);
    let mixed = json!({"batchData": [{"id": 100, "name": "d"}, {"name": "e"}, {"id": 50, "name": "f"}]});
    assert_eq!(db.post("t", &mixed).await.payload(), json!([100, 101, 50]));
    assert_eq!(db.get("t/101").await.payload()["name"], "e");
}

async fn a_missing_key_of_a_batch_takes_the_default(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    let batch = json!({"batchData": [{"name": "a", "qty": 1}, {"qty": 2}, {"name": "c"}, {}]});
    assert_eq!(db.post("t", &batch).await.payload(), json!([1, 2, 3, 4]));
    let rows = db.get("t?order[field]=id&selectFields=name,qty").await.payload();
    let expected = json!([
        {"name": "a", "qty": 1}, {"name": "new", "qty": 2}, {"name": "c", "qty": null}, {"name": "new", "qty": null}
    ]);
    assert_eq!(rows, expected);
}

async fn a_batch_is_all_or_none(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    for (last, code) in [
        (json!({"name": null}), ErrorCode::InvalidValue),
        (json!({"nope": 1}), ErrorCode::UnknownField),
        (json!({"code": "x"}), ErrorCode::DuplicateKey),
        (json!({"name": "far too long for twenty characters"}), ErrorCode::InvalidValue),
    ] {
        let batch = json!({"batchData": [{"name": "a", "code": "x"}, {"name": "b", "code": "y"}, last]});
        db.post("t", &batch).await.refused(code);
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0, "after {last}");
    }
    // A batch of the wrong form is refused before anything is written, even in a table without transactions.
    let batch = json!({"batchData": [{"name": "a"}, 5]});
    db.post("t", &batch).await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn an_unknown_field_is_refused(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    for body in
        [json!({"nope": 1}), json!({"name": "a", "nope": null}), json!({"name) VALUES (1); -- ": 1}), json!({"": 1})]
    {
        let answer = db.post("t", &body).await;
        answer.refused(ErrorCode::UnknownField);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn a_body_of_the_wrong_shape_is_refused(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    for body in [
        json!([]),
        json!([{"name": "a"}]),
        json!("x"),
        json!(1),
        Value::Null,
        json!({"batchData": {}}),
        json!({"batchData": [1]}),
        json!({"batchData": [[]]}),
        json!({"batchData": [null]}),
        json!({"batchData": []}),
        json!({"batchData": [{"name": "a"}], "name": "b"}),
    ] {
        let answer = db.post("t", &body).await;
        answer.refused(ErrorCode::InvalidBody);
    }
    let no_body = db.call(Method::POST, "t").send().await;
    no_body.refused(ErrorCode::InvalidJson);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn duplicate_keys_in_an_object_are_refused(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    for body in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","n\u0061me":"b"}"#,
        r#"{"batchData":[{"name":"a","name":"b"}]}"#,
        r#"{"batchData":[{}],"batchData":[{}]}"#,
    ] {
        let answer = db.call(Method::POST, "t").bytes(body).send().await;
        answer.refused(ErrorCode::InvalidBody);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn a_key_that_is_no_integer_is_answered(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE words (word VARCHAR(20) PRIMARY KEY, n INT)",
            "CREATE TABLE uuids (id UUID PRIMARY KEY DEFAULT UUID(), n INT)",
            "CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY)",
        ],
    )
    .await;
    assert_eq!(db.post("words", &json!({"word": "überall/hier", "n": 1})).await.payload(), "überall/hier");
    let uuid = "123e4567-e89b-12d3-a456-426655440000";
    assert_eq!(db.post("uuids", &json!({"id": uuid})).await.payload(), uuid);
    assert_eq!(db.post("big", &json!({"id": "18446744073709551615"})).await.payload(), "18446744073709551615");
    let batch = json!({"batchData": [{"word": "b"}, {"word": "a"}]});
    assert_eq!(db.post("words", &batch).await.payload(), json!(["b", "a"]));
    let answer = db.post("uuids", &json!({"n": 5})).await;
    let id = answer.payload().as_str().unwrap_or_else(|| panic!("a default key is answered too: {answer}")).to_owned();
    assert_eq!(db.get(&format!("uuids/{id}")).await.payload()["n"], 5);
}

async fn a_value_that_does_not_fit_names_its_field(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE v (id INT PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, word VARCHAR(3), day DATE, kind ENUM('a','b'), \
           price DECIMAL(5,2), pos INT CHECK (pos > 0))"],
    )
    .await;
    for (field, value) in [
        ("tiny", json!(300)),
        ("tiny", json!("abc")),
        ("tiny", json!({"a": 1})),
        ("tiny", json!([1])),
        ("word", json!("four")),
        ("day", json!("2026-02-30")),
        ("day", json!("yesterday")),
        ("kind", json!("c")),
        ("price", json!("12345.6")),
        ("price", json!("1,5")),
        ("pos", json!(-1)),
    ] {
        let answer = db.post("v", &json!({field: value})).await;
        let error = answer.refused(ErrorCode::InvalidValue);
        assert!(error["message"].as_str().unwrap().contains(field), "the field is not named: {answer}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM v").await, 0);
}

async fn a_taken_unique_value_is_a_duplicate_key(host: Host) {
    let db = TestDb::new(host, &[T, "INSERT INTO t (id, code) VALUES (1, 'x')"]).await;
    let error = db.post("t", &json!({"code": "x"})).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(error["details"]["errno"], 1062);
    db.post("t", &json!({"id": 1})).await.refused(ErrorCode::DuplicateKey);
    db.exec("INSERT INTO t (id, code) VALUES (2, 'y')").await;
    db.put("t/2", &json!({"code": "x"})).await.refused(ErrorCode::DuplicateKey);
}

async fn a_missing_parent_is_a_foreign_key_violation(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
            "INSERT INTO parent VALUES (1)",
        ],
    )
    .await;
    db.post("child", &json!({"id": 1, "p": 9})).await.refused(ErrorCode::ForeignKeyViolation);
    db.post("child", &json!({"id": 1, "p": 1})).await.payload();
    db.delete("parent/1").await.refused(ErrorCode::ForeignKeyViolation);
    db.put("child/1", &json!({"p": 9})).await.refused(ErrorCode::ForeignKeyViolation);
}

async fn a_required_field_left_out_is_an_invalid_value(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, must INT NOT NULL)"]).await;
    for body in [json!({}), json!({"must": null})] {
        let answer = db.post("t", &body).await;
        let error = answer.refused(ErrorCode::InvalidValue);
        assert!(error["message"].as_str().unwrap().contains("must"), "{answer}");
    }
}

async fn a_column_named_batch_data_is_reached_through_a_batch(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, batchData VARCHAR(10))"]).await;
    let batch = json!({"batchData": [{"batchData": "x"}]});
    assert_eq!(db.post("t", &batch).await.payload(), json!([1]));
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "batchData": "x"}));
}

async fn a_generated_column_is_not_written(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT AS (a * 2) STORED)"])
        .await;
    assert_eq!(db.post("t", &json!({"a": 4})).await.payload(), 1);
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "a": 4, "b": 8}));
    let answer = db.post("t", &json!({"a": 4, "b": 9})).await;
    answer.refused(ErrorCode::InvalidValue);
}

async fn an_insert_into_a_view_that_takes_none_is_refused(host: Host) {
    let db = TestDb::new(host, &[T, "CREATE VIEW sums AS SELECT SUM(qty) AS total FROM t"]).await;
    let answer = db.post("sums", &json!({"total": 1})).await;
    answer.refused(ErrorCode::MethodNotAllowed);
    db.exec("CREATE VIEW names AS SELECT id, name FROM t").await;
    db.post("names", &json!({"name": "through"})).await.payload();
    assert_eq!(db.value("SELECT name FROM t").await, "through");
}

async fn values_do_not_reach_the_log(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) UNIQUE, n INT)"])
        .await;
    db.post("t", &json!({"name": NEVER_LOGGED})).await.payload();
    db.get(&format!("t?query[name]={NEVER_LOGGED}")).await.payload();
    db.sql_with("SELECT ?", json!([NEVER_LOGGED])).send().await.payload();
    db.exec(&format!("SELECT '{NEVER_LOGGED}'")).await;
}

async fn a_tables_triggers_run(host: Host) {
    let db = TestDb::new(host, &[T]).await;
    db.exec("CREATE TRIGGER upper BEFORE INSERT ON t FOR EACH ROW SET NEW.name = UPPER(NEW.name)").await;
    db.post("t", &json!({"name": "loud"})).await.payload();
    assert_eq!(db.get("t/1").await.payload()["name"], "LOUD");
}

/// Concurrent batches are answered with their own ids. The ids of a batch are computed from the first id that MariaDB
/// reports; some rows have ids of their own (negative, so that AUTO_INCREMENT ignores them).
async fn batches_side_by_side_answer_each_its_own_ids(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]).await;
    let rows = |batch: i64| -> Vec<Value> {
        let row = |n: i64| {
            let v = batch * 100 + n;
            if batch % 4 == 3 && n % 10 == 5 { json!({"v": v, "id": -v}) } else { json!({"v": v}) }
        };
        (0..40).map(row).collect()
    };
    let posts = (0..24).map(|batch| db.call(Method::POST, "t").json(&json!({"batchData": rows(batch)})).send());
    let mut answered = std::collections::BTreeMap::new();
    for (batch, answer) in (0_i64..).zip(futures_util::future::join_all(posts).await) {
        let payload = answer.payload();
        for (n, id) in (0_i64..).zip(payload.as_array().expect("a list")) {
            answered.insert(id.as_i64().expect("an id"), batch * 100 + n);
        }
    }
    let stored = db.get("t").await.payload();
    let stored = stored.as_array().unwrap().iter();
    let stored: std::collections::BTreeMap<i64, i64> =
        stored.map(|row| (row["id"].as_i64().unwrap(), row["v"].as_i64().unwrap())).collect();
    assert_eq!(answered, stored);
    assert_eq!(stored.len(), 24 * 40);
}
