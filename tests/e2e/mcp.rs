//! Tests `POST /mcp`, the Model Context Protocol: with hand-written JSON-RPC, and with the protocol's client from npm
//! (`client`).

mod calls;
mod client;
mod messages;

use crate::host::{Answer, Call, Host};
use reqwest::Method;
use serde_json::{Value, json};

const BOTH: &str = "application/json, text/event-stream";

fn message(host: Host, body: &Value) -> Call {
    host.call(Method::POST, "/mcp").header("accept", BOTH).json(body)
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

pub(crate) fn tool(host: Host, key: &str, name: &str, arguments: &Value) -> Call {
    message(host, &request("tools/call", &json!({"name": name, "arguments": arguments}))).key(key)
}

/// Returns the text of a tool's result as JSON. Panics unless the result is an error if and only if `code` is given.
#[track_caller]
pub(crate) fn outcome(result: &Value, code: Option<&str>) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"));
    let body: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    assert_eq!(result["isError"], code.is_some(), "{result}");
    assert_eq!(body["success"], code.is_none(), "{result}");
    assert_eq!(body["error"]["code"].as_str(), code, "{result}");
    body
}

#[track_caller]
pub(crate) fn result(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer}");
    let mut body = answer.json();
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)), "{answer}");
    assert!(body.get("error").is_none(), "{answer}");
    body["result"].take()
}
