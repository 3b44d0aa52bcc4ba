//! `POST /api/v1/batch`.

mod dry_run;
mod ending;
mod limits;
mod references;
mod refusals;
mod together;

use crate::host::{Answer, Call, Host};
use reqwest::Method;
use serde_json::{Value, json};

fn call(host: Host, operations: &[Value]) -> Call {
    host.call(Method::POST, "/api/v1/batch").json(&json!({"operations": operations}))
}

async fn batch(host: Host, operations: &[Value]) -> Answer {
    call(host, operations).send().await
}

fn post(path: &str, body: Value) -> Value {
    json!({"method": "POST", "path": path, "body": body})
}

fn put(path: &str, body: Value) -> Value {
    json!({"method": "PUT", "path": path, "body": body})
}

fn get(path: &str) -> Value {
    json!({"method": "GET", "path": path})
}

fn delete(path: &str) -> Value {
    json!({"method": "DELETE", "path": path})
}

fn delete_where(path: &str, key: &str, value: Value) -> Value {
    json!({"method": "DELETE", "path": path, "body": {"deleteKeyValues": [{"key": key, "value": value}]}})
}
