//! Deletes by id and by conditions; a missing condition never deletes a whole table.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use serde_json::{Value, json};

cases! {
    Both: [
        a_delete_by_id_counts,
        conditions_are_joined_by_and,
        the_operator_may_be_or,
        conditions_take_operators,
        conditions_may_stand_in_the_url,
        conditions_take_lists_and_null,
    ],
}

async fn left(db: &TestDb) -> Vec<Value> {
    db.column("items?order[field]=id", "id").await
}

async fn a_delete_by_id_counts(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    assert_eq!(db.delete("items/2").await.payload(), 1);
    assert_eq!(db.delete("items/2").await.payload(), 0);
    assert_eq!(left(&db).await, [1, 3, 4, 5]);
}

async fn conditions_are_joined_by_and(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let body = json!({"deleteKeyValues": [{"key": "name", "value": "apple"}, {"key": "qty", "value": 12}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 0);
    let body = json!({"deleteKeyValues": [{"key": "name", "value": "apple"}, {"key": "qty", "value": 5}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 1);
    assert_eq!(left(&db).await, [2, 3, 4, 5]);
}

async fn the_operator_may_be_or(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let conditions = json!([{"key": "name", "value": "apple"}, {"key": "qty", "value": 12}]);
    let wrong = json!({"deleteKeyValues": conditions, "deleteKeyValuesOperator": "XOR"});
    let answer = db.delete_where("items", &wrong).await;
    assert_eq!(answer.status, 400, "{answer}");
    let body = json!({"deleteKeyValues": conditions, "deleteKeyValuesOperator": "OR"});
    assert_eq!(db.delete_where("items", &body).await.payload(), 2);
    assert_eq!(left(&db).await, [3, 4, 5]);
}

async fn conditions_take_operators(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let body = json!({"deleteKeyValues": [{"key": "qty", "value": 0, "operator": "<="}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 2);
    let body = json!({"deleteKeyValues": [{"key": "name", "value": "b%", "operator": "LIKE"}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 1);
    assert_eq!(left(&db).await, [1, 3]);
}

async fn conditions_take_lists_and_null(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let body = json!({"deleteKeyValues": [{"key": "qty", "value": null}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 1);
    let body = json!({"deleteKeyValues": [{"key": "id", "value": [1, 2], "operator": "IN"}]});
    assert_eq!(db.delete_where("items", &body).await.payload(), 2);
    assert_eq!(left(&db).await, [4, 5]);
}

async fn conditions_may_stand_in_the_url(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let conditions = option("deleteKeyValues", &json!([{"key": "id", "value": 3}]));
    assert_eq!(db.delete(&format!("items?{conditions}")).await.payload(), 1);
    let conditions = option("deleteKeyValues", &json!([{"key": "id", "value": 1}, {"key": "id", "value": 2}]));
    assert_eq!(db.delete(&format!("items?{conditions}&deleteKeyValuesOperator=OR")).await.payload(), 2);
    assert_eq!(left(&db).await, [4, 5]);
}
