//! Updates of many records by conditions; a missing condition never changes a whole table.

use super::ITEMS;
use crate::host::{Host, enc};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        records_that_match_are_changed_and_counted,
        the_operator_between_conditions_may_be_or,
        conditions_take_operators_lists_and_null,
        patch_updates_many_too,
        a_value_that_does_not_fit_changes_no_record,
    ],
}

async fn changed(db: &TestDb) -> Vec<Value> {
    let query = enc(&json!({"note": "new"}).to_string());
    db.column(&format!("items?order[field]=id&query={query}"), "id").await
}

fn body(conditions: Value) -> Value {
    json!({"updateKeyValues": conditions, "data": {"note": "new"}})
}

async fn records_that_match_are_changed_and_counted(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let none = body(json!([{"key": "name", "value": "apple"}, {"key": "qty", "value": 12}]));
    assert_eq!(db.put("items", &none).await.payload(), 0);
    let two = body(json!([{"key": "id", "value": [1, 3]}]));
    assert_eq!(db.put("items", &two).await.payload(), 2);
    // The answer counts the matched rows, even rows whose values don't change.
    assert_eq!(db.put("items", &two).await.payload(), 2);
    assert_eq!(changed(&db).await, [1, 3]);
    assert_eq!(
        db.column("items?order[field]=id", "name").await,
        ["apple", "banana", "cherry", "date", "elderberry"],
        "other fields stay"
    );
}

async fn the_operator_between_conditions_may_be_or(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let conditions = json!([{"key": "name", "value": "apple"}, {"key": "qty", "value": 12}]);
    let mut request = body(conditions);
    request["updateKeyValuesOperator"] = json!("XOR");
    let refused = db.put("items", &request).await;
    assert_eq!(refused.status, 400, "{refused}");
    request["updateKeyValuesOperator"] = json!("or");
    assert_eq!(db.put("items", &request).await.payload(), 2);
    assert_eq!(changed(&db).await, [1, 2]);
}

async fn conditions_take_operators_lists_and_null(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (condition, count) in [
        (json!({"key": "qty", "value": 0, "operator": "<="}), 2),
        (json!({"key": "qty", "value": null}), 1),
        (json!({"key": "name", "value": "BAN", "operator": "starts with"}), 1),
        (json!({"key": "day", "value": ["2026-01-01", "2026-01-31"], "operator": "BETWEEN"}), 1),
    ] {
        let request = body(json!([condition]));
        assert_eq!(db.put("items", &request).await.payload(), count);
    }
    assert_eq!(changed(&db).await, [1, 2, 3, 4, 5]);
}

async fn patch_updates_many_too(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let request = body(json!([{"key": "qty", "value": 5}]));
    let answer = db.call(Method::PATCH, "items").json(&request).send();
    assert_eq!(answer.await.payload(), 1);
    assert_eq!(changed(&db).await, [1]);
}

async fn a_value_that_does_not_fit_changes_no_record(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let request = json!({
        "updateKeyValues": [{"key": "id", "value": 0, "operator": ">"}],
        "data": {"note": "new", "name": "far too long for a name of forty characters at most"}
    });
    db.put("items", &request).await.refused(ErrorCode::InvalidValue);
    assert_eq!(changed(&db).await, [] as [Value; 0]);
}
