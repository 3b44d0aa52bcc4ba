//! CHAR, TEXT, ENUM, SET, in any character set.

use super::Found::{ByInput, NotAsked};
use super::{are_no_filters, are_refused, round_trips};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        texts_come_back_as_they_went_in,
        numbers_become_their_text,
        columns_of_other_character_sets_are_utf_8_outside,
        what_a_character_set_lacks_is_refused,
        enums_and_sets_are_texts,
        a_condition_on_an_enum_names_its_members,
        long_texts_come_back_whole,
        texts_that_are_too_long_are_refused,
    ],
}

const TEXTS: &[(&str, &str)] = &[
    ("\"plain\"", "\"plain\""),
    ("\"\"", "\"\""),
    ("\"null\"", "\"null\""),
    ("null", "null"),
    ("\"ünï 日本 🦭 👩‍👩‍👧‍👦\"", "\"ünï 日本 🦭 👩‍👩‍👧‍👦\""),
    ("\"\\ud83e\\uddad\"", "\"🦭\""),
    ("\"quote \\\" back \\\\ slash /\"", "\"quote \\\" back \\\\ slash /\""),
    ("\"' -- ; DROP\"", "\"' -- ; DROP\""),
    ("\"1\"", "\"1\""),
    ("\"true\"", "\"true\""),
    ("\"{\\\"a\\\":1}\"", "\"{\\\"a\\\":1}\""),
];

async fn texts_come_back_as_they_went_in(host: Host) {
    round_trips(host, "VARCHAR(100)", ByInput, TEXTS).await;
    round_trips(host, "TEXT", ByInput, TEXTS).await;
    round_trips(host, "CHAR(50)", ByInput, TEXTS).await;
    round_trips(host, "LONGTEXT", NotAsked, &TEXTS[..3]).await;
    // Control characters may be escaped in several ways, so the parsed texts are compared.
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)"]).await;
    let all: String = (0..0x20_u8)
        .map(char::from)
        .chain(['\u{7f}', '\u{85}', '\u{2028}', '\u{feff}', '\u{fffd}', '\u{ffff}'])
        .collect();
    for text in [all.as_str(), "a\u{0}b", "\u{0}", "tab\tnewline\r\n", " lead and trail ", "\u{10ffff}"] {
        let id = db.post("t", &json!({"v": text})).await.payload();
        assert_eq!(db.get(&format!("t/{id}")).await.payload()["v"], text);
        let bound = db.sql_with("SELECT ? AS v", json!([text])).send().await.payload();
        assert_eq!(bound[0]["v"], text);
    }
}

async fn numbers_become_their_text(host: Host) {
    let pairs = [
        ("12", "\"12\""),
        ("-1.50", "\"-1.50\""),
        ("12345678901234567890123", "\"12345678901234567890123\""),
        ("0.10", "\"0.10\""),
    ];
    round_trips(host, "VARCHAR(100)", ByInput, &pairs).await;
    round_trips(host, "TEXT", ByInput, &pairs[..2]).await;
}

async fn columns_of_other_character_sets_are_utf_8_outside(host: Host) {
    let western = [("\"é ß € ÿ\"", "\"é ß € ÿ\""), ("\"plain\"", "\"plain\"")];
    for set in ["latin1", "utf8mb3", "ucs2", "utf16", "utf32", "cp1250"] {
        let pairs = if set == "cp1250" { &western[1..] } else { &western[..] };
        round_trips(host, &format!("VARCHAR(20) CHARACTER SET {set}"), ByInput, pairs).await;
    }
    round_trips(host, "VARCHAR(20) CHARACTER SET sjis", ByInput, &[("\"日本\"", "\"日本\"")]).await;
    round_trips(host, "ENUM('é','b') CHARACTER SET latin1", ByInput, &[("\"é\"", "\"é\"")]).await;
    round_trips(host, "TEXT CHARACTER SET utf16", ByInput, &[("\"🦭\"", "\"🦭\"")]).await;
}

async fn what_a_character_set_lacks_is_refused(host: Host) {
    are_refused(host, "VARCHAR(20) CHARACTER SET latin1", &["\"日本\"", "\"🦭\""]).await;
    are_refused(host, "VARCHAR(20) CHARACTER SET utf8mb3", &["\"🦭\""]).await;
    // In a condition, the value matches nothing.
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1)",
            "INSERT INTO t VALUES (1, '?'), (2, '??')",
        ],
    )
    .await;
    for text in ["🦭", "日本"] {
        assert_eq!(db.ids("t", &json!({"v": text}), "").await, Vec::<i64>::new());
        let contains = json!({"v": {"value": text, "equality": "CONTAINS"}});
        assert_eq!(db.ids("t", &contains, "").await, Vec::<i64>::new());
    }
}

