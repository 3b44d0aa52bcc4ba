//! Requests whose JSON body is refused.

use super::{Refusal, call, refusal};
use crate::host::Call;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::{self, *};

const POSTS: &str = "/api/v1/crud/demo/posts";

pub(super) fn table() -> Vec<Refusal> {
    [no_json(), types(), shapes(), sql(), batches()].into_iter().flatten().collect()
}

/// Returns one call of each operation that takes JSON.
fn takers() -> [Call; 8] {
    let at = |method, rest: &str| call(method, &format!("{POSTS}{rest}"));
    [
        at(Method::POST, ""),
        at(Method::POST, "/query"),
        at(Method::PUT, "/1"),
        at(Method::PATCH, ""),
        at(Method::DELETE, ""),
        call(Method::POST, "/api/v1/sql"),
        call(Method::POST, "/api/v1/batch"),
        call(Method::POST, "/api/v1/media/7/sign"),
    ]
}

fn no_json() -> Vec<Refusal> {
    let deep = "[".repeat(1_000);
    let nested = format!("{{\"v\":{}1{}}}", "[".repeat(32), "]".repeat(32));
    let large = format!("{{\"v\":\"{}\"", "x".repeat(300_000));
    let faults: [&[u8]; 37] = [
        b"{",
        b"}",
        b"{]",
        b"nonsense",
        b"{\"v\":}",
        b"{\"v\":1,}",
        b"{v:1}",
        b"{'v':1}",
        b"{\"v\":01}",
        b"{\"v\":+1}",
        b"{\"v\":.5}",
        b"{\"v\":1.}",
        b"{\"v\":0x10}",
        b"{\"v\":NaN}",
        b"{\"v\":Infinity}",
        b"{\"v\":\"\x01\"}",
        b"{\"v\":\"\\x41\"}",
        b"{\"v\":\"\\u12\"}",
        b"{\"v\":1} trailing",
        b"{\"v\":1}{\"v\":2}",
        b"// c\n{\"v\":1}",
        b"\xef\xbb\xbf{\"v\":1}x",
        b"v=1&w=2",
        b"<xml/>",
        b"{\"v\":\"",
        b"{\"v\":tru}",
        b"\0",
        b"{\"v\":\"\xff\"}",
        b"{\"v\":\"\xed\xa0\x80\"}",
        b"{\"v\":\"\xe6\x97\"}",
        b"{\"v\":\"\\ud800\"}",
        b"{\"v\":\"\\ud83e\\u0041\"}",
        b"{\n  \"a\": 1,\n  b: 2\n}",
        b"[1,",
        deep.as_bytes(),
        nested.as_bytes(),
        large.as_bytes(),
    ];
    let mut table = Vec::new();
    for call in takers() {
        for fault in faults {
            table.push(refusal(InvalidJson, call.clone().bytes(fault)));
        }
    }
    table.push(refusal(InvalidJson, call(Method::POST, POSTS).bytes("")));
    table
}

fn types() -> Vec<Refusal> {
    let mut table = Vec::new();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "*/*",
        "text/json",
    ] {
        for call in takers() {
            let call = call.bytes("{}").header("content-type", kind);
            table.push(refusal(UnsupportedMediaType, call));
        }
    }
    for kind in ["text/csv", "application/x-ndjson"] {
        let [_, others @ ..] = takers();
        for call in others {
            table.push(refusal(UnsupportedMediaType, call.bytes("{}").header("content-type", kind)));
        }
    }
    for kind in ["text/csv; charset=latin1", "text/csv; header=absent", "application/x-ndjson; charset=utf-16"] {
        let call = call(Method::POST, POSTS).bytes("{}").header("content-type", kind);
        table.push(refusal(UnsupportedMediaType, call));
    }
    for (kind, body) in [("text/csv", "title\n\"x"), ("text/csv", "title"), ("application/x-ndjson", "[]")] {
        table.push(refusal(InvalidBody, call(Method::POST, POSTS).bytes(body).header("content-type", kind)));
    }
    for call in takers() {
        let call = call.bytes("{}").header("content-encoding", "gzip");
        table.push(refusal(UnsupportedMediaType, call));
    }
    table
}

