//! The feed of changes: `GET /api/v1/changes/{db}/{table}`, `POST /api/v1/changes`.

mod breaks;
mod cli;
mod differential;
mod events;
mod life;
mod limits;
mod memory;
mod operating;
mod pages;
mod refusals;
mod rights;
mod tenants;

use crate::host::{Answer, Call, Host, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A copy of a list, kept by the feed.
struct Copy<'a> {
    db: &'a TestDb,
    key: Option<String>,
    table: &'a str,
    /// The options of the list, as in a query string.
    options: String,
    token: String,
    records: BTreeMap<String, Value>,
}

impl<'a> Copy<'a> {
    /// Begins with a snapshot.
    async fn new(db: &'a TestDb, table: &'a str, options: &[(&str, Value)]) -> Self {
        Self::with_key(db, table, options, None).await
    }

    async fn with_key(db: &'a TestDb, table: &'a str, options: &[(&str, Value)], key: Option<String>) -> Self {
        let options = options.iter().map(|(name, value)| option(name, value)).collect::<Vec<_>>().join("&");
        let mut copy = Self { db, key, table, options, token: String::new(), records: BTreeMap::new() };
        copy.begin_again().await;
        copy
    }

    async fn begin_again(&mut self) {
        let answer = self.ask("snapshot=true").await;
        let text = answer.text();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
        let last = lines.pop().unwrap_or_else(|| panic!("no token: {answer}"));
        self.token = last["next"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned();
        self.records = lines.into_iter().map(|line| (line["key"].to_string(), line["record"].clone())).collect();
    }

    async fn ask(&self, more: &str) -> Answer {
        self.call(more).send().await
    }

    fn call(&self, more: &str) -> Call {
        let call = call(self.db, self.table, &format!("{}&{more}", self.options));
        match &self.key {
            Some(key) => call.key(key),
            None => call,
        }
    }

    /// Returns the next page.
    async fn page(&self, more: &str) -> Page {
        Page::of(&self.ask(&format!("since={}&{more}", self.token)).await)
    }

    /// Applies the changes up to the end of the log, in pages of `limit`, and returns them.
    async fn catch_up(&mut self, limit: usize) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let page = self.page(&format!("limit={limit}")).await;
            assert!(page.changes.len() <= limit, "{} changes in a page of {limit}", page.changes.len());
            for change in &page.changes {
                self.apply(change);
            }
            all.extend(page.changes);
            self.token = page.next;
            if page.is_up_to_date {
                return all;
            }
        }
    }

    fn apply(&mut self, change: &Value) {
        let (key, record) = (change["key"].to_string(), change["record"].clone());
        let known = self.records.remove(&key);
        match change["type"].as_str() {
            Some("insert") => assert_eq!(known, None, "{change}"),
            Some("delete") => {
                assert!(known.is_some(), "{change}");
                return;
            }
            _ => {
                let known = known.unwrap_or_else(|| panic!("nothing to update: {change}"));
                let fields = record.as_object().expect("a record").keys();
                let changed: Vec<_> = fields.filter(|field| known[*field] != record[*field]).collect();
                let mut told: Vec<_> = change["changed"].as_array().expect("fields").iter().collect();
                told.sort_by_key(|field| field.as_str());
                assert_eq!(json!(changed), json!(told), "{change} after {known}");
            }
        }
        self.records.insert(key, record);
    }

    /// Checks that the copy is what the list is now. No write may be under way.
    async fn is_the_list(&self) {
        let path = format!("{}?{}", self.db.path(self.table), self.options);
        let call = self.db.host.get(&path);
        let call = match &self.key {
            Some(key) => call.key(key),
            None => call,
        };
        let listed = call.send().await.payload();
        let listed = listed.as_array().expect("a list").iter();
        let listed: BTreeMap<String, Value> = listed.map(|record| (record["id"].to_string(), record.clone())).collect();
        assert_eq!(self.records, listed, "the copy, and the list of {}", self.options);
    }
}

fn call(db: &TestDb, table: &str, options: &str) -> Call {
    db.host.call(Method::GET, &format!("/api/v1/changes/{}/{table}?{options}", db.name))
}

fn post(host: Host, body: &Value) -> Call {
    host.call(Method::POST, "/api/v1/changes").json(body)
}

#[derive(Debug)]
struct Page {
    changes: Vec<Value>,
    next: String,
    is_up_to_date: bool,
}

impl Page {
    fn of(answer: &Answer) -> Self {
        let changes = answer.payload().as_array().expect("changes").clone();
        let body = answer.json();
        let next = body["next"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned();
        Self { changes, next, is_up_to_date: body["upToDate"] == true }
    }
}

/// The changes without what differs between runs: their position and time.
fn plain(changes: &[Value]) -> Vec<Value> {
    let mut changes = changes.to_vec();
    for change in &mut changes {
        let change = change.as_object_mut().expect("a change");
        let position = change.remove("position").expect("a position");
        assert!(position.as_str().is_some_and(|position| position.starts_with("gtid:")), "{position}");
        let at = change.remove("at").expect("a time");
        assert!(at.as_str().is_some_and(|at| at.starts_with("20") && at.ends_with('Z')), "{at}");
    }
    changes
}
