//! Property tests of names and values. A failure prints the random input.

use crate::host::{Host, enc, option};
use crate::test_db::TestDb;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

cases! {
    Both: [
        any_legal_name_round_trips,
        any_text_round_trips,
        any_json_round_trips,
        any_number_round_trips,
        any_text_as_a_path_is_answered_with_an_envelope,
    ],
}

/// Returns `count` values of a strategy. They differ in every run.
fn samples<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::new(Config::default());
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("a value").current()).collect()
}

/// Returns names that MariaDB accepts quoted: the Basic Multilingual Plane without NUL, and no blank at the end.
fn legal_names() -> impl Strategy<Value = String> {
    let special = prop::sample::select("`\"'.%/\\ ;-#?&=+[]{}()@$,:<>|~^!*\t\n".chars().collect::<Vec<_>>());
    let any = any::<char>().prop_filter("in the plane", |c| *c != '\0' && u32::from(*c) < 0xFFFE && !c.is_control());
    let plain = prop::char::range('a', 'z');
    let name = prop::collection::vec(prop_oneof![special, any, plain], 1..20);
    name.prop_map(String::from_iter).prop_filter("legal", |name| {
        let blank = |c: char| c.is_whitespace() || c.is_control();
        !name.ends_with(blank)
            && !name.eq_ignore_ascii_case("id")
            && name != "."
            && name != ".."
            && name.chars().count() <= 20
    })
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

async fn any_legal_name_round_trips(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (table, field) in samples(&(legal_names(), legal_names()), 20) {
        let create =
            format!("CREATE TABLE {} (id INT PRIMARY KEY AUTO_INCREMENT, {} INT)", quoted(&table), quoted(&field));
        let made = db.sql(&create).send().await;
        // Names that MariaDB itself refuses, because of their collation, are skipped.
        if !made.status.is_success() {
            assert_eq!(made.code(), "sql_error", "{table:?} {field:?}: {made}");
            continue;
        }
        let path = enc(&table);
        assert_eq!(db.post(&path, &json!({field.as_str(): 7})).await.payload(), 1, "{table:?} {field:?}");
        let expected = json!({"id": 1, field.as_str(): 7});
        assert_eq!(db.get(&format!("{path}/1")).await.payload(), expected, "{table:?} {field:?}");
        let query = option("query", &json!({field.as_str(): 7}));
        assert_eq!(db.get(&format!("{path}?{query}")).await.payload(), json!([expected]), "{table:?} {field:?}");
        db.exec(&format!("DROP TABLE {}", quoted(&table))).await;
    }
}

fn texts() -> impl Strategy<Value = String> {
    let special = prop::sample::select("\"'\\`%_\0\u{1}\n\r\t\u{1a}\u{7f}\u{2028}🦭é ".chars().collect::<Vec<_>>());
    prop::collection::vec(prop_oneof![special, any::<char>(), prop::char::range(' ', '~')], 0..40)
        .prop_map(String::from_iter)
}

async fn any_text_round_trips(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT COLLATE utf8mb4_nopad_bin)"])
            .await;
    let texts = samples(&texts(), 60);
    let rows: Vec<Value> = texts.iter().map(|text| json!({"v": text})).collect();
    let ids = db.post("t", &json!({"batchData": rows})).await.payload();
    let list = db.column("t?order[field]=id", "v").await;
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(list[index], *text, "{text:?}");
        let found = db.ids("t", &json!({"v": text}), "").await;
        assert!(found.contains(&ids[index].as_i64().unwrap()), "{text:?} is not found");
        let bound = db.sql_with("SELECT ? AS v", json!([text])).send().await.payload();
        assert_eq!(bound[0]["v"], *text, "{text:?}");
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e6..1.0e6).prop_map(|n: f64| json!((n * 64.0).round() / 64.0)),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(texts(), inner, 0..5).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

async fn any_json_round_trips(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v JSON)"]).await;
    for value in samples(&json_values(), 50) {
        let id = db.post("t", &json!({"v": value})).await.payload();
        let answer = db.get(&format!("t/{id}")).await;
        assert_eq!(answer.payload()["v"], value, "{answer}");
    }
}

async fn any_number_round_trips(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, i BIGINT, u BIGINT UNSIGNED, d DOUBLE)"],
    )
    .await;
    let finite =
        any::<f64>().prop_filter("finite, and no zero with a sign", |number| number.is_finite() && *number != 0.0);
    for (i, u, d) in samples(&(any::<i64>(), any::<u64>(), finite), 40) {
        let body = format!("{{\"i\":{i},\"u\":{u},\"d\":{d:e}}}");
        let id = db.call(reqwest::Method::POST, "t").bytes(body).send().await.payload();
        let fields = db.get(&format!("t/{id}")).await.raw_record();
        assert_eq!(fields["i"].trim_matches('"'), i.to_string());
        assert_eq!(fields["u"].trim_matches('"'), u.to_string());
        let got: f64 = fields["d"].parse().expect("a number");
        assert_eq!(got.to_bits(), d.to_bits(), "{d:e} comes back as {}", fields["d"]);
        assert!(db.ids("t", &json!({"i": i, "u": u.to_string()}), "").await.contains(&id.as_i64().unwrap()));
    }
}

async fn any_text_as_a_path_is_answered_with_an_envelope(host: Host) {
    for (a, b, c) in samples(&(texts(), texts(), texts()), 40) {
        for path in [
            format!("/{}", enc(&a)),
            format!("/api/v1/crud/{}/{}", enc(&a), enc(&b)),
            format!("/api/v1/crud/demo/posts/{}", enc(&a)),
            format!("/api/v1/crud/demo/posts?{}={}", enc(&b), enc(&c)),
            format!("/api/v1/crud/demo/posts?query={}&limit=1", enc(&c)),
        ] {
            let answer = host.get(&path).send().await;
            assert!(answer.status.as_u16() < 500, "{answer}");
            answer.json();
        }
    }
}
