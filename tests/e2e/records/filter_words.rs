//! `query`: operators on text, and the words that stand for signs.

use super::ITEMS;
use crate::door::{Door, option};
use crate::room::Room;
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

async fn selects(room: &Room, field: &str, equality: &str, value: Value, ids: &[i64]) {
    let query = json!({field: {"value": value, "equality": equality}});
    assert_eq!(room.ids("items", &query, "").await, ids, "{query}");
}

async fn like_takes_the_pattern_as_given(door: Door) {
    let room = Room::new(door, ITEMS).await;
    selects(&room, "name", "LIKE", json!("%rr%"), &[3, 5]).await;
    selects(&room, "name", "LIKE", json!("rr"), &[]).await;
    selects(&room, "name", "LIKE", json!("_ate"), &[4]).await;
    selects(&room, "name", "NOT LIKE", json!("%rr%"), &[1, 2, 4]).await;
    selects(&room, "note", "LIKE", json!("100\\%"), &[3]).await;
    selects(&room, "name", "LIKE_RAW", json!("%rr%"), &[3, 5]).await;
    selects(&room, "name", "NOT LIKE_RAW", json!("%rr%"), &[1, 2, 4]).await;
}

async fn text_operators_take_text_literally(door: Door) {
    let room = Room::new(door, ITEMS).await;
    selects(&room, "note", "CONTAINS", json!("%"), &[3]).await;
    selects(&room, "note", "CONTAINS", json!("_"), &[4]).await;
    selects(&room, "note", "CONTAINS", json!("ed"), &[1, 5]).await;
    selects(&room, "note", "CONTAINS", json!("\\"), &[]).await;
    selects(&room, "note", "STARTS WITH", json!("red"), &[1, 5]).await;
    selects(&room, "note", "STARTS WITH", json!("%"), &[]).await;
    selects(&room, "note", "ENDS WITH", json!("wine"), &[5]).await;
    selects(&room, "note", "ENDS WITH", json!("%"), &[3]).await;
    selects(&room, "note", "ENDS WITH", json!("_"), &[]).await;
    room.exec(r"INSERT INTO items (id, note) VALUES (6, 'back\\slash')")
        .await;
    selects(&room, "note", "CONTAINS", json!("\\"), &[6]).await;
    selects(&room, "note", "CONTAINS", json!("k\\s"), &[6]).await;
    selects(&room, "note", "STARTS WITH", json!("back\\"), &[6]).await;
}

async fn regular_expressions_match(door: Door) {
    let room = Room::new(door, ITEMS).await;
    selects(&room, "name", "REGEXP", json!("^[ab]"), &[1, 2]).await;
    selects(&room, "name", "NOT REGEXP", json!("^[ab]"), &[3, 4, 5]).await;
}

async fn words_stand_for_signs(door: Door) {
    let room = Room::new(door, ITEMS).await;
    for (word, ids) in [
        ("EQUAL", vec![1]),
        ("NOT EQUAL", vec![2, 4, 5]),
        ("GREATER THAN", vec![2]),
        ("GREATER THAN OR EQUAL", vec![1, 2]),
        ("LESS THAN", vec![4, 5]),
        ("LESS THAN OR EQUAL", vec![1, 4, 5]),
    ] {
        selects(&room, "qty", word, json!(5), &ids).await;
    }
}

async fn operators_count_in_any_case(door: Door) {
    let room = Room::new(door, ITEMS).await;
    for equality in ["like", "Like", "LIKE"] {
        selects(&room, "name", equality, json!("app%"), &[1]).await;
    }
    for equality in ["greater than or equal", "Greater Than Or Equal"] {
        selects(&room, "qty", equality, json!(5), &[1, 2]).await;
    }
    selects(&room, "name", "starts with", json!("app"), &[1]).await;
    selects(&room, "name", "regexp", json!("^app"), &[1]).await;
}

async fn filters_follow_the_collation_of_the_field(door: Door) {
    let room = Room::new(
        door,
        &[
            "CREATE TABLE items (id INT PRIMARY KEY, loose VARCHAR(20) COLLATE utf8mb4_general_ci, \
             exact VARCHAR(20) COLLATE utf8mb4_bin)",
            "INSERT INTO items VALUES (1, 'Öl', 'Case'), (2, 'CASE', 'case'), (3, 'case', 'CASE')",
        ],
    )
    .await;
    selects(&room, "loose", "=", json!("case"), &[2, 3]).await;
    selects(&room, "exact", "=", json!("case"), &[2]).await;
    selects(&room, "loose", "CONTAINS", json!("AS"), &[2, 3]).await;
    selects(&room, "exact", "CONTAINS", json!("AS"), &[3]).await;
    selects(&room, "loose", "=", json!("öl"), &[1]).await;
}

async fn a_thousand_conditions_and_no_more(door: Door) {
    let room = Room::new(door, ITEMS).await;
    let conditions = |count: usize| -> Value {
        let fields = (0..count).map(|n| {
            (
                format!("c{n}"),
                json!({"fieldName": "id", "value": n, "equality": "!="}),
            )
        });
        Value::Object(fields.collect())
    };
    let answer = room
        .post("items/query", &json!({"query": conditions(1_000)}))
        .await;
    assert_eq!(answer.payload(), json!([]));
    let answer = room
        .post("items/query", &json!({"query": conditions(5_000)}))
        .await;
    answer.refused(ErrorCode::InvalidFilter);
    let many: Vec<i64> = (0..20_000).collect();
    let answer = room
        .post("items/query", &json!({"query": {"id": {"value": many}}}))
        .await;
    answer.refused(ErrorCode::InvalidFilter);
}

async fn a_broken_regular_expression_is_the_callers_fault(door: Door) {
    let room = Room::new(door, ITEMS).await;
    let query = option(
        "query",
        &json!({"name": {"value": "([", "equality": "REGEXP"}}),
    );
    let answer = room.get(&format!("items?{query}")).await;
    answer.refused(ErrorCode::SqlError);
}
