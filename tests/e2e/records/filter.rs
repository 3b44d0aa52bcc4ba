//! `query`: conditions on numbers, texts and nulls, lists of values, groups.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_bare_scalar_is_equality,
        null_is_is_null,
        comparisons_compare,
        a_list_with_equals_is_in,
        between_takes_two,
        other_lists_are_joined_by_their_operator,
        fields_are_joined_by_the_search_operator,
        groups_nest,
        not_negates,
        a_field_may_be_named_inside_its_condition,
        an_empty_query_filters_nothing,
        values_are_never_read_as_sql,
        a_number_in_a_text_counts,
    ],
}

async fn selects(db: &TestDb, query: Value, ids: &[i64]) {
    assert_eq!(db.ids("items", &query, "").await, ids, "{query}");
    let body = json!({"query": query, "order": {"field": "id"}, "selectFields": ["id"]});
    let twin = db.post("items/query", &body).await.payload();
    let got: Vec<i64> = twin.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert_eq!(got, ids, "by the POST form: {query}");
}

async fn a_bare_scalar_is_equality(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"id": 3}), &[3]).await;
    selects(&db, json!({"id": "3"}), &[3]).await;
    selects(&db, json!({"name": "apple"}), &[1]).await;
    selects(&db, json!({"qty": 0}), &[4]).await;
    selects(&db, json!({"qty": false}), &[4]).await;
    selects(&db, json!({"name": "apple", "qty": 12}), &[]).await;
    selects(&db, json!({"qty": {"value": 5}}), &[1]).await;
    selects(&db, json!({"day": "2026-02-01"}), &[2]).await;
    selects(&db, json!({"name": ""}), &[]).await;
}

async fn null_is_is_null(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"qty": null}), &[3]).await;
    selects(&db, json!({"qty": {"value": null}}), &[3]).await;
    selects(&db, json!({"qty": {"value": null, "equality": "="}}), &[3]).await;
    selects(&db, json!({"qty": {"value": null, "equality": "!="}}), &[1, 2, 4, 5]).await;
    selects(&db, json!({"qty": {"equality": "IS NULL"}}), &[3]).await;
    selects(&db, json!({"qty": {"equality": "is not null"}}), &[1, 2, 4, 5]).await;
    selects(&db, json!({"qty": {"value": null, "equality": "<=>"}}), &[3]).await;
    selects(&db, json!({"qty": {"value": 5, "equality": "<=>"}}), &[1]).await;
}

async fn comparisons_compare(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (equality, ids) in [
        ("=", vec![1]),
        ("==", vec![1]),
        ("!=", vec![2, 4, 5]),
        ("<>", vec![2, 4, 5]),
        (">", vec![2]),
        (">=", vec![1, 2]),
        ("<", vec![4, 5]),
        ("<=", vec![1, 4, 5]),
    ] {
        selects(&db, json!({"qty": {"value": 5, "equality": equality}}), &ids).await;
    }
    selects(&db, json!({"name": {"value": "cherry", "equality": ">"}}), &[4, 5]).await;
    selects(&db, json!({"day": {"value": "2026-02-15", "equality": "<"}}), &[1, 2]).await;
}

async fn a_list_with_equals_is_in(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"id": {"value": [1, 3, 99]}}), &[1, 3]).await;
    selects(&db, json!({"id": {"value": [1, 3], "equality": "="}}), &[1, 3]).await;
    selects(&db, json!({"id": {"value": [1, 3], "equality": "IN"}}), &[1, 3]).await;
    selects(&db, json!({"name": {"value": ["apple", "date"], "equality": "in"}}), &[1, 4]).await;
    selects(&db, json!({"id": {"value": [1, 3], "equality": "!="}}), &[2, 4, 5]).await;
    selects(&db, json!({"id": {"value": [1, 3], "equality": "NOT IN"}}), &[2, 4, 5]).await;
    selects(&db, json!({"id": {"value": 3, "equality": "IN"}}), &[3]).await;
    selects(&db, json!({"id": [1, 3]}), &[1, 3]).await;
}

