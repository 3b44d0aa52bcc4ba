//! Bodies that the edge streams to the origin unchecked, because they are long or their length is unknown. The origin
//! refuses them, and the edge forwards its answer.

use super::{Bench, Told, call};
use crate::host::{Call, Host};
use crate::raw::{self, RawAnswer, Wire};
use crate::service::shared;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode::{self, *};

cases! {
    Own: [
        a_fault_in_a_large_body_is_told_in_the_origins_words,
        a_body_in_chunks_is_judged_like_one_with_a_length,
        a_body_in_chunks_ends_at_the_limit,
        a_large_body_that_is_right_passes_as_it_is,
    ],
}

const MIB: usize = 1024 * 1024;

/// Returns an insert's body of about `bytes` bytes, with the texts `before` and `behind` around its long value.
fn insert(before: &str, bytes: usize, behind: &str) -> Vec<u8> {
    let fill = "xy\\n\u{e9}\\u00e9 ".repeat(bytes / 13 + 1);
    format!("{{{before}\"body\": \"{fill}\"{behind}").into_bytes()
}

fn rows(bytes: usize, end: &str) -> Vec<u8> {
    let row = r#"{"title": "a title", "views": [1, 2.5e3, null, true]}, "#;
    format!("{{\"batchData\": [{}{end}", row.repeat(bytes / row.len())).into_bytes()
}

