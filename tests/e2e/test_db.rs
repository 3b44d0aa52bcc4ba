//! A database for each case, so that cases can run in parallel.

use crate::host::{Answer, Call, Host, enc};
use crate::service::shared;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct TestDb {
    pub(crate) host: Host,
    pub(crate) name: String,
}

pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl TestDb {
    pub(crate) async fn new(host: Host, statements: &[&str]) -> Self {
        let db = Self { host, name: unique("default_t") };
        host.sql(&json!({"query": format!("CREATE DATABASE {} CHARACTER SET utf8mb4", db.name)}))
            .send()
            .await
            .payload();
        for statement in statements {
            db.exec(statement).await;
        }
        db
    }

    pub(crate) async fn exec(&self, query: &str) -> Value {
        self.sql(query).send().await.payload()
    }

    pub(crate) fn sql(&self, query: &str) -> Call {
        self.host.sql(&json!({"query": query, "database": self.name}))
    }

    pub(crate) fn sql_with(&self, query: &str, params: Value) -> Call {
        self.host.sql(&json!({"query": query, "database": self.name, "params": params}))
    }

    /// Runs a query and returns the only value of its only row.
    pub(crate) async fn value(&self, query: &str) -> Value {
        let rows = self.exec(query).await;
        let row = rows[0].as_object().unwrap_or_else(|| panic!("no row: {query}: {rows}"));
        row.values().next().expect("a column").clone()
    }

    /// Returns the path of a table; encodes its name.
    pub(crate) fn path(&self, table: &str) -> String {
        format!("/api/v1/crud/{}/{}", enc(&self.name), enc(table))
    }

    pub(crate) fn call(&self, method: Method, rest: &str) -> Call {
        self.host.call(method, &format!("/api/v1/crud/{}/{rest}", self.name))
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        self.call(Method::GET, rest).send().await
    }

    pub(crate) async fn post(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::POST, rest).json(body).send().await
    }

    pub(crate) async fn put(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::PUT, rest).json(body).send().await
    }

    pub(crate) async fn delete(&self, rest: &str) -> Answer {
        self.call(Method::DELETE, rest).send().await
    }

    pub(crate) async fn delete_where(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::DELETE, rest).json(body).send().await
    }

    pub(crate) async fn column(&self, rest: &str, field: &str) -> Vec<Value> {
        let answer = self.get(rest).await;
        let payload = answer.payload();
        let rows = payload.as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        rows.iter().map(|row| row[field].clone()).collect()
    }

    pub(crate) async fn ids(&self, table: &str, query: &Value, more: &str) -> Vec<i64> {
        let rest = format!("{table}?order={}&{}{more}", enc(r#"{"field":"id"}"#), crate::host::option("query", query));
        self.column(&rest, "id").await.iter().map(|id| id.as_i64().expect("an id")).collect()
    }

    /// Runs statements as root in this database, so that the service doesn't notice them.
    pub(crate) fn behind(&self, statements: &str) -> String {
        let text = format!("USE `{}`; {statements}", self.name);
        shared().root_sql(&text).unwrap_or_else(|error| panic!("root: {statements}: {error}"))
    }
}
