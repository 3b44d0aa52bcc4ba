//! `next` and `after`: a cursor works only for the read that it came from.

use super::both_notations::{SHOP, ask, refused, spelled};
use super::paging::by;
use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        a_token_changed_anywhere_is_refused,
        a_token_of_another_read_is_refused,
        a_token_goes_with_another_limit_and_other_fields_shown,
        a_token_needs_no_other_paging,
        a_single_record_has_no_pages,
        an_order_of_too_many_keys_has_no_next,
    ],
    Edge: [a_token_of_one_host_is_valid_at_the_other],
}

async fn a_token_changed_anywhere_is_refused(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"limit": 2, "order": [by("title", "DESC")]});
    let answer = ask(&db, "books", &base).await;
    let token = answer.json()["next"].as_str().expect("a next page").to_owned();
    for plain in ["title", "books", "More"] {
        assert!(!token.contains(plain), "{token} is not opaque");
    }
    let mut options = base.clone();
    for at in 0..token.len() {
        for to in [b'A', b'z', b'0'] {
            let mut bytes = token.clone().into_bytes();
            if bytes[at] == to {
                continue;
            }
            bytes[at] = to;
            options["after"] = json!(String::from_utf8(bytes).unwrap());
            let answer = db.get(&spelled("books", &options)).await;
            let error = answer.refused(ErrorCode::InvalidQueryOption);
            assert!(error["message"].as_str().unwrap().contains("after"), "{answer}");
        }
    }
    for wrong in [
        token[..token.len() - 1].to_owned(),
        token[1..].to_owned(),
        format!("{token}A"),
        format!("{token}="),
        format!(" {token}"),
        format!("{token}\n"),
        String::new(),
        "x".to_owned(),
        "null".to_owned(),
        "A".repeat(8000),
        "é".to_owned(),
        format!("{token}{token}"),
    ] {
        options["after"] = json!(wrong);
        refused(&db, "books", &options, ErrorCode::InvalidQueryOption, &["after"]).await;
    }
    for wrong in [json!(1), json!([]), json!({}), json!([token]), json!(true)] {
        options["after"] = wrong;
        let answer = db.post("books/query", &options).await;
        let error = answer.refused(ErrorCode::InvalidQueryOption);
        assert!(error["message"].as_str().unwrap().contains("after"), "{answer}");
    }
    options["after"] = json!(token);
    ask(&db, "books", &options).await.payload();
}

async fn a_token_of_another_read_is_refused(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    db.exec("CREATE TABLE twins LIKE books").await;
    let base = json!({"limit": 2, "order": by("title", "ASC"), "query": {"year": {"value": 1800, "equality": ">"}}});
    let token = ask(&db, "books", &base).await.json()["next"].clone();
    assert!(token.is_string());
    for (table, more) in [
        ("twins", json!({})),
        ("authors", json!({"order": by("name", "ASC"), "query": {}})),
        ("books", json!({"order": by("title", "DESC")})),
        ("books", json!({"order": by("year", "ASC")})),
        ("books", json!({"order": by("id", "ASC")})),
        ("books", json!({"order": [by("title", "ASC"), by("year", "ASC")]})),
        ("books", json!({"query": {"year": {"value": 1801, "equality": ">"}}})),
        ("books", json!({"query": {"year": {"value": 1800, "equality": ">="}}})),
        ("books", json!({"query": {}})),
        ("books", json!({"query": {}, "explain": true})),
        ("books", json!({"query": {"year": {"value": 1800, "equality": ">"}, "id": 1}})),
        (
            "books",
            json!({"join": [{"tableName": "authors", "joinType": "JOIN", "match": {"source": "author_id", "target": "id"}}]}),
        ),
    ] {
        let mut options = base.clone();
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        options["after"] = token.clone();
        refused(&db, table, &options, ErrorCode::InvalidQueryOption, &["after"]).await;
    }
    // A cursor is refused for another database with the same tables, but accepted with the same project's read key.
    let other = TestDb::new(host, SHOP).await;
    let mut options = base.clone();
    options["after"] = token;
    refused(&other, "books", &options, ErrorCode::InvalidQueryOption, &["after"]).await;
    let by_read_key = db.call(Method::GET, &spelled("books", &options)).key(&shared().read_key).send().await;
    by_read_key.payload();
}

