//! CHAR, TEXT, ENUM, SET, in any character set.

use super::Found::{ByInput, NotAsked};
use super::{are_no_filters, are_refused, round_trips};
use crate::door::Door;
use crate::room::Room;
use serde_json::{Value, json};

cases! {
    Both: [
        texts_come_back_as_they_went_in,
        numbers_become_their_text,
        columns_of_other_character_sets_are_utf_8_outside,
        what_a_character_set_lacks_is_refused,
        enums_and_sets_are_texts,
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
    (
        "\"quote \\\" back \\\\ slash /\"",
        "\"quote \\\" back \\\\ slash /\"",
    ),
    ("\"' -- ; DROP\"", "\"' -- ; DROP\""),
    ("\"1\"", "\"1\""),
    ("\"true\"", "\"true\""),
    ("\"{\\\"a\\\":1}\"", "\"{\\\"a\\\":1}\""),
];

async fn texts_come_back_as_they_went_in(door: Door) {
    round_trips(door, "VARCHAR(100)", ByInput, TEXTS).await;
    round_trips(door, "TEXT", ByInput, TEXTS).await;
    round_trips(door, "CHAR(50)", ByInput, TEXTS).await;
    round_trips(door, "LONGTEXT", NotAsked, &TEXTS[..3]).await;
    // Control characters, among them NUL, may be escaped in more than one way: compared as text.
    let room = Room::new(
        door,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)"],
    )
    .await;
    let all: String = (0..0x20_u8)
        .map(char::from)
        .chain([
            '\u{7f}', '\u{85}', '\u{2028}', '\u{feff}', '\u{fffd}', '\u{ffff}',
        ])
        .collect();
    for text in [
        all.as_str(),
        "a\u{0}b",
        "\u{0}",
        "tab\tnewline\r\n",
        " lead and trail ",
        "\u{10ffff}",
    ] {
        let id = room.post("t", &json!({"v": text})).await.payload();
        assert_eq!(room.get(&format!("t/{id}")).await.payload()["v"], text);
        let bound = room
            .sql_with("SELECT ? AS v", json!([text]))
            .send()
            .await
            .payload();
        assert_eq!(bound[0]["v"], text);
    }
}

async fn numbers_become_their_text(door: Door) {
    let pairs = [
        ("12", "\"12\""),
        ("-1.50", "\"-1.50\""),
        ("12345678901234567890123", "\"12345678901234567890123\""),
        ("0.10", "\"0.10\""),
    ];
    round_trips(door, "VARCHAR(100)", ByInput, &pairs).await;
    round_trips(door, "TEXT", ByInput, &pairs[..2]).await;
}

async fn columns_of_other_character_sets_are_utf_8_outside(door: Door) {
    let western = [("\"é ß € ÿ\"", "\"é ß € ÿ\""), ("\"plain\"", "\"plain\"")];
    for set in ["latin1", "utf8mb3", "ucs2", "utf16", "utf32", "cp1250"] {
        let pairs = if set == "cp1250" {
            &western[1..]
        } else {
            &western[..]
        };
        round_trips(
            door,
            &format!("VARCHAR(20) CHARACTER SET {set}"),
            ByInput,
            pairs,
        )
        .await;
    }
    round_trips(
        door,
        "VARCHAR(20) CHARACTER SET sjis",
        ByInput,
        &[("\"日本\"", "\"日本\"")],
    )
    .await;
    round_trips(
        door,
        "ENUM('é','b') CHARACTER SET latin1",
        ByInput,
        &[("\"é\"", "\"é\"")],
    )
    .await;
    round_trips(
        door,
        "TEXT CHARACTER SET utf16",
        ByInput,
        &[("\"🦭\"", "\"🦭\"")],
    )
    .await;
}

async fn what_a_character_set_lacks_is_refused(door: Door) {
    are_refused(
        door,
        "VARCHAR(20) CHARACTER SET latin1",
        &["\"日本\"", "\"🦭\""],
    )
    .await;
    are_refused(door, "VARCHAR(20) CHARACTER SET utf8mb3", &["\"🦭\""]).await;
    // As a filter it matches nothing.
    let room = Room::new(
        door,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1)",
            "INSERT INTO t VALUES (1, '?'), (2, '??')",
        ],
    )
    .await;
    for text in ["🦭", "日本"] {
        assert_eq!(
            room.ids("t", &json!({"v": text}), "").await,
            Vec::<i64>::new()
        );
        let contains = json!({"v": {"value": text, "equality": "CONTAINS"}});
        assert_eq!(room.ids("t", &contains, "").await, Vec::<i64>::new());
    }
}

async fn enums_and_sets_are_texts(door: Door) {
    round_trips(
        door,
        "ENUM('a','b c','','1')",
        ByInput,
        &[
            ("\"a\"", "\"a\""),
            ("\"b c\"", "\"b c\""),
            ("\"\"", "\"\""),
            ("\"1\"", "\"1\""),
        ],
    )
    .await;
    round_trips(
        door,
        "SET('x','y','z')",
        ByInput,
        &[("\"x,z\"", "\"x,z\""), ("\"\"", "\"\""), ("\"y\"", "\"y\"")],
    )
    .await;
    round_trips(
        door,
        "SET('x','y','z')",
        ByInput,
        &[("\"z,x,z\"", "\"x,z\""), ("\"Y\"", "\"y\"")],
    )
    .await;
    // A number is a member's name, never its place.
    are_refused(
        door,
        "ENUM('a','b')",
        &["\"c\"", "\"\"", "\"a,b\"", "\"2\"", "1", "\" 1\"", "true"],
    )
    .await;
    are_refused(
        door,
        "SET('x','y')",
        &["\"w\"", "\"x,w\"", "\"3\"", "3", "\"x,\"", "\"x, y\""],
    )
    .await;
    are_no_filters(door, "ENUM('a','b')", &["\"c\"", "1", "{}"]).await;
    are_no_filters(door, "SET('x','y')", &["\"w\"", "\"x,w\"", "3"]).await;
}

async fn long_texts_come_back_whole(door: Door) {
    let room = Room::new(door, &["CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)"]).await;
    let text: String = "0123456789 äöü 🦭 \"\\\n"
        .chars()
        .cycle()
        .take(2_000_000)
        .collect();
    room.post("t", &json!({"id": 1, "v": text})).await.payload();
    let payload = room.get("t/1").await.payload();
    assert!(payload["v"] == Value::String(text), "a long text changed");
}

async fn texts_that_are_too_long_are_refused(door: Door) {
    are_refused(door, "VARCHAR(3)", &["\"four\"", "12345", "\"🦭🦭🦭🦭\""]).await;
    are_refused(door, "CHAR(1)", &["\"ab\""]).await;
    let tiny = format!("\"{}\"", "x".repeat(256));
    are_refused(door, "TINYTEXT", &[&tiny]).await;
    round_trips(door, "VARCHAR(3)", ByInput, &[("\"🦭🦭🦭\"", "\"🦭🦭🦭\"")]).await;
}
