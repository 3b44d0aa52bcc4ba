//! Random values of every type: each is returned in its normal form, and a condition on that form finds its record.

mod numbers;
mod others;
mod texts;
mod times;

use crate::host::{Host, enc, option};
use crate::test_db::TestDb;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::net::Ipv6Addr;

/// Number of values of each type in a run.
const COUNT: usize = 24;

/// A value as it is sent and as it must be returned, both as JSON text.
type Sample = (String, String);
type Samples = BoxedStrategy<Sample>;

#[derive(Clone, Copy)]
enum Equal {
    /// Compares byte by byte.
    Exactly,
    /// Compares as 64-bit floating-point numbers, bit by bit.
    AsDoubles,
    /// Compares as 32-bit floating-point numbers, bit by bit.
    AsFloats,
    /// Compares as JSON values in which 1 and 1.0 are equal.
    AsPlaces,
    /// Compares as IPv6 addresses, since MariaDB also shortens a single zero group.
    AsAddresses,
}

impl Equal {
    fn holds(self, left: &str, right: &str) -> bool {
        // MariaDB stores no sign of zero; adding 0 removes the sign here too.
        let doubles = |text: &str| text.parse::<f64>().map(|number| (number + 0.0).to_bits()).ok();
        let floats = |text: &str| text.parse::<f32>().map(|number| (number + 0.0).to_bits()).ok();
        let address = |text: &str| text.trim_matches('"').parse::<Ipv6Addr>().ok();
        match self {
            Self::AsAddresses => address(left) == address(right),
            Self::Exactly => left == right,
            Self::AsDoubles => doubles(left) == doubles(right),
            Self::AsFloats => floats(left) == floats(right),
            Self::AsPlaces => {
                let value = |text: &str| serde_json::from_str::<Value>(&text.replace(".0", "")).ok();
                value(left) == value(right)
            }
        }
    }
}

/// Inserts a batch of samples, reads them, finds each by its returned value, and updates it to that value.
async fn come_back(host: Host, kind: &str, equal: Equal, samples: &Samples) {
    let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")]).await;
    let mut runner = TestRunner::new(Config::default());
    let samples: Vec<Sample> = (0..COUNT).map(|_| samples.new_tree(&mut runner).expect("a value").current()).collect();
    let rows: Vec<String> = samples.iter().map(|(sent, _)| format!("{{\"v\":{sent}}}")).collect();
    let body = format!("{{\"batchData\":[{}]}}", rows.join(","));
    let ids: Vec<i64> =
        serde_json::from_value(db.call(Method::POST, "t").bytes(body).send().await.payload()).expect("ids");
    if !matches!(equal, Equal::AsPlaces) {
        pages_hold_each_once(&db, kind).await;
    }
    let read = values(&db).await;
    for ((sent, expected), value) in samples.iter().zip(&read) {
        assert!(equal.holds(value, expected), "{kind}: {sent} comes back as {value}, not {expected}");
    }
    for (id, value) in ids.iter().zip(&read) {
        let same = ids.iter().zip(&read).filter(|(_, other)| *other == value);
        let same: Vec<Value> = same.map(|(id, _)| json!(id)).collect();
        let query = enc(&format!("{{\"v\":{{\"value\":{value}}}}}"));
        let found = db.column(&format!("t?order[field]=id&query={query}"), "id").await;
        assert_eq!(found, same, "{kind}: {value} finds others");
        let body = format!("{{\"v\":{value}}}");
        let changed = db.call(Method::PUT, &format!("t/{id}")).bytes(body).send().await;
        assert_eq!(changed.payload(), 1, "{kind}: {value}");
    }
    assert_eq!(values(&db).await, read, "{kind} after changes to the same");
}

async fn values(db: &TestDb) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Rows {
        payload: Vec<Row>,
    }
    #[derive(serde::Deserialize)]
    struct Row {
        v: Box<RawValue>,
    }
    let rows: Rows = db.get("t?selectFields=v&order[field]=id").await.read();
    rows.payload.iter().map(|row| row.v.get().to_owned()).collect()
}

/// Reads all records ordered by the value, page by page, each after the last value of the previous page: every record
/// once, in the order of the unpaged read.
async fn pages_hold_each_once(db: &TestDb, kind: &str) {
    for strategy in ["ASC", "DESC"] {
        let order = option("order", &json!({"field": "v", "strategy": strategy}));
        let whole = db.get(&format!("t?{order}&limit=1000")).await.payload();
        let (mut came, mut after) = (Vec::new(), String::new());
        while came.len() <= COUNT {
            let answer = db.get(&format!("t?{order}&limit=5{after}")).await;
            came.extend(answer.payload().as_array().expect("a list").clone());
            match answer.json()["next"].as_str() {
                Some(next) => after = format!("&after={}", enc(next)),
                None => break,
            }
        }
        assert_eq!(Value::from(came), whole, "{kind}, {strategy}");
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
