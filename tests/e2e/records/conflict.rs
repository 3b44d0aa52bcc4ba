//! Inserts of records whose key exists: `onConflict=update` and `onConflict=ignore`.

use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(10) UNIQUE, \
     name VARCHAR(20) NOT NULL DEFAULT 'new', qty INT)",
    "INSERT INTO t (code, name, qty) VALUES ('a', 'A', 1), ('b', 'B', 2)",
];

cases! {
    Both: [
        an_update_answers_the_id_of_the_record_that_was_there,
        an_update_leaves_what_the_row_does_not_give,
        an_update_never_changes_a_key,
        an_update_of_nothing_but_the_key_changes_nothing,
        a_batch_updates_and_inserts_and_answers_all_ids_in_order,
        rows_of_one_batch_may_be_in_conflict_with_each_other,
        an_ignored_row_is_null_and_changes_nothing,
        a_batch_says_which_rows_it_ignored,
        ignoring_lets_no_other_fault_pass,
        an_ignored_row_runs_no_trigger_of_updates,
        other_words_are_refused,
        tables_without_a_key_and_views_are_refused,
        keys_of_every_shape_are_answered,
        many_rows_are_told_apart_across_statements,
        a_conflict_is_told_without_the_option,
    ],
}

async fn record(db: &TestDb, id: i64) -> Value {
    db.get(&format!("t/{id}")).await.payload()
}

async fn an_update_answers_the_id_of_the_record_that_was_there(host: Host) {
    let db = TestDb::new(host, T).await;
    // The insert has no primary key and conflicts by another unique key.
    let by_code = json!({"code": "b", "name": "B2"});
    assert_eq!(db.post("t?onConflict=update", &by_code).await.payload(), 2);
    assert_eq!(record(&db, 2).await, json!({"id": 2, "code": "b", "name": "B2", "qty": 2}));
    let by_id = json!({"id": 1, "name": "A2", "code": "z"});
    assert_eq!(db.post("t?onConflict=update", &by_id).await.payload(), 1);
    assert_eq!(record(&db, 1).await, json!({"id": 1, "code": "z", "name": "A2", "qty": 1}));
    // Repeating the insert changes nothing, and has the same answer.
    assert_eq!(db.post("t?onConflict=update", &by_id).await.payload(), 1);
    let new = db.post("t?onConflict=update", &json!({"code": "c"})).await.payload().as_i64().expect("an id");
    assert!(new > 2, "{new}");
    assert_eq!(record(&db, new).await["code"], "c");
}

async fn an_update_leaves_what_the_row_does_not_give(host: Host) {
    let db = TestDb::new(host, T).await;
    let batch = json!({"batchData": [
        {"code": "a", "qty": 10}, {"code": "b", "name": "B2"}, {"code": "c", "qty": 30}, {"code": "d"}
    ]});
    let ids = db.post("t?onConflict=update", &batch).await.payload();
    assert_eq!(ids.as_array().map(Vec::len), Some(4), "{ids}");
    let rows = db.get("t?order[field]=code&selectFields=code,name,qty").await.payload();
    let expected = json!([
        {"code": "a", "name": "A", "qty": 10}, {"code": "b", "name": "B2", "qty": 2},
        {"code": "c", "name": "new", "qty": 30}, {"code": "d", "name": "new", "qty": null}
    ]);
    assert_eq!(rows, expected);
    // A field with null is set to NULL.
    db.post("t?onConflict=update", &json!({"code": "a", "qty": null})).await.payload();
    assert_eq!(record(&db, 1).await["qty"], Value::Null);
}

async fn an_update_never_changes_a_key(host: Host) {
    let db = TestDb::new(host, T).await;
    let elsewhere = json!({"id": 77, "code": "a", "qty": 5});
    assert_eq!(db.post("t?onConflict=update", &elsewhere).await.payload(), 1);
    assert_eq!(record(&db, 1).await, json!({"id": 1, "code": "a", "name": "A", "qty": 5}));
    // An insert that conflicts with two records is ambiguous.
    let both = json!({"id": 1, "code": "b"});
    db.post("t?onConflict=update", &both).await.refused(ErrorCode::DuplicateKey);
}

