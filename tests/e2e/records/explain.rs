//! `explain=true`: the statement and MariaDB's plan, for full keys only; the statement contains no value of the client.

use super::both_notations::{SHOP, ask, refused, spelled};
use crate::host::{Host, enc};
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        an_explanation_has_the_statement_and_the_plan,
        an_explanation_holds_any_value_and_name,
        an_explanation_needs_a_full_key,
        an_explanation_runs_nothing,
        an_explanation_refuses_what_the_read_refuses,
        explanations_of_odd_words_are_refused,
    ],
}

async fn an_explanation_has_the_statement_and_the_plan(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join =
        json!({"tableName": "authors", "joinType": "LEFT JOIN", "match": {"source": "author_id", "target": "id"}});
    for options in [
        json!({"explain": true}),
        json!({"explain": true, "limit": 0}),
        json!({"explain": true, "query": {"title": "a-secret-value"}, "limit": 3, "page": 2, "order": {"field": "year"}}),
        json!({"explain": true, "join": [join], "count": true, "limit": 2}),
        json!({"explain": true, "group": "year", "selectFields": ["year", {"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]}),
    ] {
        let answer = db.get(&spelled("books", &options)).await;
        let twin = db.post("books/query", &options).await;
        // Only the SQL is compared: MariaDB's plan contains estimates, which may change.
        assert_eq!(answer.payload()["sql"], twin.payload()["sql"]);
        assert!(answer.payload()["plan"].is_object(), "{answer}");
        let text = answer.payload()["sql"].to_string();
        assert!(text.contains("SELECT"), "{answer}");
        assert!(text.contains("books"), "{answer}");
        assert!(!text.contains("a-secret-value"), "{answer}");
    }
    let answer = db.get("books/1?explain=true").await;
    assert!(answer.payload()["plan"].is_object(), "{answer}");
    let plain = ask(&db, "books", &json!({"explain": false, "limit": 1})).await;
    assert!(plain.payload().is_array(), "{plain}");
}

/// MariaDB doesn't escape values and names in the plan's JSON strings.
async fn an_explanation_holds_any_value_and_name(host: Host) {
    let name = "we\"ird\\'\n`t";
    let (quoted, odd) = (name.replace('`', "``"), format!("{}/query", enc(name)));
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40), b VARBINARY(40), n INT)",
            "INSERT INTO t VALUES (1,'a','a',1), (2,'b','b',2), (3,'c','c',3)",
            &format!(
                "CREATE TABLE `{quoted}` (id INT PRIMARY KEY, `{quoted}` VARCHAR(40), KEY `{quoted}` (`{quoted}`))"
            ),
            &format!("INSERT INTO `{quoted}` VALUES (1,'a'), (2,'b'), (3,'c')"),
        ],
    )
    .await;
    for (value, shown) in [
        ("O'Brien", "O\\'Brien"),
        ("a\ttab", "a\ttab"),
        ("nul\0", "nul\\0"),
        ("a \"quote\"", "a \"quote\""),
        ("\u{1A}\u{1}", "\u{1}"),
        ("x\",\n  \"rows\": 5, \"y\": \"", "\"rows\": 5"),
        ("ชื่อ \u{1F9AD}", "ชื่อ"),
    ] {
        let options = json!({"explain": true, "query": {"v": {"value": value, "equality": ">"}}});
        let plan = db.post("t/query", &options).await.payload()["plan"].clone();
        let table = &plan["query_block"]["nested_loop"][0]["table"];
        let condition = table["attached_condition"].as_str().unwrap_or_default();
        assert!(condition.contains(shown), "{value:?}: {plan}");
        assert_eq!(table["table_name"], "t", "{plan}");
        let options = json!({"explain": true, "query": {name: value}});
        let plan = db.post(&odd, &options).await.payload()["plan"].clone();
        let table = &plan["query_block"]["nested_loop"][0]["table"];
        assert_eq!(table["table_name"], name, "{plan}");
        assert_eq!(table["key"], name, "{plan}");
    }
    let options = json!({"explain": true, "query": {"b": "AP+A"}, "order": {"field": "v"}});
    assert!(db.post("t/query", &options).await.payload()["plan"].is_object());
}

async fn an_explanation_needs_a_full_key(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"explain": true, "limit": 1});
    let by_url = db.call(Method::GET, &spelled("books", &options)).key(&shared().read_key);
    by_url.send().await.refused(ErrorCode::FullAccessRequired);
    let by_body = db.call(Method::POST, "books/query").json(&options).key(&shared().read_key);
    by_body.send().await.refused(ErrorCode::FullAccessRequired);
    let plain = db.call(Method::GET, "books?explain=false&limit=1").key(&shared().read_key);
    plain.send().await.payload();
}

async fn an_explanation_runs_nothing(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "CREATE TABLE log (n INT)",
            "INSERT INTO t VALUES (1)",
            "CREATE FUNCTION noting() RETURNS INT BEGIN INSERT INTO log VALUES (1); RETURN 1; END",
            "CREATE VIEW v AS SELECT id, noting() AS n FROM t",
        ],
    )
    .await;
    db.get("v?explain=true").await.payload();
    assert_eq!(db.value("SELECT COUNT(*) FROM log").await, 0);
}

async fn an_explanation_refuses_what_the_read_refuses(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    refused(&db, "books", &json!({"explain": true, "query": {"nope": 1}}), ErrorCode::UnknownField, &["nope"]).await;
    refused(&db, "nope", &json!({"explain": true}), ErrorCode::TableNotFound, &["nope"]).await;
    refused(
        &db,
        "books",
        &json!({"explain": true, "join": [{"tableName": "authors"}]}),
        ErrorCode::InvalidQueryOption,
        &["join"],
    )
    .await;
    refused(
        &db,
        "books",
        &json!({"explain": true, "after": "x", "limit": 2}),
        ErrorCode::InvalidQueryOption,
        &["after"],
    )
    .await;
}

async fn explanations_of_odd_words_are_refused(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for wrong in [json!("yes"), json!("analyze"), json!(2), json!({})] {
        refused(&db, "books", &json!({"explain": wrong}), ErrorCode::InvalidQueryOption, &["explain"]).await;
    }
    db.get(&format!("books?explain=true&explain={}", enc("true"))).await.refused(ErrorCode::InvalidQueryOption);
}
