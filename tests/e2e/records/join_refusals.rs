//! Refused joins: which name each error contains, and the maximum number of joins.

use super::both_notations::{SHOP, ask, field, refused};
use super::joins::{author, by_id, with};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_joined_table_of_another_project_is_like_none,
        refusals_name_what_is_wrong,
        a_join_beyond_the_limit_is_refused,
        sixteen_joins_are_taken,
    ],
}

async fn a_joined_table_of_another_project_is_like_none(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let none = ask(&db, "books", &json!({"join": [with(author("JOIN"), json!({"tableName": "nope"}))]})).await;
    none.refused(ErrorCode::TableNotFound);
    assert!(none.text().contains("nope"), "{none}");
    for name in ["selkie.keys", "mysql.user", "information_schema.tables", "default_demo.books", "../books"] {
        let answer = ask(&db, "books", &json!({"join": [with(author("JOIN"), json!({"tableName": name}))]})).await;
        answer.refused(ErrorCode::TableNotFound);
    }
}

async fn refusals_name_what_is_wrong(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let good = author("JOIN");
    for (join, names) in [
        (json!(5), vec!["join"]),
        (json!("x"), vec!["join"]),
        (json!([5]), vec!["join"]),
        (json!([[]]), vec!["join"]),
        (json!([null]), vec!["join"]),
        (json!([{}]), vec!["join", "tableName"]),
        (json!([{"tableName": "authors", "joinType": "JOIN"}]), vec!["join", "match"]),
        (json!([with(good.clone(), json!({"match": []}))]), vec!["join", "match"]),
        (json!([with(good.clone(), json!({"match": {}}))]), vec!["join", "match"]),
        (json!([with(good.clone(), json!({"match": {"source": "author_id"}}))]), vec!["join", "target"]),
        (json!([with(good.clone(), json!({"match": {"target": "id"}}))]), vec!["join", "source"]),
        (
            json!([with(good.clone(), json!({"match": {"source": "author_id", "target": "id", "targetLiteral": 1}}))]),
            vec!["join", "targetLiteral"],
        ),
        (
            json!([with(good.clone(), json!({"match": {"source": "author_id", "target": "id", "x": 1}}))]),
            vec!["join", "x"],
        ),
        (
            json!([with(good.clone(), json!({"match": {"source": "author_id", "targetLiteral": {"a": 1}}}))]),
            vec!["targetLiteral"],
        ),
        (json!([with(good.clone(), json!({"match": {"source": 5, "target": "id"}}))]), vec!["join", "source"]),
        (
            json!([with(good.clone(), json!({"match": {"source": {"tableName": "books"}, "target": "id"}}))]),
            vec!["join", "fieldName"],
        ),
        (
            json!([with(
                good.clone(),
                json!({"match": {"source": {"tableName": "books", "fieldName": "id", "y": 0}, "target": "id"}})
            )]),
            vec!["join", "y"],
        ),
        (
            json!([with(
                good.clone(),
                json!({"match": {"source": {"tableName": "nope", "fieldName": "id"}, "target": "id"}})
            )]),
            vec!["nope"],
        ),
        (json!([with(good.clone(), json!({"joinType": "CROSS JOIN"}))]), vec!["join", "CROSS JOIN", "LEFT JOIN"]),
        (json!([with(good.clone(), json!({"joinType": 1}))]), vec!["join", "joinType"]),
        (json!([with(good.clone(), json!({"operator": "XOR"}))]), vec!["join", "operator", "XOR"]),
        (json!([with(good.clone(), json!({"operator": 1}))]), vec!["join", "operator"]),
        (json!([with(good.clone(), json!({"nest": "yes"}))]), vec!["join", "nest"]),
        (json!([with(good.clone(), json!({"nest": 2}))]), vec!["join", "nest"]),
        (json!([with(good.clone(), json!({"alias": ""}))]), vec!["empty"]),
        (json!([with(good.clone(), json!({"alias": 1}))]), vec!["join", "alias"]),
        (json!([with(good.clone(), json!({"alias": "books"}))]), vec!["join", "books"]),
        (json!([with(good.clone(), json!({"tableName": 1}))]), vec!["join", "tableName"]),
        (json!([with(good.clone(), json!({"on": "x"}))]), vec!["join", "on"]),
        (json!([with(good.clone(), json!({"selectFields": 5}))]), vec!["selectFields"]),
        (json!([good, good]), vec!["join", "authors"]),
    ] {
        let answer = ask(&db, "books", &json!({"join": join})).await;
        let code = answer.code();
        assert!(
            ["invalid_query_option", "invalid_identifier", "unknown_field", "table_not_found"].contains(&code.as_str()),
            "{answer}"
        );
        let error = answer.json()["error"].clone();
        let said = format!("{} {}", error["message"], error["hint"]);
        for name in names {
            assert!(said.contains(name), "{name} is not named: {answer}");
        }
    }
    for (more, names) in [
        (json!({"match": {"source": "autor_id", "target": "id"}}), ["autor_id", "author_id"]),
        (json!({"match": {"source": "author_id", "target": "nme"}}), ["nme", "name"]),
        (json!({"selectFields": ["nme"]}), ["nme", "name"]),
        (json!({"omitFields": ["nme"]}), ["nme", "name"]),
    ] {
        refused(&db, "books", &json!({"join": [with(good.clone(), more)]}), ErrorCode::UnknownField, &names).await;
    }
}

async fn a_join_beyond_the_limit_is_refused(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    refused(&db, "books", &json!({"join": chain(17)}), ErrorCode::InvalidQueryOption, &["join", "16"]).await;
}

async fn sixteen_joins_are_taken(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"join": chain(16), "selectFields": ["id"], "order": by_id()});
    assert_eq!(field(&db, "books", &options, "id").await, json!([1, 2, 3, 4, 5]));
}

fn chain(count: usize) -> Value {
    (0..count).map(|n| with(author("LEFT JOIN"), json!({"alias": format!("a{n}"), "selectFields": []}))).collect()
}