async fn a_token_goes_with_another_limit_and_other_fields_shown(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"limit": 2, "order": by("id", "ASC")});
    let token = ask(&db, "books", &base).await.json()["next"].clone();
    let got = ask(&db, "books", &json!({"limit": 3, "order": by("id", "ASC"), "after": token})).await;
    assert_eq!(got.payload().as_array().unwrap().len(), 3);
    assert_eq!(got.payload()[0]["id"], 3);
    let got = ask(&db, "books", &json!({"order": by("id", "ASC"), "after": token})).await;
    if got.code() == "ok" {
        assert_eq!(got.payload().as_array().unwrap().len(), 3);
    } else {
        got.refused(ErrorCode::InvalidQueryOption);
    }
}

async fn a_token_needs_no_other_paging(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"limit": 2, "order": by("id", "ASC")});
    let token = ask(&db, "books", &base).await.json()["next"].clone();
    for (name, value) in [("page", json!(2)), ("offset", json!(1))] {
        let mut options = base.clone();
        options["after"] = token.clone();
        options[name] = value;
        refused(&db, "books", &options, ErrorCode::InvalidQueryOption, &["after", name]).await;
    }
}

async fn a_single_record_has_no_pages(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"limit": 2, "order": by("id", "ASC")});
    let token = ask(&db, "books", &base).await.json()["next"].clone();
    let answer = db.get(&format!("books/1?after={}", token.as_str().unwrap())).await;
    answer.refused(ErrorCode::InvalidQueryOption);
}

async fn a_token_of_one_host_is_valid_at_the_other(host: Host) {
    assert_eq!(host, Host::Edge);
    let db = TestDb::new(host, SHOP).await;
    let origin = TestDb { host: Host::Origin, name: db.name.clone() };
    let mut options = json!({"limit": 2, "order": by("title", "ASC")});
    for (one, other) in [(&db, &origin), (&origin, &db)] {
        options.as_object_mut().unwrap().remove("after");
        options["after"] = ask(one, "books", &options).await.json()["next"].clone();
        let expected = ask(one, "books", &options).await.payload();
        assert_eq!(ask(other, "books", &options).await.payload(), expected);
    }
}

async fn an_order_of_too_many_keys_has_no_next(host: Host) {
    let columns: Vec<String> = (0..16).map(|at| format!("c{at} INT")).collect();
    let key: Vec<String> = (0..16).map(|at| format!("c{at}")).collect();
    let table = format!("CREATE TABLE wide ({}, PRIMARY KEY ({}))", columns.join(", "), key.join(", "));
    let db = TestDb::new(host, &[&table]).await;
    for row in 1..=2 {
        let values = vec![row.to_string(); 16].join(", ");
        db.exec(&format!("INSERT INTO wide VALUES ({values})")).await;
    }
    for (joins, pages) in [(3, true), (4, false)] {
        let join: serde_json::Value = (0..joins)
            .map(|at| {
                json!({"tableName": "wide", "alias": format!("w{at}"), "selectFields": [],
                    "match": {"source": "c0", "target": "c1"}})
            })
            .collect();
        let mut options = json!({"limit": 1, "join": join, "selectFields": ["c0"], "order": by("c0", "ASC")});
        let answer = ask(&db, "wide", &options).await;
        let next = answer.json()["next"].clone();
        assert_eq!(next.is_string(), pages, "{answer}");
        options["after"] = if pages { next } else { json!("x") };
        let answer = ask(&db, "wide", &options).await;
        if pages {
            assert_eq!(answer.payload(), json!([{"c0": 2}]));
        } else {
            let error = answer.refused(ErrorCode::InvalidQueryOption);
            assert!(error["message"].as_str().unwrap().contains("64"), "{answer}");
        }
    }
}