async fn between_takes_two(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"qty": {"value": [0, 5], "equality": "BETWEEN"}}), &[1, 4]).await;
    selects(&db, json!({"qty": {"value": [0, 5], "equality": "not between"}}), &[2, 5]).await;
    selects(&db, json!({"day": {"value": ["2026-01-15", "2026-03-01"], "equality": "BETWEEN"}}), &[2, 3]).await;
}

async fn other_lists_are_joined_by_their_operator(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"name": {"value": ["a%", "%y"], "equality": "LIKE"}}), &[1, 3, 5]).await;
    selects(&db, json!({"name": {"value": ["%e%", "%y"], "equality": "LIKE", "operator": "AND"}}), &[3, 5]).await;
    selects(&db, json!({"name": {"value": ["%e%", "%y"], "equality": "LIKE", "operator": "and"}}), &[3, 5]).await;
    selects(&db, json!({"qty": {"value": [0, 10], "equality": ">", "operator": "AND"}}), &[2]).await;
}

async fn fields_are_joined_by_the_search_operator(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let query = json!({"name": "apple", "qty": 12});
    for (operator, ids) in [("AND", vec![]), ("and", vec![]), ("OR", vec![1, 2]), ("or", vec![1, 2])] {
        assert_eq!(db.ids("items", &query, &format!("&searchOperator={operator}")).await, ids, "{operator}");
    }
}

async fn groups_nest(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let either = json!({"__query": {"name": "apple", "qty": 12}, "operator": "OR"});
    selects(&db, json!({"any label": either}), &[1, 2]).await;
    selects(&db, json!({"g": either, "day": "2026-02-01"}), &[2]).await;
    selects(&db, json!({"g": {"__query": {"id": 1, "name": "apple"}}}), &[1]).await;
    let deep = json!({"a": {"__query": {
        "b": {"__query": {"name": "apple", "qty": 5}},
        "c": {"__query": {"name": "date", "qty": 0}}
    }, "operator": "OR"}});
    selects(&db, deep, &[1, 4]).await;
    // A label may be the name of a field, without a meaning.
    selects(&db, json!({"name": {"__query": {"id": 2}}}), &[2]).await;
}

async fn not_negates(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({"id": {"value": 1, "not": true}}), &[2, 3, 4, 5]).await;
    selects(&db, json!({"id": {"value": 1, "not": false}}), &[1]).await;
}

async fn a_field_may_be_named_inside_its_condition(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let range = json!({
        "from": {"fieldName": "qty", "value": 0, "equality": ">="},
        "to": {"fieldName": "qty", "value": 5, "equality": "<="}
    });
    selects(&db, range, &[1, 4]).await;
    selects(&db, json!({"name": {"tableName": "items", "fieldName": "name", "value": "apple"}}), &[1]).await;
    let foreign = option("query", &json!({"name": {"tableName": "elsewhere", "value": "apple"}}));
    let answer = db.get(&format!("items?{foreign}")).await;
    answer.refused(ErrorCode::InvalidFilter);
}

async fn an_empty_query_filters_nothing(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, json!({}), &[1, 2, 3, 4, 5]).await;
    let empty_list = option("query", &json!({"id": {"value": [], "equality": "IN"}}));
    let answer = db.get(&format!("items?{empty_list}")).await;
    // An empty list matches nothing, never everything.
    assert_eq!(answer.payload(), json!([]));
}

async fn values_are_never_read_as_sql(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for text in
        ["' OR '1'='1", "1 OR 1=1", "\\' OR 1=1 -- ", "'; DROP TABLE items; --", "\u{0}", "`id`", "id", "%", "\\"]
    {
        selects(&db, json!({"name": text}), &[]).await;
        selects(&db, json!({"name": {"value": [text]}}), &[]).await;
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM items").await, 5);
}

async fn a_number_in_a_text_counts(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    // A number followed by a blank is that number.
    assert_eq!(db.ids("items", &json!({"id": "1 "}), "").await, [1]);
    selects(&db, json!({"id": 1.5}), &[]).await;
}
