//! The limits of a batch and of its answer.

use super::{batch, call, get, post};
use crate::host::Host;
use crate::roles::{Caller, create_role, role_of};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_thousand_operations_run_and_no_more,
        each_operation_counts_against_the_rate_limit,
        ten_thousand_rows_are_read_and_no_more,
        sixteen_mebibytes_are_answered_and_no_more,
        many_rows_are_inserted_by_several_operations,
        nesting_ends_at_32_levels_in_a_batch_too,
    ],
}

const T: &[&str] = &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, doc JSON)"];

async fn a_thousand_operations_run_and_no_more(host: Host) {
    let db = TestDb::new(host, T).await;
    let t = db.path("t");
    let mut operations = vec![post(&t, json!({"n": 0}))];
    operations.extend((0..999).map(|at| post(&t, json!({"n": {"$ref": at}}))));
    let done = batch(host, &operations).await;
    let ids: Vec<i64> = (1..=1000).collect();
    assert_eq!(done.payload(), json!(ids));
    assert_eq!(db.value("SELECT SUM(n) FROM t").await, json!("499500"));
    operations.push(post(&t, json!({"n": 0})));
    let answer = batch(host, &operations).await;
    assert_eq!(answer.refused(ErrorCode::InvalidBody).get("details"), None);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1000);
}

async fn each_operation_counts_against_the_rate_limit(host: Host) {
    let db = TestDb::new(host, T).await;
    let mut role = role_of(&db, [("t", json!({"read": true}))]);
    role["rateLimit"] = json!("6/1h");
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    let batch = async |count: usize| {
        let operations = vec![get(&format!("{}?limit=1", db.path("t"))); count];
        call(host, &operations).key(&caller.key).send().await
    };
    assert_eq!(batch(3).await.payload(), json!([[], [], []]));
    // Four are counted, this one included.
    let left = caller.get("t").await.header("ratelimit").map(str::to_owned);
    assert!(left.as_ref().is_some_and(|left| left.contains("r=2")), "{left:?}");
    assert_eq!(batch(2).await.payload(), json!([[], []]));
    caller.get("t").await.refused(ErrorCode::RateLimited);
}

async fn ten_thousand_rows_are_read_and_no_more(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("INSERT INTO t (n) SELECT seq FROM seq_1_to_10001").await;
    let t = db.path("t");
    let half = get(&format!("{t}?limit=5000&selectFields=id"));
    let done = batch(host, &[half.clone(), half.clone()]).await;
    assert_eq!(done.payload()[1].as_array().map(Vec::len), Some(5000));
    let one = get(&format!("{t}/1"));
    for (operations, at) in
        [(vec![post(&t, json!({})), half.clone(), half, one], 3), (vec![post(&t, json!({})), get(&t)], 1)]
    {
        let answer = batch(host, &operations).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert_eq!(error["details"]["operation"], at, "{answer}");
        assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 10_001);
    }
}

async fn sixteen_mebibytes_are_answered_and_no_more(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)"]).await;
    db.exec("INSERT INTO t VALUES (1, REPEAT('x', 6 * 1024 * 1024))").await;
    let read = get(&format!("{}/1", db.path("t")));
    let done = batch(host, &[read.clone(), read.clone()]).await;
    assert_eq!(done.payload()[1]["v"].as_str().map(str::len), Some(6 << 20));
    let answer = batch(host, &[read.clone(), read.clone(), read]).await;
    assert_eq!(answer.refused(ErrorCode::InvalidBody)["details"]["operation"], 2);
}

async fn many_rows_are_inserted_by_several_operations(host: Host) {
    let db = TestDb::new(host, T).await;
    let rows: Vec<Value> = (0..3000).map(|n| json!({"n": n})).collect();
    let insert = post(&db.path("t"), json!({"batchData": rows}));
    let done = batch(host, &[insert.clone(), insert.clone(), insert]).await;
    assert_eq!(done.payload()[2][2999], 9000);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 9000);
}

async fn nesting_ends_at_32_levels_in_a_batch_too(host: Host) {
    let db = TestDb::new(host, T).await;
    let nested = |levels: usize| {
        let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        post(&db.path("t"), json!({"doc": serde_json::from_str::<Value>(&text).unwrap()}))
    };
    // The body, its list, the operation and the operation's body are four levels.
    batch(host, &[nested(28)]).await.payload();
    batch(host, &[nested(29)]).await.refused(ErrorCode::InvalidJson);
}
