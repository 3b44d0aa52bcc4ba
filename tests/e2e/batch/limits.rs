//! How much a batch may hold and answer.

use super::{batch, get, post};
use crate::door::Door;
use crate::room::Room;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_thousand_operations_run_and_no_more,
        ten_thousand_rows_are_read_and_no_more,
        sixteen_mebibytes_are_answered_and_no_more,
        many_rows_are_inserted_by_several_operations,
        nesting_ends_at_32_levels_in_a_batch_too,
    ],
}

const T: &[&str] = &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, doc JSON)"];

async fn a_thousand_operations_run_and_no_more(door: Door) {
    let room = Room::new(door, T).await;
    let t = room.path("t");
    let mut operations = vec![post(&t, json!({"n": 0}))];
    operations.extend((0..999).map(|at| post(&t, json!({"n": {"$ref": at}}))));
    let done = batch(door, &operations).await;
    let ids: Vec<i64> = (1..=1000).collect();
    assert_eq!(done.payload(), json!(ids));
    assert_eq!(room.value("SELECT SUM(n) FROM t").await, json!("499500"));
    operations.push(post(&t, json!({"n": 0})));
    let answer = batch(door, &operations).await;
    assert_eq!(answer.refused(ErrorCode::InvalidBody).get("details"), None);
    assert_eq!(room.value("SELECT COUNT(*) FROM t").await, 1000);
}

async fn ten_thousand_rows_are_read_and_no_more(door: Door) {
    let room = Room::new(door, T).await;
    room.exec("INSERT INTO t (n) SELECT seq FROM seq_1_to_10001")
        .await;
    let t = room.path("t");
    let half = get(&format!("{t}?limit=5000&selectFields=id"));
    let done = batch(door, &[half.clone(), half.clone()]).await;
    assert_eq!(done.payload()[1].as_array().map(Vec::len), Some(5000));
    let one = get(&format!("{t}/1"));
    for (operations, at) in [
        (vec![post(&t, json!({})), half.clone(), half, one], 3),
        (vec![post(&t, json!({})), get(&t)], 1),
    ] {
        let answer = batch(door, &operations).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert_eq!(error["details"]["operation"], at, "{answer}");
        assert_eq!(room.value("SELECT COUNT(*) FROM t").await, 10_001);
    }
}

async fn sixteen_mebibytes_are_answered_and_no_more(door: Door) {
    let room = Room::new(door, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)"]).await;
    room.exec("INSERT INTO t VALUES (1, REPEAT('x', 6 * 1024 * 1024))")
        .await;
    let read = get(&format!("{}/1", room.path("t")));
    let done = batch(door, &[read.clone(), read.clone()]).await;
    assert_eq!(done.payload()[1]["v"].as_str().map(str::len), Some(6 << 20));
    let answer = batch(door, &[read.clone(), read.clone(), read]).await;
    assert_eq!(
        answer.refused(ErrorCode::InvalidBody)["details"]["operation"],
        2
    );
}

async fn many_rows_are_inserted_by_several_operations(door: Door) {
    let room = Room::new(door, T).await;
    let rows: Vec<Value> = (0..3000).map(|n| json!({"n": n})).collect();
    let insert = post(&room.path("t"), json!({"batchData": rows}));
    let done = batch(door, &[insert.clone(), insert.clone(), insert]).await;
    assert_eq!(done.payload()[2][2999], 9000);
    assert_eq!(room.value("SELECT COUNT(*) FROM t").await, 9000);
}

async fn nesting_ends_at_32_levels_in_a_batch_too(door: Door) {
    let room = Room::new(door, T).await;
    let nested = |levels: usize| {
        let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        post(
            &room.path("t"),
            json!({"doc": serde_json::from_str::<Value>(&text).unwrap()}),
        )
    };
    // The body, its list, the operation and its body are four.
    batch(door, &[nested(28)]).await.payload();
    batch(door, &[nested(29)])
        .await
        .refused(ErrorCode::InvalidJson);
}
