//! Roles: keys that may do only what a role file allows, table by table.
//!
//! Each case sets roles of its own through the CLI, and sends requests with keys that have these roles.

mod claims;
mod indexes;
mod leaks;
mod life;
mod matrix;
mod oracles;
mod positions;
mod reach;
mod references;
mod related;
mod retries;
mod returning;
mod rows;
mod sql;
mod together;
mod tokens;
mod upserts;

use crate::host::{Answer, Call};
use crate::service::{Service, shared};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::process::Output;

pub(crate) fn role_of<'a>(db: &TestDb, rules: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let tables = rules.into_iter().map(|(table, rule)| (format!("{}.{table}", db.name), rule));
    json!({"tables": tables.collect::<Map<_, _>>()})
}

/// Runs `selkie role set` with this text as the role file.
fn try_set(service: &Service, project: &str, name: &str, text: &str) -> Output {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("a file");
    let path = file.path().to_str().expect("a path");
    service.cli(&["role", "set", name, "--project", project, "--file", path])
}

pub(crate) fn set_role_in(service: &Service, project: &str, name: &str, role: &Value) {
    let output = try_set(service, project, name, &role.to_string());
    assert!(output.status.success(), "role {name}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn create_role(role: &Value) -> String {
    let name = unique("role");
    set_role_in(shared(), "default", &name, role);
    name
}

/// Returns claims as arguments of the CLI: `name=value`.
fn claim_arguments(claims: &Value) -> Vec<String> {
    let claims = claims.as_object().expect("an object");
    claims.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// A key with a role. Its requests go to the origin or the edge, whichever the test database uses.
pub(crate) struct Caller<'a> {
    pub(crate) db: &'a TestDb,
    pub(crate) key: String,
}

impl<'a> Caller<'a> {
    pub(crate) fn with_role(db: &'a TestDb, role: &str, claims: Value) -> Self {
        let key = shared().create_role_key("default", role, &claim_arguments(&claims)).token;
        Self { db, key }
    }

    pub(crate) fn new<'r>(db: &'a TestDb, rules: impl IntoIterator<Item = (&'r str, Value)>, claims: Value) -> Self {
        Self::with_role(db, &create_role(&role_of(db, rules)), claims)
    }

    pub(crate) fn call(&self, method: Method, rest: &str) -> Call {
        self.db.call(method, rest).key(&self.key)
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        self.call(Method::GET, rest).send().await
    }

    pub(crate) async fn post(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::POST, rest).json(body).send().await
    }

    async fn put(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::PUT, rest).json(body).send().await
    }

    async fn delete(&self, rest: &str) -> Answer {
        self.call(Method::DELETE, rest).send().await
    }

    async fn delete_where(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::DELETE, rest).json(body).send().await
    }

    async fn batch(&self, operations: &[Value]) -> Answer {
        let call = self.db.host.call(Method::POST, "/api/v1/batch").key(&self.key);
        call.json(&json!({"operations": operations})).send().await
    }

    async fn ids(&self, rest: &str) -> Vec<i64> {
        let answer = self.get(rest).await;
        let payload = answer.payload();
        let records = payload.as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        let mut ids: Vec<_> = records.iter().map(|record| record["id"].as_i64().expect("an id")).collect();
        ids.sort_unstable();
        ids
    }
}

fn is_claim(field: &str, claim: &str) -> Value {
    json!({field: {"value": {"claim": claim}}})
}
