//! Updates of one record.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, qty INT)",
    "INSERT INTO t (name, qty) VALUES ('a', 1), ('b', 2)",
];

cases! {
    Both: [
        only_the_fields_in_the_body_change,
        patch_is_the_same_as_put,
        a_row_that_already_held_the_values_counts,
        a_missing_record_counts_zero,
        an_empty_or_shapeless_body_is_refused,
        an_unknown_field_changes_nothing,
        null_is_written,
        the_key_itself_can_be_changed,
        a_value_that_does_not_fit_changes_nothing,
        an_update_without_an_id_and_conditions_is_refused,
    ],
}

async fn only_the_fields_in_the_body_change(host: Host) {
    let db = TestDb::new(host, T).await;
    assert_eq!(db.put("t/1", &json!({"name": "z"})).await.payload(), 1);
    let rows = db.get("t?order[field]=id").await.payload();
    assert_eq!(rows, json!([{"id": 1, "name": "z", "qty": 1}, {"id": 2, "name": "b", "qty": 2}]));
}

async fn patch_is_the_same_as_put(host: Host) {
    let db = TestDb::new(host, T).await;
    let answer = db.call(Method::PATCH, "t/2").json(&json!({"qty": 9})).send().await;
    assert_eq!(answer.payload(), 1);
    assert_eq!(db.get("t/2").await.payload(), json!({"id": 2, "name": "b", "qty": 9}));
}

async fn a_row_that_already_held_the_values_counts(host: Host) {
    let db = TestDb::new(host, T).await;
    for _ in 0..2 {
        assert_eq!(db.put("t/1", &json!({"name": "a", "qty": 1})).await.payload(), 1);
    }
}

async fn a_missing_record_counts_zero(host: Host) {
    let db = TestDb::new(host, T).await;
    assert_eq!(db.put("t/99", &json!({"name": "z"})).await.payload(), 0);
}

async fn an_empty_or_shapeless_body_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    for body in [json!({}), json!([]), json!([{"name": "x"}]), json!("x"), json!(5), Value::Null] {
        db.put("t/1", &body).await.refused(ErrorCode::InvalidBody);
    }
    let nothing = db.call(Method::PUT, "t/1").send().await;
    assert_eq!(nothing.status, 400, "{nothing}");
}

async fn an_unknown_field_changes_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    db.put("t/1", &json!({"name": "z", "nope": 1})).await.refused(ErrorCode::UnknownField);
    assert_eq!(db.get("t/1").await.payload()["name"], "a");
}

async fn null_is_written(host: Host) {
    let db = TestDb::new(host, T).await;
    assert_eq!(db.put("t/1", &json!({"qty": null})).await.payload(), 1);
    assert_eq!(db.get("t/1").await.payload()["qty"], Value::Null);
    db.put("t/1", &json!({"name": null})).await.refused(ErrorCode::InvalidValue);
}

async fn the_key_itself_can_be_changed(host: Host) {
    let db = TestDb::new(host, T).await;
    assert_eq!(db.put("t/1", &json!({"id": 10})).await.payload(), 1);
    assert_eq!(db.get("t/10").await.payload()["name"], "a");
    db.get("t/1").await.refused(ErrorCode::RecordNotFound);
}

async fn a_value_that_does_not_fit_changes_nothing(host: Host) {
    let db = TestDb::new(host, T).await;
    db.put("t/1", &json!({"name": "z", "qty": "many"})).await.refused(ErrorCode::InvalidValue);
    assert_eq!(db.get("t/1").await.payload(), json!({"id": 1, "name": "a", "qty": 1}));
}

async fn an_update_without_an_id_and_conditions_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let answer = db.put("t", &json!({"name": "z"})).await;
    answer.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE name = 'z'").await, 0);
}
