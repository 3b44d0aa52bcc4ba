//! `Prefer: return=representation` and `return=minimal` (RFC 7240): applied where possible, else ignored.

use super::ITEMS;
use crate::host::Host;
use crate::roles::Caller;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};

cases! {
    Both: [
        a_preference_is_applied_where_it_can_be,
        a_preference_that_can_not_be_met_is_ignored,
    ],
}

async fn a_preference_is_applied_where_it_can_be(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let send = async |method: Method, rest: &str, prefer: &str| {
        let body = if method == Method::DELETE { String::new() } else { json!({"name": "x"}).to_string() };
        let answer = db.call(method, rest).bytes(body).header("prefer", prefer).send().await;
        (answer.payload(), answer.header("preference-applied").map(str::to_owned))
    };
    let applied = Some("return=representation".to_owned());
    let (payload, header) = send(Method::POST, "items", "return=representation").await;
    assert_eq!((payload["id"].clone(), header), (json!(6), applied.clone()));
    let (payload, header) = send(Method::PATCH, "items/6", "respond-async, return=representation").await;
    assert_eq!((payload["name"].clone(), header), (json!("x"), applied.clone()));
    let minimal = Some("return=minimal".to_owned());
    assert_eq!(send(Method::PUT, "items/6", "return=minimal").await, (json!(1), minimal.clone()));
    assert_eq!(send(Method::POST, "items", "return=minimal").await, (json!(7), minimal));
    assert_eq!(send(Method::PUT, "items/6", "return=everything").await, (json!(1), None));
    for prefer in ["return=representation", "return=minimal"] {
        let answer = send(Method::PUT, "items/6?returning=id", prefer).await;
        assert_eq!(answer, (json!({"id": 6}), None), "the option decides");
    }
    assert_eq!(send(Method::PUT, "items/6?dryRun=true", "return=representation").await, (json!(1), None));
    let (payload, header) = send(Method::DELETE, "items/6", "return=representation").await;
    assert_eq!((payload["name"].clone(), header), (json!("x"), applied));
    let read = db.call(Method::GET, "items/1").header("prefer", "return=representation").send().await;
    assert_eq!((&read.payload()["name"], read.header("preference-applied")), (&json!("apple"), None));
}

async fn a_preference_that_can_not_be_met_is_ignored(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE plain (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = Aria",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE VIEW v AS SELECT id, n FROM t",
            "CREATE TABLE twice (id INT NOT NULL DEFAULT 1, n INT)",
        ],
    )
    .await;
    let writes = json!({"insert": true, "update": true, "delete": true});
    let blind = Caller::new(&db, [("t", writes)], json!({}));
    let full = Caller { db: &db, key: shared().full_key.clone() };
    // The role's insert returns null, since the role may not read the id. Its id is 2, since the view's insert took the
    // id 1 of `t`.
    let cases = [(&full, "plain", 1, json!(1)), (&full, "v", 1, json!(1)), (&blind, "t", 2, json!(null))];
    for (caller, table, id, answer) in cases {
        let send = async |method: Method, rest: &str, body: Value| {
            let call = caller.call(method, &format!("{table}{rest}")).json(&body);
            let sent = call.header("prefer", "return=representation").send().await;
            assert_eq!(sent.header("preference-applied"), None, "{sent}");
            sent.payload()
        };
        assert_eq!(send(Method::POST, "", json!({"n": 1})).await, answer, "{table}");
        assert_eq!(db.value(&format!("SELECT COUNT(*) FROM {table}")).await, 1);
        assert_eq!(send(Method::PUT, &format!("/{id}"), json!({"n": 2})).await, 1);
        assert_eq!(send(Method::DELETE, &format!("/{id}"), json!({})).await, 1);
    }
    db.exec("INSERT INTO twice (n) VALUES (1), (1)").await;
    let by_id = db.call(Method::PUT, "twice/1").json(&json!({"n": 2})).header("prefer", "return=representation");
    let answer = by_id.send().await;
    assert_eq!((answer.payload(), answer.header("preference-applied")), (json!(2), None));
}
