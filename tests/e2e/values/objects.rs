//! Values that are JSON objects: the errors if a column can't store the object, or if a condition contains it.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        faults_of_geojson_and_json_say_what_is_wrong,
        a_bare_object_as_a_condition_gets_a_hint,
    ],
}

async fn faults_of_geojson_and_json_say_what_is_wrong(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, place GEOMETRY, j JSON)"]).await;
    for (field, value, said) in [
        ("place", "{}", "it has no type"),
        ("place", "{\"type\":\"Point\",\"coordinates\":[1,2,3]}", "the coordinates of a Point are two numbers, [x, y]"),
        ("place", "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[1,1],[0,1]]]}", "the last like the first"),
        ("place", "{\"type\":\"Circle\",\"coordinates\":[1,2]}", "its type \"Circle\" is none of Point"),
        ("place", "{\"type\":\"Feature\"}", "a Feature is none"),
        ("place", "[1,2]", "not a list"),
        ("j", "[\"\\ud800\"]", "half of a surrogate pair"),
        ("j", "{\"a\":{\"\\udc00x\":1}}", "half of a surrogate pair"),
    ] {
        let stored = format!("{{\"{field}\":{value}}}");
        let asked = format!("{{\"query\":{{\"{field}\":{{\"value\":{value}}}}}}}");
        for (rest, body, code) in [("t", stored, ErrorCode::InvalidValue), ("t/query", asked, ErrorCode::InvalidFilter)]
        {
            if value.starts_with('[') && code == ErrorCode::InvalidFilter {
                // A list in a condition is a list of values, so it is not refused.
                continue;
            }
            let call = db.call(Method::POST, rest).bytes(body);
            let answer = call.send().await;
            let error = answer.refused(code);
            let message = error["message"].as_str().unwrap_or_default();
            assert!(message.contains(said), "{said}: {answer}");
            assert!(message.contains(&format!("\"{field}\"")), "{answer}");
        }
    }
    let whole = db.call(Method::POST, "t");
    let whole = whole.bytes("{\"j\":[\"\\ud83d\\ude00\", \"\\\\ud800\"]}");
    let id = whole.send().await.payload();
    let record = db.get(&format!("t/{id}")).await.payload();
    assert_eq!(record["j"], json!(["😀", "\\ud800"]));
}

async fn a_bare_object_as_a_condition_gets_a_hint(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT, place POINT, j JSON)"]).await;
    for (field, value) in
        [("place", json!({"type": "Point", "coordinates": [1, 2]})), ("j", json!({"a": 1})), ("j", json!({}))]
    {
        let answer = db.post("t/query", &json!({"query": {field: value}})).await;
        let error = answer.refused(ErrorCode::InvalidFilter);
        assert!(error["message"].to_string().contains(field), "{answer}");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("{\"value\": {…}}"), "{answer}");
    }
}
