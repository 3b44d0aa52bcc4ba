//! The origin's memory while it serves long rows and wide tables.

use super::Page;
use crate::host::{Call, Host};
use crate::service::{Edge, Service};
use reqwest::Method;
use serde_json::json;

cases! {
    Own: [
        a_snapshot_holds_few_long_rows_at_once,
        pages_of_a_long_row_share_a_limit,
        a_wide_subscription_counts_by_its_fields,
    ],
}

const MIB: u64 = 1024 * 1024;

struct World {
    service: Service,
}

impl World {
    async fn start(tables: &str) -> Self {
        let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await;
        let world = Self { service: service.expect("a task").expect("a service") };
        world.root(tables);
        world
    }

    fn root(&self, statements: &str) {
        self.service.root_sql(&format!("USE {}; {statements}", self.service.database)).expect("root");
    }

    fn changes(&self, options: &str) -> Call {
        let path = format!("/api/v1/changes/{}/t?{options}", self.service.database);
        Call::new(&self.service.origin, Method::GET, &path).key(&self.service.full_key)
    }

    async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.service.stop());
        stopped.await.expect("a task").expect("a stop");
    }
}

async fn a_snapshot_holds_few_long_rows_at_once(_: Host) {
    let world = World::start(
        "CREATE TABLE t (id INT PRIMARY KEY, value LONGBLOB); \
         INSERT INTO t SELECT seq, REPEAT('x', 4000000) FROM seq_1_to_30",
    )
    .await;
    let before = world.service.peak_bytes();
    let mut answer = world.changes("snapshot=true").request().send().await.expect("a response");
    let mut bytes = 0;
    while let Some(chunk) = answer.chunk().await.expect("a chunk") {
        bytes += chunk.len() as u64;
    }
    assert!(bytes > 120 * MIB, "{bytes}");
    let growth = world.service.peak_bytes() - before;
    assert!(growth < 80 * MIB, "{growth} bytes");
    world.stop().await;
}

/// The readers have different conditions, so they share no statement.
async fn pages_of_a_long_row_share_a_limit(_: Host) {
    let world = World::start("CREATE TABLE t (id INT PRIMARY KEY, value LONGTEXT)").await;
    let queries: Vec<String> = (0..12).map(|at| format!(r#"query={{"id":{{"gt":{}}}}}"#, -at)).collect();
    let mut calls = Vec::new();
    for query in &queries {
        let begin = Page::of(&world.changes(query).send().await).next;
        calls.push(world.changes(&format!("{query}&since={begin}&wait=25s")));
    }
    world.root("INSERT INTO t VALUES (1, REPEAT('x', 12000000))");
    let before = world.service.peak_bytes();
    let answers =
        futures_util::future::join_all(calls.into_iter().map(async |call| Page::of(&call.send().await))).await;
    assert!(answers.iter().all(|page| page.changes.len() == 1));
    let growth = world.service.peak_bytes() - before;
    assert!(growth < 450 * MIB, "{growth} bytes");
    world.stop().await;
}

async fn a_wide_subscription_counts_by_its_fields(_: Host) {
    let columns: Vec<String> = (0..1_000).map(|at| format!("c{at} TINYINT")).collect();
    let world = World::start(&format!("CREATE TABLE t (id INT PRIMARY KEY, {})", columns.join(", "))).await;
    let subscription = json!({"database": world.service.database, "table": "t", "omitFields": ["c1"]});
    let body = json!({"subscriptions": vec![subscription; 100]});
    let before = world.service.peak_bytes();
    let mut streams = Vec::new();
    let refused = loop {
        let call = Call::new(&world.service.origin, Method::POST, "/api/v1/changes").key(&world.service.full_key);
        let request = call.json(&body).header("accept", "text/event-stream").request();
        let response = request.send().await.expect("a response");
        if response.status() != 200 || streams.len() == 20 {
            break response.status();
        }
        streams.push(response);
    };
    assert_eq!((streams.len(), refused.as_u16()), (12, 429));
    let growth = world.service.peak_bytes() - before;
    assert!(growth < 300 * MIB, "{growth} bytes");
    world.stop().await;
}
