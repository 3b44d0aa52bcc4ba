//! The memory of the origin, however many subscriptions a request has, and however slow its client is.

use super::Page;
use crate::case::eventually;
use crate::host::{Call, Host};
use crate::raw::{self, Wire};
use crate::service::{Edge, Service};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;

cases! {
    Own: [
        many_subscriptions_take_little_memory,
        a_stream_that_nobody_reads_ends,
    ],
}

const TEXTS: &str = "CREATE TABLE texts (id INT PRIMARY KEY, body MEDIUMTEXT)";

fn run(service: &Service, statements: &str) {
    service.root_sql(&format!("USE {}; {statements}", service.database)).expect("it runs");
}

async fn many_subscriptions_take_little_memory(_: Host) {
    /// The rows have 15 MiB, which each of the subscriptions sees.
    const GROWTH_MAX_BYTES: u64 = 128 * 1024 * 1024;
    let service = Service::start(Edge::Without, &[]).expect("a service");
    run(&service, TEXTS);
    let one = |id: usize| json!({"id": id.to_string(), "database": service.database, "table": "texts"});
    let subscriptions = json!((0..100).map(one).collect::<Vec<_>>());
    let ask = async |since: Option<&str>| {
        let body = json!({"subscriptions": subscriptions, "since": since});
        Page::of(
            &Call::new(&service.origin, Method::POST, "/api/v1/changes")
                .key(&service.full_key)
                .json(&body)
                .send()
                .await,
        )
    };
    ask(None).await;
    let before = service.peak_bytes();
    for rows in ["REPEAT('x', 1024) FROM seq_1_to_5000", "REPEAT('y', 262144) FROM seq_5001_to_5040"] {
        let mut token = ask(None).await.next;
        run(&service, &format!("INSERT INTO texts SELECT seq, {rows}"));
        for _ in 0..3 {
            let page = ask(Some(&token)).await;
            assert!(!page.changes.is_empty() && !page.is_up_to_date);
            token = page.next;
        }
    }
    let growth = service.peak_bytes() - before;
    assert!(growth < GROWTH_MAX_BYTES, "{growth} bytes");
    service.stop().expect("a stop");
}

async fn a_stream_that_nobody_reads_ends(_: Host) {
    const WAIT_MAX: Duration = Duration::from_secs(60);
    let service = Service::start(Edge::With, &[("SELKIE_WRITE_TIMEOUT", "1s")]).expect("a service");
    run(&service, TEXTS);
    let waiting = async || {
        let text = Call::new(&service.origin, Method::GET, "/metrics").send().await.text();
        let line = text.lines().find_map(|line| line.strip_prefix("selkie_changes_waiting "));
        line.expect("a gauge").to_owned()
    };
    let path = format!("/api/v1/changes/{}/texts", service.database);
    let headers = format!("Authorization: Bearer {}\r\nAccept: text/event-stream\r\n", service.read_key);
    for (at, url) in [&service.origin, service.edge.as_ref().expect("an edge")].into_iter().enumerate() {
        let mut wire = Wire::open(url).await;
        wire.send(&raw::request("GET", path.as_bytes(), &headers, b"")).await;
        eventually("the stream waits", WAIT_MAX, || async { (waiting().await == "1").then_some(()) }).await;
        let first = at * 100;
        // More than sockets and the edge hold.
        run(
            &service,
            &format!("INSERT INTO texts SELECT seq, REPEAT('x', 1000000) FROM seq_{}_to_{}", first + 1, first + 64),
        );
        eventually("the stream ends", WAIT_MAX, || async { (waiting().await == "0").then_some(()) }).await;
        run(&service, &format!("INSERT INTO texts VALUES ({}, 'last')", first + 65));
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(!String::from_utf8_lossy(&answer.body).contains("last"), "the stream went on");
    }
    service.stop().expect("a stop");
}