fn upload(bytes: usize, behind: &str) -> Vec<u8> {
    let file = "QUFB".repeat(bytes / 4);
    format!(r#"{{"media": [{{"name": "a.bin", "base64": "data:application/octet-stream;base64,{file}"}}], "type": "file"{behind}"#)
        .into_bytes()
}

/// Returns a body with one byte changed.
fn with(mut body: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    body[at] = byte;
    body
}

async fn a_fault_in_a_large_body_is_told_in_the_origins_words(_: Host) {
    let bench = Bench::start().await;
    let posts = || call(Method::POST, "/api/v1/crud/demo/posts");
    let sql = || call(Method::POST, "/api/v1/sql");
    let media = || call(Method::POST, "/api/v1/media").header("content-type", "application/json");
    let list = |end: &str| format!("[{}1{end}", "[1, \"x\"], ".repeat(200_000)).into_bytes();
    let batch = || call(Method::POST, "/api/v1/batch");
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let table: Vec<(ErrorCode, Call, Vec<u8>)> = vec![
        (InvalidJson, posts(), insert("", 2 * MIB, "")),
        (InvalidJson, posts(), insert("", 2 * MIB, "}x")),
        (InvalidJson, posts(), insert("", 2 * MIB, ", \"a\": 1,}")),
        (InvalidJson, posts(), insert("", 2 * MIB, ", \"a\": \"\\ud800\"}")),
        (InvalidJson, posts(), insert("", 2 * MIB, &format!(", \"a\": {deep}}}"))),
        (InvalidJson, posts(), insert("\"a\": 1 ", 2 * MIB, "}")),
        (InvalidJson, posts(), with(insert("", 2 * MIB, "}"), MIB, b'\n')),
        (InvalidJson, posts(), with(insert("", 2 * MIB, "}"), MIB, 0xff)),
        (InvalidJson, posts(), rows(2 * MIB, "]}")),
        (InvalidJson, posts(), rows(2 * MIB, "{}]")),
        (InvalidJson, posts(), with(rows(2 * MIB, "{}]}"), MIB, b'\0')),
        (InvalidJson, sql(), with(insert("", 15 * MIB, "}"), 14 * MIB, 1)),
        (InvalidMedia, media(), with(upload(2 * MIB, "}"), MIB, b'*')),
        (InvalidMedia, media(), with(upload(2 * MIB, "}"), 70_000, b'*')),
        (InvalidBody, media(), upload(2 * MIB, ", \"update\": 5}")),
        (InvalidJson, media(), upload(2 * MIB, "")),
        (InvalidJson, media(), upload(2 * MIB, "}x")),
        (InvalidBody, batch(), list("]")),
        (InvalidJson, batch(), list("")),
    ];
    for (number, (code, call, body)) in table.into_iter().enumerate() {
        let call = call.bytes(body).header("x-request-id", "large");
        let direct = call.clone().at(&shared().origin).send().await;
        let through = call.at(&bench.worker.url).send().await;
        through.refused(code);
        assert_eq!(Told::by(&through), Told::by(&direct), "number {number}");
    }
}

/// Returns a request whose body is sent in chunks of this size.
fn chunked(path: &str, body: &[u8], size: usize) -> Vec<u8> {
    let headers = format!(
        "Authorization: Bearer {}\r\nX-Request-Id: chunked\r\nTransfer-Encoding: chunked\r\n",
        shared().full_key
    );
    let mut request = raw::request("POST", path.as_bytes(), &headers, b"");
    for piece in body.chunks(size) {
        request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

async fn told(url: &str, request: &[u8]) -> (RawAnswer, Told) {
    let mut wire = Wire::open(url).await;
    wire.send(request).await;
    let answer = wire.answer().await.expect("an answer");
    let told = Told::by_raw(&answer);
    (answer, told)
}

async fn a_body_in_chunks_is_judged_like_one_with_a_length(_: Host) {
    let bench = Bench::start().await;
    let options = json!({"limit": "x", "query": {"title": "y".repeat(700_000)}}).to_string();
    for (path, body, size, code) in [
        ("/api/v1/crud/demo/posts/query", r#"{"limit": "x"}"#, 3, "invalid_query_option"),
        ("/api/v1/crud/demo/posts/query", &options, 10_000, "invalid_query_option"),
        ("/api/v1/crud/demo/posts", "", 1, "invalid_json"),
        ("/api/v1/crud/demo/posts", r#"{"title": "#, 4, "invalid_json"),
        ("/api/v1/crud/demo/posts", "[1]", 1, "invalid_body"),
        ("/api/v1/sql", r#"{"query": 5}"#, 100, "invalid_body"),
        ("/api/v1/media", r#"{"media": []}"#, 5, "invalid_body"),
    ] {
        let request = chunked(path, body.as_bytes(), size);
        let (direct, expected) = told(&shared().origin, &request).await;
        let (_, through) = told(&bench.worker.url, &request).await;
        assert_eq!(direct.code(), code);
        assert_eq!(through, expected);
    }
}

async fn a_body_in_chunks_ends_at_the_limit(_: Host) {
    let bench = Bench::start().await;
    let body = insert("", 17 * MIB, "}");
    let request = chunked("/api/v1/crud/demo/posts", &body, 60_000);
    let (direct, expected) = told(&shared().origin, &request).await;
    let (_, through) = told(&bench.worker.url, &request).await;
    assert_eq!(direct.code(), "body_too_large");
    assert_eq!(through, expected);
}

async fn a_large_body_that_is_right_passes_as_it_is(_: Host) {
    let bench = Bench::start().await;
    for bytes in [10, 70_000, 900_000, MIB + 1, 5 * MIB] {
        let text = "\u{e9}\\n".repeat(bytes / 3);
        let body = format!(r#"{{"query": "SELECT LENGTH(?) AS v", "params": ["{text}"]}}"#);
        let expected = format!(r#"[{{"v":{}}}]"#, bytes / 3 * 3);
        let sql = call(Method::POST, "/api/v1/sql").at(&bench.worker.url);
        let answer = sql.bytes(body.clone()).send().await;
        assert_eq!(answer.payload().to_string(), expected);
        let request = chunked("/api/v1/sql", body.as_bytes(), 50_000);
        let (answer, _) = told(&bench.worker.url, &request).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let passed: Vec<(u64, bool)> =
            bench.tap.requests().iter().map(|seen| (seen.body_bytes, seen.is_complete)).collect();
        assert_eq!(passed, [(body.len() as u64, true); 2]);
        bench.tap.forget();
    }
}
