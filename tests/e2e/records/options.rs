//! Invalid options: each is refused by name, none is ignored.

use super::ITEMS;
use crate::host::{Answer, Host, enc, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        numbers_that_are_none_are_refused,
        options_that_can_not_be_understood_are_refused_by_name,
        options_of_another_operation_are_refused,
        an_unknown_option_hints_what_was_meant,
        a_whole_number_may_be_written_with_a_point,
        the_post_twin_refuses_what_the_url_refuses,
    ],
}

/// Checks that an answer refuses an option and names it in its message or hint.
#[track_caller]
fn names(answer: &Answer, option: &str) {
    let error = answer.refused(ErrorCode::InvalidQueryOption);
    let told = format!("{}{}", error["message"], error["hint"]);
    assert!(told.contains(option), "{option} is not named: {answer}");
}

async fn refused(db: &TestDb, options: &str) {
    let answer = db.get(&format!("items?{options}")).await;
    names(&answer, options.split(['=', '[', '&']).next().unwrap());
}

async fn numbers_that_are_none_are_refused(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for value in [
        "-1",
        "1.5",
        "1.",
        ".0",
        "x",
        "",
        "1e3",
        "0x10",
        "%2B1",
        " 1",
        "1 ",
        "null",
        "true",
        "[]",
        "99999999999999999999",
        "١",
    ] {
        let value = enc(value).replace("%25", "%");
        refused(&db, &format!("limit={value}")).await;
        refused(&db, &format!("offset={value}&limit=1")).await;
        refused(&db, &format!("page={value}&limit=1")).await;
    }
}

async fn options_that_can_not_be_understood_are_refused_by_name(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for options in [
        "page=0&limit=1",
        "page=1&offset=1&limit=1",
        "page=1",
        "foo=1",
        "foo",
        "Limit=1",
        "LIMIT=1",
        "select=id&selectFields=id",
        "where[id]=1&query[id]=1",
        "id=1",
        "deleteKeyValues=[]",
        "limit=1&limit=1",
        "limit=1&limit=2",
        "searchOperator=AND&searchOperator=OR",
        "searchOperator=XOR",
        "order[field]=id&order[field]=name",
        "order={",
        "selectFields=id&omitFields=name",
        "query[id]=1&query[id]=2",
        "query=%7B%22id%22%3A1%7D&query=%7B%22id%22%3A1%7D",
        "query=%7B%22id%22%3A1%7D&query[id]=1",
        "after=garbage",
    ] {
        refused(&db, options).await;
    }
    for order in [
        json!({}),
        json!({"field": 5}),
        json!({"field": "id", "strategy": "UP"}),
        json!({"field": "id", "strategy": "ASC; DROP TABLE items"}),
        json!({"field": "id", "strategy": 1}),
        json!({"field": "id", "direction": "ASC"}),
        json!([{"field": "id"}, 5]),
        json!(""),
        json!(["id", ""]),
        json!(["id", null]),
    ] {
        refused(&db, &option("order", &order)).await;
    }
    for fields in [
        json!([1]),
        json!([null]),
        json!({"a": 1}),
        json!([{"alias": "x"}]),
        json!([{"fieldName": "id", "foo": 1}]),
        json!([[]]),
    ] {
        refused(&db, &option("selectFields", &fields)).await;
    }
    let alias = json!([{"fieldName": "id", "alias": "x"}]);
    refused(&db, &option("omitFields", &alias)).await;
    let join = json!([{"tableName": "nope", "joinType": "JOIN", "match": {"source": "id", "target": "id"}}]);
    let search = json!({"fields": ["name"], "searchTerm": "x"});
    for (options, code) in [
        ("limit%00=1", ErrorCode::InvalidQueryOption),
        ("order[field]=id%20DESC", ErrorCode::UnknownField),
        ("order=id%20DESC", ErrorCode::UnknownField),
        ("order=--id", ErrorCode::UnknownField),
        ("order=-", ErrorCode::InvalidIdentifier),
        ("order[field]=1", ErrorCode::UnknownField),
        ("selectFields=*", ErrorCode::UnknownField),
        ("selectFields=COUNT(*)", ErrorCode::UnknownField),
        ("selectFields=id,nope", ErrorCode::UnknownField),
        ("omitFields=nope", ErrorCode::UnknownField),
        ("group=nope", ErrorCode::UnknownField),
        (&option("join", &join), ErrorCode::TableNotFound),
        (&option("fullTextSearch", &search), ErrorCode::FulltextIndexMissing),
    ] {
        let answer = db.get(&format!("items?{options}")).await;
        answer.refused(code);
    }
}

