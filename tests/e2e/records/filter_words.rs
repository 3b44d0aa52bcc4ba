//! `query`: operators on text, and words for operators.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        like_takes_the_pattern_as_given,
        text_operators_take_text_literally,
        regular_expressions_match,
        words_stand_for_signs,
        operators_count_in_any_case,
        filters_follow_the_collation_of_the_field,
        a_thousand_conditions_and_no_more,
        a_broken_regular_expression_is_the_callers_fault,
    ],
}

async fn selects(db: &TestDb, field: &str, equality: &str, value: Value, ids: &[i64]) {
    let query = json!({field: {"value": value, "equality": equality}});
    assert_eq!(db.ids("items", &query, "").await, ids, "{query}");
}

async fn like_takes_the_pattern_as_given(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, "name", "LIKE", json!("%rr%"), &[3, 5]).await;
    selects(&db, "name", "LIKE", json!("rr"), &[]).await;
    selects(&db, "name", "LIKE", json!("_ate"), &[4]).await;
    selects(&db, "name", "NOT LIKE", json!("%rr%"), &[1, 2, 4]).await;
    selects(&db, "note", "LIKE", json!("100\\%"), &[3]).await;
    selects(&db, "name", "LIKE_RAW", json!("%rr%"), &[3, 5]).await;
    selects(&db, "name", "NOT LIKE_RAW", json!("%rr%"), &[1, 2, 4]).await;
}

async fn text_operators_take_text_literally(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, "note", "CONTAINS", json!("%"), &[3]).await;
    selects(&db, "note", "CONTAINS", json!("_"), &[4]).await;
    selects(&db, "note", "CONTAINS", json!("ed"), &[1, 5]).await;
    selects(&db, "note", "CONTAINS", json!("\\"), &[]).await;
    selects(&db, "note", "STARTS WITH", json!("red"), &[1, 5]).await;
    selects(&db, "note", "STARTS WITH", json!("%"), &[]).await;
    selects(&db, "note", "ENDS WITH", json!("wine"), &[5]).await;
    selects(&db, "note", "ENDS WITH", json!("%"), &[3]).await;
    selects(&db, "note", "ENDS WITH", json!("_"), &[]).await;
    db.exec(r"INSERT INTO items (id, note) VALUES (6, 'back\\slash')").await;
    selects(&db, "note", "CONTAINS", json!("\\"), &[6]).await;
    selects(&db, "note", "CONTAINS", json!("k\\s"), &[6]).await;
    selects(&db, "note", "STARTS WITH", json!("back\\"), &[6]).await;
}

async fn regular_expressions_match(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    selects(&db, "name", "REGEXP", json!("^[ab]"), &[1, 2]).await;
    selects(&db, "name", "NOT REGEXP", json!("^[ab]"), &[3, 4, 5]).await;
}

async fn words_stand_for_signs(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (word, ids) in [
        ("EQUAL", vec![1]),
        ("NOT EQUAL", vec![2, 4, 5]),
        ("GREATER THAN", vec![2]),
        ("GREATER THAN OR EQUAL", vec![1, 2]),
        ("LESS THAN", vec![4, 5]),
        ("LESS THAN OR EQUAL", vec![1, 4, 5]),
    ] {
        selects(&db, "qty", word, json!(5), &ids).await;
    }
}

async fn operators_count_in_any_case(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for equality in ["like", "Like", "LIKE"] {
        selects(&db, "name", equality, json!("app%"), &[1]).await;
    }
    for equality in ["greater than or equal", "Greater Than Or Equal"] {
        selects(&db, "qty", equality, json!(5), &[1, 2]).await;
    }
    selects(&db, "name", "starts with", json!("app"), &[1]).await;
    selects(&db, "name", "regexp", json!("^app"), &[1]).await;
}

async fn filters_follow_the_collation_of_the_field(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE items (id INT PRIMARY KEY, loose VARCHAR(20) COLLATE utf8mb4_general_ci, \
             exact VARCHAR(20) COLLATE utf8mb4_bin)",
            "INSERT INTO items VALUES (1, 'Öl', 'Case'), (2, 'CASE', 'case'), (3, 'case', 'CASE')",
        ],
    )
    .await;
    selects(&db, "loose", "=", json!("case"), &[2, 3]).await;
    selects(&db, "exact", "=", json!("case"), &[2]).await;
    selects(&db, "loose", "CONTAINS", json!("AS"), &[2, 3]).await;
    selects(&db, "exact", "CONTAINS", json!("AS"), &[3]).await;
    selects(&db, "loose", "=", json!("öl"), &[1]).await;
}

async fn a_thousand_conditions_and_no_more(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let conditions = |count: usize| -> Value {
        let fields = (0..count).map(|n| (format!("c{n}"), json!({"fieldName": "id", "value": n, "equality": "!="})));
        Value::Object(fields.collect())
    };
    let answer = db.post("items/query", &json!({"query": conditions(1_000)})).await;
    assert_eq!(answer.payload(), json!([]));
    let answer = db.post("items/query", &json!({"query": conditions(5_000)})).await;
    answer.refused(ErrorCode::InvalidFilter);
    let many: Vec<i64> = (0..20_000).collect();
    let answer = db.post("items/query", &json!({"query": {"id": {"value": many}}})).await;
    answer.refused(ErrorCode::InvalidFilter);
}

async fn a_broken_regular_expression_is_the_callers_fault(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let query = option("query", &json!({"name": {"value": "([", "equality": "REGEXP"}}));
    let answer = db.get(&format!("items?{query}")).await;
    answer.refused(ErrorCode::SqlError);
}