async fn enums_and_sets_are_texts(host: Host) {
    round_trips(
        host,
        "ENUM('a','b c','','1')",
        ByInput,
        &[("\"a\"", "\"a\""), ("\"b c\"", "\"b c\""), ("\"\"", "\"\""), ("\"1\"", "\"1\"")],
    )
    .await;
    round_trips(host, "SET('x','y','z')", ByInput, &[("\"x,z\"", "\"x,z\""), ("\"\"", "\"\""), ("\"y\"", "\"y\"")])
        .await;
    round_trips(host, "SET('x','y','z')", ByInput, &[("\"z,x,z\"", "\"x,z\""), ("\"Y\"", "\"y\"")]).await;
    // A number is compared with the members' names, never with their positions.
    are_refused(host, "ENUM('a','b')", &["\"c\"", "\"\"", "\"a,b\"", "\"2\"", "1", "\" 1\"", "true"]).await;
    are_refused(host, "SET('x','y')", &["\"w\"", "\"x,w\"", "\"3\"", "3", "\"x,\"", "\"x, y\""]).await;
    are_no_filters(host, "ENUM('a','b')", &["\"c\"", "1", "{}"]).await;
    are_no_filters(host, "SET('x','y')", &["\"w\"", "\"x,w\"", "3"]).await;
}

/// All operators, statements and collations follow the same rule: a value that is not a member is refused.
async fn a_condition_on_an_enum_names_its_members(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('open','été'), s SET('open','été'), \
             x ENUM('open','été') COLLATE utf8mb4_bin)",
            "INSERT INTO t VALUES (1,'open','open','open'), (2,'été','open,été','été')",
        ],
    )
    .await;
    for (field, value) in [
        ("e", "opn"),
        ("e", "ete"),
        ("e", "2"),
        ("e", "日本"),
        ("s", "opn"),
        ("s", "open,日本"),
        ("x", "OPEN"),
        ("x", "日本"),
    ] {
        for condition in [
            json!({"value": value}),
            json!({"value": value, "equality": "!="}),
            json!({"value": ["open", value], "equality": "IN"}),
            json!({"value": ["open", value], "equality": "NOT IN"}),
            json!({"value": [value], "equality": "!="}),
            json!({"value": value, "not": true}),
        ] {
            let body = json!({"query": {field: condition}});
            let answer = db.post("t/query", &body).await;
            let error = answer.refused(ErrorCode::InvalidFilter);
            let message = error["message"].as_str().unwrap_or_default();
            assert!(message.contains("'open','été'"), "the values are named: {answer}");
        }
        for operator in ["=", "!=", "NOT IN"] {
            let item = json!({"key": field, "value": value, "operator": operator});
            let delete = json!({"deleteKeyValues": [item]});
            let answer = db.call(Method::DELETE, "t").json(&delete).send().await;
            answer.refused(ErrorCode::InvalidFilter);
            let update = json!({"updateKeyValues": [item], "data": {"id": 9}});
            let answer = db.call(Method::PUT, "t").json(&update).send().await;
            answer.refused(ErrorCode::InvalidFilter);
        }
    }
    for (field, value, ids) in [
        ("e", "open", json!([1])),
        ("e", "OPEN", json!([1])),
        ("e", "ÉTÉ", json!([2])),
        ("e", "", json!([])),
        ("s", "ÉTÉ,open", json!([2])),
        ("x", "été", json!([2])),
    ] {
        let body = json!({"query": {field: value}, "selectFields": ["id"]});
        let rows = db.post("t/query", &body).await.payload();
        let found: Value = rows.as_array().expect("a list").iter().map(|row| row["id"].clone()).collect();
        assert_eq!(found, ids, "{field} {value}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
}

async fn long_texts_come_back_whole(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)"]).await;
    let text: String = "0123456789 äöü 🦭 \"\\\n".chars().cycle().take(2_000_000).collect();
    db.post("t", &json!({"id": 1, "v": text})).await.payload();
    let payload = db.get("t/1").await.payload();
    assert!(payload["v"] == Value::String(text), "a long text changed");
}

async fn texts_that_are_too_long_are_refused(host: Host) {
    are_refused(host, "VARCHAR(3)", &["\"four\"", "12345", "\"🦭🦭🦭🦭\""]).await;
    are_refused(host, "CHAR(1)", &["\"ab\""]).await;
    let tiny = format!("\"{}\"", "x".repeat(256));
    are_refused(host, "TINYTEXT", &[&tiny]).await;
    round_trips(host, "VARCHAR(3)", ByInput, &[("\"🦭🦭🦭\"", "\"🦭🦭🦭\"")]).await;
}