async fn a_whole_number_may_be_written_with_a_point(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for number in [json!(2.0), json!("2.0"), json!("2")] {
        let body = json!({"limit": number, "page": number, "select": "id", "order": "id"});
        assert_eq!(db.post("items/query", &body).await.payload(), json!([{"id": 3}, {"id": 4}]), "{number}");
    }
    let answer = db.get("items?limit=2.0&page=2.00&select=id&order=id").await;
    assert_eq!(answer.payload(), json!([{"id": 3}, {"id": 4}]));
}

async fn options_of_another_operation_are_refused(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let body = json!({"name": "x"});
    for (method, rest, body, option) in [
        (Method::GET, "items/1?foo=1", None, "foo"),
        (Method::GET, "items/_schema?foo=1", None, "foo"),
        (Method::POST, "items?limit=1", Some(&body), "limit"),
        (Method::POST, "items?onConflict=nonsense", Some(&body), "onConflict"),
        (Method::PUT, "items/1?limit=1", Some(&body), "limit"),
        (Method::DELETE, "items/1?limit=1", None, "limit"),
        (Method::POST, "items/query?limit=1", Some(&json!({})), "limit"),
    ] {
        let mut call = db.call(method, rest);
        if let Some(body) = body {
            call = call.json(body);
        }
        names(&call.send().await, option);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM items").await, 5);
    assert_eq!(db.get("items/1").await.payload()["name"], "apple");
}

async fn an_unknown_option_hints_what_was_meant(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (options, hint) in [
        ("Name=x", r#"query={"Name":…}"#),
        ("views=gt.5", r#"query={"views":…}"#),
        ("lmit=1", r#"Did you mean "limit"?"#),
        ("filter[id]=1", r#"query={"views":{"gt":5}}"#),
        ("fields=id", "select=id,title"),
        ("sort=-id", "order=-id"),
        ("per_page=2", "limit=20"),
    ] {
        let answer = db.get(&format!("items?{options}")).await;
        let error = answer.refused(ErrorCode::InvalidQueryOption);
        assert!(error["hint"].as_str().unwrap().contains(hint), "{options}: {error}");
    }
    let include = json!({"relation": "x", "filter": {"a": 1}});
    let answer = db.get(&format!("items?{}", option("include", &include))).await;
    assert_eq!(answer.refused(ErrorCode::InvalidQueryOption)["hint"], "Did you mean \"query\"?");
}

async fn the_post_twin_refuses_what_the_url_refuses(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for body in [
        json!({"limit": -1}),
        json!({"limit": 1.5}),
        json!({"limit": 1.01}),
        json!({"limit": "x"}),
        json!({"limit": []}),
        json!({"limit": null}),
        json!({"page": 1}),
        json!({"page": 1, "limit": 1, "offset": 1}),
        json!({"order": 5}),
        json!({"selectFields": 5}),
        json!({"selectFields": ["id"], "omitFields": ["name"]}),
        json!({"searchOperator": "XOR"}),
    ] {
        let answer = db.post("items/query", &body).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
    for body in [json!([]), json!("x"), json!(5), Value::Null] {
        let answer = db.post("items/query", &body).await;
        answer.refused(ErrorCode::InvalidBody);
    }
}