fn shapes() -> Vec<Refusal> {
    let mut table = Vec::new();
    for body in [json!([]), json!("x"), json!(5), json!(-1.5), Value::Null, json!(true), json!([{"title": "x"}])] {
        for call in takers() {
            table.push(refusal(InvalidBody, call.json(&body)));
        }
    }
    let rows: Vec<Value> = (0..10_001).map(|at| json!({"v": at})).collect();
    let many: serde_json::Map<String, Value> = (0..4_097).map(|at| (format!("k{at}"), json!(1))).collect();
    for body in [
        json!({"batchData": []}),
        json!({"batchData": {}}),
        json!({"batchData": [1]}),
        json!({"batchData": [{}, []]}),
        json!({"batchData": [{}], "title": "x"}),
        json!({"batchData": rows}),
        Value::Object(many),
    ] {
        table.push(refusal(InvalidBody, call(Method::POST, POSTS).json(&body)));
    }
    let twice = r#"{"title": "a", "title": "b"}"#;
    table.push(refusal(InvalidBody, call(Method::POST, POSTS).bytes(twice)));
    let name = "x".repeat(65);
    for call in [call(Method::POST, POSTS), call(Method::PUT, &format!("{POSTS}/1"))] {
        table.push(refusal(UnknownField, call.json(&json!({name.as_str(): 1}))));
    }
    table.push(refusal(InvalidBody, call(Method::PUT, &format!("{POSTS}/1")).json(&json!({}))));
    for (body, code) in [
        (json!({}), InvalidBody),
        (json!({"data": {"title": "x"}}), InvalidBody),
        (json!({"updateKeyValues": [{"key": "id", "value": 1}]}), InvalidBody),
        (json!({"updateKeyValues": [{"key": "id", "value": 1}], "data": {}}), InvalidBody),
        (json!({"updateKeyValues": [{"key": "id", "value": 1}], "data": 5}), InvalidBody),
        (json!({"updateKeyValues": [], "data": {"title": "x"}}), InvalidFilter),
        (json!({"query": {}, "data": {"title": "x"}}), InvalidFilter),
        (json!({"query": {"id": {"value": [], "not": true}}, "data": {"title": "x"}}), InvalidFilter),
        (json!({"query": {"id": 1}, "updateKeyValues": [{"key": "id", "value": 1}], "data": {}}), InvalidBody),
        (json!({"searchOperator": "OR", "data": {"title": "x"}}), InvalidBody),
        (json!({"updateKeyValues": [{"key": "id"}], "data": {"title": "x"}}), InvalidFilter),
        (json!({"odd": 1, "data": {"title": "x"}}), InvalidBody),
    ] {
        table.push(refusal(code, call(Method::PUT, POSTS).json(&body)));
    }
    for (body, code) in [
        (json!({}), InvalidBody),
        (json!({"deleteKeyValues": []}), InvalidFilter),
        (json!({"deleteKeyValues": {}}), InvalidFilter),
        (json!({"query": {}}), InvalidFilter),
        (json!({"query": {"id": 1}, "deleteKeyValues": [{"key": "id", "value": 1}]}), InvalidBody),
        (json!({"deleteKeyValues": [{"key": "id"}]}), InvalidFilter),
        (json!({"deleteKeyValues": [{"key": "id", "value": 1, "operator": "~"}]}), InvalidFilter),
        (json!({"odd": 1}), InvalidBody),
    ] {
        table.push(refusal(code, call(Method::DELETE, POSTS).json(&body)));
    }
    table.push(refusal(InvalidBody, call(Method::DELETE, POSTS)));
    for body in [
        json!({"limit": -1}),
        json!({"limit": "x"}),
        json!({"limit": null}),
        json!({"page": 1}),
        json!({"order": 5}),
        json!({"selectFields": 5}),
        json!({"searchOperator": "XOR"}),
        json!({"nonsense": 1}),
        json!({"join": 5}),
    ] {
        table.push(refusal(InvalidQueryOption, call(Method::POST, &format!("{POSTS}/query")).json(&body)));
    }
    let sign = "/api/v1/media/7/sign";
    for body in
        [json!({}), json!({"expiresIn": "x"}), json!({"expiresIn": 0}), json!({"expiresIn": 604_801}), json!({"x": 1})]
    {
        table.push(refusal(InvalidBody, call(Method::POST, sign).json(&body)));
    }
    table
}