async fn an_update_of_nothing_but_the_key_changes_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    assert_eq!(db.post("t?onConflict=update", &json!({"id": 2})).await.payload(), 2);
    db.exec("CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b))").await;
    for _ in 0..2 {
        let pair = json!({"a": 1, "b": 2});
        let answer = db.post("pairs?onConflict=update", &pair).await;
        assert_eq!(answer.payload(), "1,2");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM pairs").await, 1);
    assert_eq!(record(&db, 2).await["name"], "B");
    let defaults = db.post("t?onConflict=update", &json!({})).await.payload();
    assert!(defaults.as_i64() > Some(2), "{defaults}");
}

async fn a_batch_updates_and_inserts_and_answers_all_ids_in_order(host: Host) {
    let db = TestDb::new(host, T).await;
    let batch = json!({"batchData": [
        {"id": 50, "code": "x", "name": "X"}, {"id": 51, "code": "b", "name": "B2"},
        {"id": 1, "code": "a2", "name": "A2"}, {"id": 40, "code": "y", "name": "Y"}
    ]});
    assert_eq!(db.post("t?onConflict=update", &batch).await.payload(), json!([50, 2, 1, 40]));
    assert_eq!(db.column("t?order[field]=id", "name").await, ["A2", "B2", "Y", "X"]);
    // Either the whole batch is inserted or nothing of it.
    let faulty = json!({"batchData": [{"id": 1, "qty": 99}, {"id": 60, "name": null}]});
    db.post("t?onConflict=update", &faulty).await.refused(ErrorCode::InvalidValue);
    assert_eq!(record(&db, 1).await["qty"], 1);
}

/// If rows of one batch conflict with each other, the later row wins, whatever fields the rows have.
async fn rows_of_one_batch_may_be_in_conflict_with_each_other(host: Host) {
    let db = TestDb::new(host, T).await;
    let batch = json!({"batchData": [
        {"id": 9, "qty": 1}, {"id": 9, "name": "n", "qty": 2}, {"id": 9, "qty": 3}, {"code": "i", "id": 9}
    ]});
    assert_eq!(db.post("t?onConflict=update", &batch).await.payload(), json!([9, 9, 9, 9]));
    assert_eq!(record(&db, 9).await, json!({"id": 9, "code": "i", "name": "n", "qty": 3}));
    let batch = json!({"batchData": [{"code": "k", "qty": 1}, {"code": "k", "qty": 2}]});
    let ids = db.post("t?onConflict=ignore", &batch).await.payload();
    assert!(ids[0].is_i64() && ids[1].is_null(), "the first wins: {ids}");
    assert_eq!(db.value("SELECT qty FROM t WHERE code = 'k'").await, 1);
}

async fn an_ignored_row_is_null_and_changes_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    for row in [json!({"code": "a", "name": "other"}), json!({"id": 1, "name": "other"}), json!({"id": 1})] {
        let answer = db.post("t?onConflict=ignore", &row).await;
        assert_eq!(answer.payload(), Value::Null, "{answer}");
    }
    assert_eq!(record(&db, 1).await, json!({"id": 1, "code": "a", "name": "A", "qty": 1}));
    let new = db.post("t?onConflict=ignore", &json!({"code": "c"})).await;
    assert!(new.payload().is_i64(), "{new}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 3);
}

async fn a_batch_says_which_rows_it_ignored(host: Host) {
    let db = TestDb::new(host, T).await;
    let batch = json!({"batchData": [
        {"id": 20, "code": "c"}, {"id": 21, "code": "a", "qty": 99}, {"id": 22, "code": "d"}, {"id": 20, "code": "e"}
    ]});
    assert_eq!(db.post("t?onConflict=ignore", &batch).await.payload(), json!([20, null, 22, null]));
    assert_eq!(db.post("t?onConflict=ignore", &batch).await.payload(), json!([null, null, null, null]));
    assert_eq!(db.column("t?order[field]=id", "id").await, [1, 2, 20, 22]);
    assert_eq!(record(&db, 1).await["qty"], 1);
}

