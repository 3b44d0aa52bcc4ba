//! Inserts that a trigger or procedure refuses by SIGNAL: the answer has its message.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_triggers_message_arrives_word_for_word,
        a_procedures_message_arrives_word_for_word,
        a_rejected_batch_does_nothing_and_names_the_operation,
    ],
}

/// A message with account names, paths and punctuation, which would be lost if messages were shortened or filtered.
const SAID: &str = "Discount not allowed for user 'bob', see /help/discounts/rules (limit: 10%)";

async fn db(host: Host) -> TestDb {
    let said = SAID.replace('\'', "''");
    let refuse = |event: &str| {
        format!(
            "CREATE TRIGGER {event}_t BEFORE {event} ON t FOR EACH ROW \
             IF {row}.n > 10 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{said}'; END IF",
            row = if event == "DELETE" { "OLD" } else { "NEW" }
        )
    };
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    db.exec("INSERT INTO t VALUES (1, 1), (2, 20)").await;
    for event in ["INSERT", "UPDATE", "DELETE"] {
        db.exec(&refuse(event)).await;
    }
    db.exec(&format!("CREATE PROCEDURE p() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{said}'")).await;
    db
}

#[track_caller]
fn is_told(error: &Value) {
    assert_eq!(error["message"], SAID, "{error}");
    assert_eq!(error["details"]["errno"], 1644, "{error}");
    assert_eq!(error["details"]["sqlState"], "45000", "{error}");
    assert_eq!(error["retryable"], false, "{error}");
}

async fn a_triggers_message_arrives_word_for_word(host: Host) {
    let db = db(host).await;
    for (method, rest, body) in [
        (Method::POST, "t", json!({"n": 11})),
        (Method::POST, "t", json!({"batchData": [{"n": 1}, {"n": 11}]})),
        (Method::POST, "t?onConflict=update", json!({"id": 9, "n": 11})),
        (Method::PUT, "t/1", json!({"n": 11})),
        (Method::DELETE, "t", json!({"deleteKeyValues": [{"key": "n", "value": 20}]})),
    ] {
        let answer = db.call(method, rest).json(&body).send().await;
        is_told(&answer.refused(ErrorCode::RejectedByDatabase));
    }
    let sums = db.exec("SELECT COUNT(*) AS c, SUM(n) AS s FROM t").await;
    assert_eq!(sums, json!([{"c": 2, "s": "21"}]));
}

async fn a_procedures_message_arrives_word_for_word(host: Host) {
    let db = db(host).await;
    let answer = db.sql("CALL p()").send().await;
    is_told(&answer.refused(ErrorCode::RejectedByDatabase));
    let answer = db.sql("INSERT INTO t (n) VALUES (11)").send().await;
    is_told(&answer.refused(ErrorCode::RejectedByDatabase));
}

async fn a_rejected_batch_does_nothing_and_names_the_operation(host: Host) {
    let db = db(host).await;
    let operation = |n: i32| json!({"method": "POST", "path": db.path("t"), "body": {"n": n}});
    let body = json!({"operations": [operation(1), operation(11)]});
    let answer = host.call(Method::POST, "/api/v1/batch").json(&body);
    let error = answer.send().await.refused(ErrorCode::RejectedByDatabase);
    is_told(&error);
    assert_eq!(error["details"]["operation"], 1, "{error}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
}
