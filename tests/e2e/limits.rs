//! Tests the limits from both sides: the largest allowed value works, and the next larger one is refused with its code.

use crate::host::{Answer, Call, Host, enc};
use crate::raw;
use crate::roles::Caller;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

const MIB: usize = 1024 * 1024;

/// Maximum number of times that a large body is sent until its refusal arrives.
const ATTEMPTS_MAX: usize = 5;

cases! {
    Both: [
        a_body_of_16_mib_is_read_and_no_more,
        a_body_without_a_length_is_limited_too,
        a_url_of_16_kib_is_read_and_no_more,
        nesting_ends_at_32_levels,
        a_batch_of_10_000_rows_is_inserted_and_no_more,
        many_parameters_are_bound,
        the_conditions_of_a_statement_have_65_535_values,
        many_requests_at_once_are_answered,
        many_requests_on_one_connection_are_answered,
    ],
}

/// Returns an insert's body of exactly `size` bytes.
fn insert_of(size: usize) -> Vec<u8> {
    let (head, tail) = ("{\"v\":\"", "\"}");
    let text = "x".repeat(size - head.len() - tail.len());
    format!("{head}{text}{tail}").into_bytes()
}

/// Sends a request that is refused before it is read completely. Repeats the request if the answer is lost, which
/// happens sometimes if the server closes the connection while the client is still writing.
async fn send_large(call: &Call) -> Answer {
    for _ in 1..ATTEMPTS_MAX {
        if let Ok(answer) = call.clone().attempt().await {
            return answer;
        }
    }
    call.clone().send().await
}

async fn a_body_of_16_mib_is_read_and_no_more(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)"]).await;
    // MariaDB's `max_allowed_packet` is also 16 MiB, and a statement is longer than the value in it.
    let answer = db.call(Method::POST, "t").bytes(insert_of(15 * MIB)).send().await;
    let id = answer.payload();
    assert_eq!(db.value(&format!("SELECT LENGTH(v) FROM t WHERE id = {id}")).await, 15 * MIB - 8);
    // A body of exactly the maximum size is read, even if MariaDB then refuses the value.
    let edge_case = db.call(Method::POST, "t").bytes(insert_of(16 * MIB)).send().await;
    assert_ne!(edge_case.code(), "body_too_large", "{edge_case}");
    assert_ne!(edge_case.code(), "internal", "{edge_case}");
    for (method, rest) in [(Method::POST, "t"), (Method::PUT, "t/1"), (Method::DELETE, "t"), (Method::POST, "t/query")]
    {
        let answer = send_large(&db.call(method, rest).bytes(insert_of(16 * MIB + 1))).await;
        answer.refused(ErrorCode::BodyTooLarge);
    }
    let mut sql = json!({"query": "SELECT 1"}).to_string().into_bytes();
    sql.resize(16 * MIB + 1, b' ');
    let large = host.call(Method::POST, "/api/v1/sql").bytes(sql.clone());
    send_large(&large).await.refused(ErrorCode::BodyTooLarge);
    sql.truncate(16 * MIB);
    assert_eq!(host.call(Method::POST, "/api/v1/sql").bytes(sql).send().await.code(), "ok");
}