/// `INSERT IGNORE` would store another value for each of these rows.
async fn ignoring_lets_no_other_fault_pass(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(5) NOT NULL, day DATE, kind ENUM('x'), \
             small TINYINT, pos INT CHECK (pos > 0), p INT, FOREIGN KEY (p) REFERENCES parent (id))",
            "INSERT INTO t (id, name) VALUES (1, 'a')",
        ],
    )
    .await;
    for (row, code) in [
        (json!({"name": "far too long"}), ErrorCode::InvalidValue),
        (json!({"name": null}), ErrorCode::InvalidValue),
        (json!({"day": "2026-01-01"}), ErrorCode::InvalidValue),
        (json!({"name": "b", "day": "2026-02-30"}), ErrorCode::InvalidValue),
        (json!({"name": "b", "kind": "y"}), ErrorCode::InvalidValue),
        (json!({"name": "b", "small": 300}), ErrorCode::InvalidValue),
        (json!({"name": "b", "pos": -1}), ErrorCode::InvalidValue),
        (json!({"name": "b", "p": 9}), ErrorCode::ForeignKeyViolation),
        (json!({"name": "b", "nope": 1}), ErrorCode::UnknownField),
    ] {
        db.post("t?onConflict=ignore", &row).await.refused(code);
        // The row is refused after an ignored row too, and then no row of the batch is stored.
        let batch = json!({"batchData": [{"id": 5, "name": "five"}, {"id": 1, "name": "z"}, row]});
        db.post("t?onConflict=ignore", &batch).await.refused(code);
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1, "{row}");
    }
    // The failure's effects on the session must not affect later answers.
    for _ in 0..20 {
        let new = json!({"name": "c"});
        let answer = db.post("t?onConflict=ignore", &new).await;
        assert!(answer.payload().is_i64(), "{answer}");
    }
}

async fn an_ignored_row_runs_no_trigger_of_updates(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("CREATE TRIGGER touch BEFORE UPDATE ON t FOR EACH ROW SET NEW.qty = OLD.qty + 100").await;
    let batch = json!({"batchData": [{"code": "c"}, {"code": "a"}, {"code": "d"}, {"code": "b"}]});
    let ids = db.post("t?onConflict=ignore", &batch).await.payload();
    let taken: Vec<bool> = ids.as_array().expect("a list").iter().map(Value::is_null).collect();
    assert_eq!(taken, [false, true, false, true], "{ids}");
    let one = db.post("t?onConflict=ignore", &json!({"code": "a"})).await;
    assert_eq!(one.payload(), Value::Null);
    assert_eq!(db.value("SELECT MAX(qty) FROM t").await, 2);
    let faulty = json!({"batchData": [{"code": "e"}, {"code": "a"}, {"code": "f", "name": null}]});
    db.post("t?onConflict=ignore", &faulty).await.refused(ErrorCode::InvalidValue);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 4);
    // `onConflict=update` of an existing record runs the trigger of an update.
    let update = json!({"code": "a", "name": "A2"});
    assert_eq!(db.post("t?onConflict=update", &update).await.payload(), 1);
    assert_eq!(record(&db, 1).await["qty"], 101);
}

async fn other_words_are_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    for query in [
        "onConflict=",
        "onConflict=replace",
        "onConflict=UPDATE",
        "onConflict=true",
        "onConflict[]=update",
        "onConflict={\"code\":1}",
        "onConflict=update&onConflict=update",
        "onconflict=update",
        "onConflict=update&limit=1",
    ] {
        let answer = db.post(&format!("t?{query}"), &json!({"code": "a"})).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
    let put = db.put("t/1?onConflict=update", &json!({"qty": 3})).await;
    put.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE qty = 3").await, 0);
}

async fn tables_without_a_key_and_views_are_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("CREATE TABLE log (line TEXT, n INT)").await;
    db.exec("CREATE VIEW codes AS SELECT id, code FROM t").await;
    for word in ["update", "ignore"] {
        for (table, row) in [("log", json!({"line": "x"})), ("codes", json!({"code": "a"}))] {
            let answer = db.post(&format!("{table}?onConflict={word}"), &row).await;
            let error = answer.refused(ErrorCode::InvalidQueryOption);
            assert!(error["message"].as_str().unwrap_or_default().contains(table), "{answer}");
        }
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM log").await, 0);
    // A unique key suffices in a table without a primary key.
    db.exec("CREATE TABLE tags (word VARCHAR(10) NOT NULL UNIQUE, n INT)").await;
    for (word, n) in [("update", 1), ("update", 2), ("ignore", 3)] {
        let rest = format!("tags?onConflict={word}");
        let row = json!({"word": "x", "n": n});
        assert_eq!(db.post(&rest, &row).await.payload(), Value::Null);
    }
    assert_eq!(db.value("SELECT n FROM tags").await, 2);
}

