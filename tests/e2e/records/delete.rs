//! Deletes by id and by conditions; a missing condition never deletes a whole table.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_delete_by_id_counts,
        conditions_are_joined_by_and,
        the_operator_may_be_or,
        conditions_take_operators,
        conditions_may_stand_in_the_url,
        nothing_is_deleted_by_omission,
        both_forms_at_once_are_refused,
        malformed_conditions_are_refused,
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

async fn nothing_is_deleted_by_omission(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let bodies = [
        json!({}),
        json!([]),
        json!({"deleteKeyValues": []}),
        json!({"deleteKeyValues": null}),
        json!({"deleteKeyValues": {}}),
        json!({"deleteKeyValues": "id"}),
        json!({"deleteKeyValues": [{}]}),
        json!({"deleteKeyValues": [{"key": "id"}]}),
        json!({"deleteKeyValues": [{"value": 1}]}),
        json!({"deleteKeyValues": [{"key": "id", "value": [], "operator": "NOT IN"}]}),
        json!({"deleteKeyValuesOperator": "OR"}),
        json!({"deleteKeyvalues": [{"key": "id", "value": 1}]}),
        json!({"id": 1}),
    ];
    for body in bodies {
        let answer = db.delete_where("items", &body).await;
        assert_eq!(answer.status, 400, "{answer}");
    }
    assert_eq!(db.delete("items").await.status, 400);
    for query in
        ["deleteKeyValues=", "deleteKeyValues=[]", "deleteKeyValues={}", "deleteKeyValues=x", "id=1", "query=%7B%7D"]
    {
        let answer = db.delete(&format!("items?{query}")).await;
        assert_eq!(answer.status, 400, "{answer}");
    }
    let unused = db.delete("items/1?deleteKeyValuesOperator=OR").await;
    let error = unused.refused(ErrorCode::InvalidBody);
    let message = "deleteKeyValuesOperator joins the conditions of deleteKeyValues, which is missing.";
    assert_eq!(error["message"], message);
    let empty_id = db.delete("items/").await;
    assert!(empty_id.status.is_client_error(), "{empty_id}");
    assert_eq!(left(&db).await, [1, 2, 3, 4, 5]);
}

async fn both_forms_at_once_are_refused(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let conditions = json!([{"key": "id", "value": 2}]);
    let in_url = option("deleteKeyValues", &conditions);
    let body = json!({"deleteKeyValues": conditions});
    assert_eq!(db.delete_where("items/1", &body).await.status, 400);
    assert_eq!(db.delete(&format!("items/1?{in_url}")).await.status, 400);
    assert_eq!(db.delete_where(&format!("items?{in_url}"), &body).await.status, 400);
    assert_eq!(left(&db).await, [1, 2, 3, 4, 5]);
}

async fn malformed_conditions_are_refused(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (condition, code) in [
        (json!({"key": "nope", "value": 1}), ErrorCode::UnknownField),
        (json!({"key": "1=1 OR id", "value": 1}), ErrorCode::UnknownField),
        (json!({"key": "id", "value": 1, "operator": "RUN"}), ErrorCode::InvalidFilter),
        (json!({"key": "id", "value": 1, "operator": "= 1 OR 1 ="}), ErrorCode::InvalidFilter),
        (json!({"key": "id", "value": 1, "foo": 1}), ErrorCode::InvalidFilter),
        (json!({"key": 5, "value": 1}), ErrorCode::InvalidFilter),
        (json!(5), ErrorCode::InvalidFilter),
    ] {
        let answer = db.delete_where("items", &json!({"deleteKeyValues": [condition]})).await;
        answer.refused(code);
    }
    let broken = db.call(Method::DELETE, "items").bytes("{\"deleteKeyValues\": [").send().await;
    broken.refused(ErrorCode::InvalidJson);
    assert_eq!(left(&db).await, [1, 2, 3, 4, 5]);
}