async fn a_body_without_a_length_is_limited_too(host: Host) {
    let key = &shared().full_key;
    let head = format!("Authorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n");
    let chunk = vec![b' '; MIB];
    let mut body = Vec::new();
    for _ in 0..17 {
        body.extend_from_slice(format!("{MIB:x}\r\n").as_bytes());
        body.extend_from_slice(&chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let mut request = raw::request("POST", b"/api/v1/sql", &head, b"");
    request.extend_from_slice(&body);
    // The request is refused before it is read completely, so the answer is sometimes lost (as in `send_large`), and
    // wrangler's local proxy then sends a text of its own.
    let mut codes = Vec::new();
    while codes.len() < ATTEMPTS_MAX && codes.last().is_none_or(|code| code != "body_too_large") {
        let answer = raw::exchange(host.url(), &request).await;
        let envelope = answer.as_ref().filter(|answer| answer.body.starts_with(b"{"));
        codes.push(envelope.map_or_else(|| "no envelope".to_owned(), raw::RawAnswer::code));
    }
    assert_eq!(codes.last().map(String::as_str), Some("body_too_large"), "{codes:?}");
    // A small chunked body is allowed, like one with a length.
    let small = format!("Authorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n");
    let mut request = raw::request("POST", b"/api/v1/sql", &small, b"");
    request.extend_from_slice(b"8\r\n{\"query\"\r\n12\r\n:\"SELECT 5 AS v\"  \r\n1\r\n}\r\n0\r\n\r\n");
    let answer = raw::exchange(host.url(), &request).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

async fn a_url_of_16_kib_is_read_and_no_more(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v TEXT)"]).await;
    let url = |length: usize| {
        let start = format!("{}?query[v]=", db.path("t"));
        let fill = "x".repeat(length - start.len());
        format!("{start}{fill}")
    };
    assert_eq!(host.get(&url(16 * 1024)).send().await.payload(), json!([]));
    for length in [16 * 1024 + 1, 17 * 1024, 60_000] {
        let answer = host.get(&url(length)).send().await;
        let error = answer.refused(ErrorCode::UriTooLong);
        let text = format!("{} {}", error["message"], error["hint"]);
        assert!(text.contains("POST") && text.contains("/query"), "the POST form is not named: {answer}");
    }
    let body = json!({"query": {"v": "x".repeat(17 * 1024)}});
    assert_eq!(db.post("t/query", &body).await.payload(), json!([]));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
}

async fn nesting_ends_at_32_levels(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v JSON)"]).await;
    // The braces of the body itself are the first level.
    let id = db.post("t", &json!({"v": nested(31)})).await.payload();
    assert_eq!(db.get(&format!("t/{id}")).await.payload()["v"], nested(31));
    for levels in [32, 33, 100] {
        db.post("t", &json!({"v": nested(levels)})).await.refused(ErrorCode::InvalidJson);
    }
    let mut query = json!({"id": 1});
    for _ in 0..40 {
        query = json!({"g": {"__query": query}});
    }
    let answer = db.get(&format!("t?query={}", enc(&query.to_string()))).await;
    assert_eq!(answer.status, 400, "{answer}");
    let brackets = format!("t?query{}=1", "[a]".repeat(40));
    assert_eq!(db.get(&brackets).await.status, 400);
    for text in ["[", "{\"a\":", "[{\"a\":["] {
        for levels in [1_000, 100_000, 1_000_000] {
            let answer = db.call(Method::POST, "t").bytes(text.repeat(levels)).send().await;
            answer.refused(ErrorCode::InvalidJson);
        }
    }
}

async fn a_batch_of_10_000_rows_is_inserted_and_no_more(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]).await;
    let batch = |count: usize| json!({"batchData": (0..count).map(|n| json!({"v": n})).collect::<Vec<_>>()});
    let ids = db.post("t", &batch(10_000)).await.payload();
    let ids: Vec<i64> = ids.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    assert_eq!(db.get(&format!("t/{}", ids[9_999])).await.payload()["v"], 9_999);
    let answer = db.post("t", &batch(10_001)).await;
    assert_eq!(answer.status.as_u16() / 100, 4, "{answer}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 10_000);
}

async fn many_parameters_are_bound(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let count = 20_000;
    let marks = vec!["?"; count].join(",");
    let params: Vec<usize> = (0..count).collect();
    let answer = db.sql_with(&format!("SELECT 5 IN ({marks}) AS v"), json!(params)).send().await;
    assert_eq!(answer.payload(), json!([{"v": 1}]));
    let marks = vec!["?"; 65_536].join(",");
    let params: Vec<usize> = (0..65_536).collect();
    let answer = db.sql_with(&format!("SELECT 5 IN ({marks}) AS v"), json!(params)).send().await;
    assert_eq!(answer.status.as_u16() / 100, 4, "{answer}");
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}

async fn the_conditions_of_a_statement_have_65_535_values(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1, 'a')"])
        .await;
    let lists = |last: usize| {
        let list = |size: usize| json!({"fieldName": "id", "value": (1..=size).collect::<Vec<_>>()});
        let all = (0..7).map(|at| (format!("c{at}"), list(if at == 6 { last } else { 10_000 })));
        json!({"selectFields": ["id"], "query": all.collect::<serde_json::Map<_, _>>()})
    };
    assert_eq!(db.post("t/query", &lists(5_535)).await.payload(), json!([{"id": 1}]));
    let refused = db.post("t/query", &lists(5_536)).await;
    let message = refused.refused(ErrorCode::InvalidFilter)["message"].take();
    assert!(message.as_str().unwrap().contains("65536 values"), "{message}");
    // A guard has the values of the rule again.
    let known: Vec<_> = (0..3_000).collect();
    let caller = Caller::new(&db, [("t", json!({"read": {"rows": {"id": known}}}))], json!({}));
    let mut query = lists(0);
    query["query"].as_object_mut().unwrap().remove("c6");
    assert_eq!(caller.post("t/query", &query).await.payload(), json!([{"id": 1}]));
    query["query"]["v"] = json!({"regexp": "a"});
    caller.post("t/query", &query).await.refused(ErrorCode::InvalidFilter);
}

async fn many_requests_at_once_are_answered(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]).await;
    let posts = (0..200).map(|n| db.call(Method::POST, "t").json(&json!({"v": n})).send());
    let mut ids = std::collections::HashSet::new();
    for answer in futures_util::future::join_all(posts).await {
        assert!(ids.insert(answer.payload().as_i64().unwrap()), "{answer}");
    }
    assert_eq!(db.value("SELECT COUNT(DISTINCT v) FROM t").await, 200);
}

async fn many_requests_on_one_connection_are_answered(host: Host) {
    let head = format!("Host: x\r\nAuthorization: Bearer {}\r\n", shared().read_key);
    let one = format!("GET /api/v1/crud/demo/posts/1 HTTP/1.1\r\n{head}\r\n");
    let last = format!("GET /api/v1/crud/demo/posts/1 HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
    let pipelined = format!("{}{last}", one.repeat(20));
    let answered = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("HTTP/1.1 200").count();
    let all = raw::converse(host.url(), pipelined.as_bytes(), |bytes| answered(bytes) == 21).await;
    assert_eq!(answered(&all), 21);
}