async fn keys_of_every_shape_are_answered(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE words (word VARCHAR(20) PRIMARY KEY, n INT)",
            "CREATE TABLE uuids (id UUID PRIMARY KEY DEFAULT UUID(), n INT UNIQUE, v INT)",
            "CREATE TABLE pairs (a INT, b VARCHAR(10), n INT, PRIMARY KEY (a, b))",
            "CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY, n INT)",
            "CREATE TABLE gen (id INT PRIMARY KEY AUTO_INCREMENT, a INT, twice INT AS (a * 2) STORED UNIQUE)",
        ],
    )
    .await;
    let post = async |rest: &str, row: Value| db.post(rest, &row).await.payload();
    post("words", json!({"word": "Wort", "n": 1})).await;
    // The answer has the record's key as it is stored, not as the insert spells it.
    let updated = post("words?onConflict=update", json!({"word": "wort", "n": 2}));
    assert_eq!(updated.await, "Wort");
    let ignored = post("words?onConflict=ignore", json!({"word": "WORT", "n": 3}));
    assert_eq!(ignored.await, Value::Null);
    assert_eq!(db.value("SELECT n FROM words").await, 2);
    let id = post("uuids", json!({"n": 5, "v": 1})).await;
    assert_eq!(post("uuids?onConflict=update", json!({"n": 5, "v": 2})).await, id);
    let batch = json!({"batchData": [{"n": 5}, {"n": 6}]});
    let ids = post("uuids?onConflict=ignore", batch).await;
    assert!(ids[0].is_null() && ids[1].is_string(), "{ids}");
    for n in 1..3 {
        let pair = post("pairs?onConflict=update", json!({"a": 1, "b": "x", "n": n}));
        assert_eq!(pair.await, "1,x");
    }
    let pair = post("pairs?onConflict=ignore", json!({"a": 1, "b": "x", "n": 9}));
    assert_eq!(pair.await, Value::Null);
    assert_eq!(db.value("SELECT n FROM pairs").await, 2);
    let big = json!({"id": "18446744073709551615", "n": 1});
    for _ in 0..2 {
        let id = post("big?onConflict=update", big.clone()).await;
        assert_eq!(id, "18446744073709551615");
    }
    assert_eq!(post("gen", json!({"a": 1})).await, 1);
    assert_eq!(post("gen?onConflict=update", json!({"a": 1})).await, 1);
    assert_eq!(post("gen?onConflict=ignore", json!({"a": 1})).await, Value::Null);
    let computed = json!({"twice": 2});
    db.post("gen?onConflict=update", &computed).await.refused(ErrorCode::InvalidValue);
}

async fn many_rows_are_told_apart_across_statements(host: Host) {
    let db = TestDb::new(host, T).await;
    let seeds: Vec<Value> = (0..3_500).step_by(7).map(|n| json!({"id": 10_000 + n, "qty": -1})).collect();
    db.post("t", &json!({"batchData": seeds})).await.payload();
    let rows: Vec<Value> = (0..3_500).map(|n| json!({"id": 10_000 + n, "qty": n})).collect();
    let batch = json!({"batchData": rows});
    let answer = db.post("t?onConflict=ignore", &batch).await;
    let expected: Vec<Value> = (0..3_500)
        .map(|n| match n % 7 {
            0 => Value::Null,
            _ => json!(10_000 + n),
        })
        .collect();
    assert_eq!(answer.payload(), json!(expected));
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE qty = -1").await, 500);
    let answer = db.post("t?onConflict=update", &batch).await;
    let expected: Vec<i64> = (0..3_500).map(|n| 10_000 + n).collect();
    assert_eq!(answer.payload(), json!(expected));
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE qty = id - 10000").await, 3_500);
}

async fn a_conflict_is_told_without_the_option(host: Host) {
    let db = TestDb::new(host, T).await;
    db.post("t", &json!({"code": "a"})).await.refused(ErrorCode::DuplicateKey);
}