fn sql() -> Vec<Refusal> {
    let statement = |body: &Value| call(Method::POST, "/api/v1/sql").json(body);
    let many = vec![1; 65_536];
    let mut table: Vec<Refusal> = [
        json!({}),
        json!({"query": 1}),
        json!({"query": null}),
        json!({"query": ["SELECT 1"]}),
        json!({"sql": "SELECT 1"}),
        json!({"query": "SELECT 1", "params": {}}),
        json!({"query": "SELECT 1", "params": "x"}),
        json!({"query": "SELECT 1", "database": 5}),
        json!({"query": "SELECT 1", "databse": "demo"}),
        json!({"query": ""}),
        json!({"query": " \n"}),
        json!({"query": "SELECT '\u{0}'"}),
        json!({"query": "SELECT 1", "params": many}),
    ]
    .iter()
    .map(|body| refusal(InvalidBody, statement(body)))
    .collect();
    for database in ["", "x\u{0}", &"x".repeat(65)] {
        table.push(refusal(InvalidIdentifier, statement(&json!({"query": "SELECT 1", "database": database}))));
    }
    table
}

fn batches() -> Vec<Refusal> {
    let batch = |body: &Value| call(Method::POST, "/api/v1/batch").json(body);
    let get = |path: &str| json!({"method": "GET", "path": path});
    let mut table: Vec<Refusal> = [
        json!({}),
        json!({"operations": []}),
        json!({"operations": {}}),
        json!({"operations": [], "atomic": true}),
        json!({"operations": vec![get("demo/posts"); 1_001]}),
    ]
    .iter()
    .map(|body| refusal(InvalidBody, batch(body)))
    .collect();
    let long = format!("demo/posts/{}", "x".repeat(17_000));
    let operations: [(Value, ErrorCode); 22] = [
        (json!({"method": "POST", "path": "/api/v1/sql", "body": {"query": "SELECT 1"}}), InvalidBody),
        (get("/api/v1/media"), InvalidBody),
        (get("http://127.0.0.1/api/v1/crud/demo/posts"), RouteNotFound),
        (get("demo/posts/_schema"), InvalidBody),
        (json!({"method": "TRACE", "path": "demo/posts"}), InvalidBody),
        (json!({"method": "GET", "path": "demo/posts", "body": {}}), InvalidBody),
        (json!({"method": "GET", "path": "demo/posts", "headers": {}}), InvalidBody),
        (json!({"method": "GET"}), InvalidBody),
        (json!({"path": "demo/posts"}), InvalidBody),
        (json!("GET"), InvalidBody),
        (get("demo/posts?limit=x"), InvalidQueryOption),
        (get("demo/posts?count=true"), InvalidQueryOption),
        (get("demo/posts?explain=true"), InvalidQueryOption),
        (json!({"method": "DELETE", "path": "demo/posts"}), InvalidBody),
        (json!({"method": "DELETE", "path": "demo/posts", "body": {"deleteKeyValues": []}}), InvalidFilter),
        (json!({"method": "PUT", "path": "demo/posts/1", "body": {}}), InvalidBody),
        (json!({"method": "POST", "path": "demo/posts"}), InvalidJson),
        (json!({"method": "POST", "path": "demo/posts/1", "body": {}}), MethodNotAllowed),
        (get("a/b/c/d"), RouteNotFound),
        (get("demo/posts/%zz"), InvalidIdentifier),
        (get(&long), UriTooLong),
        (json!({"method": "POST", "path": "demo/posts", "body": {"id": {"$ref": 2}}}), InvalidBody),
    ];
    for (operation, code) in operations {
        let good = get("demo/posts/1");
        table.push(refusal(code, batch(&json!({"operations": [good, operation, good]}))));
    }
    table
}
