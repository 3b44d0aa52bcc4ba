//! Deliveries over frozen and killed origins, and over a log that was deleted.

use super::DELIVERY_MAX;
use super::receiver::Receiver;
use crate::case::eventually;
use crate::host::{Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

cases! {
    Own: [
        deliveries_go_on_when_origins_freeze_and_die,
        a_deleted_log_is_told,
    ],
}

struct World {
    service: Service,
    receiver: Receiver,
}

impl World {
    async fn new() -> Self {
        let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[])).await;
        let world = Self { service: service.expect("a task").expect("a service"), receiver: Receiver::start().await };
        let database = &world.service.database;
        world.root(&format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)"));
        let subscriptions = json!([{"database": database, "table": "t"}]);
        let body = json!({"name": "a", "url": world.receiver.url, "subscriptions": subscriptions});
        world.call(Method::POST, "").json(&body).send().await.payload();
        world
    }

    fn call(&self, method: Method, rest: &str) -> Call {
        Call::new(&self.service.origin, method, &format!("/api/v1/webhooks{rest}")).key(&self.service.full_key)
    }

    async fn set_paused(&self, paused: bool) {
        let subscriptions = json!([{"database": self.service.database, "table": "t"}]);
        let body = json!({"url": self.receiver.url, "subscriptions": subscriptions, "paused": paused});
        self.call(Method::PUT, "/a").json(&body).send().await.payload();
    }

    fn root(&self, statements: &str) -> String {
        self.service.root_sql(statements).expect("root")
    }

    fn insert(&self, from: u32, to: u32) {
        let inserts: String = (from..=to).map(|id| format!("INSERT INTO t VALUES ({id});")).collect();
        self.root(&format!("USE {}; {inserts}", self.service.database));
    }

    /// Returns the keys that were delivered, each by its first delivery.
    fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        for change in self.receiver.received().iter().flat_map(|delivery| delivery.changes()) {
            let key = change["key"].as_u64().expect("a key");
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Waits until so many records were delivered, some perhaps twice.
    async fn wait_for_keys(&self, count: usize) {
        let what = format!("{count} records");
        eventually(&what, DELIVERY_MAX, || async { (self.keys().len() >= count).then_some(()) }).await;
    }

    async fn restart(self) -> Self {
        let Self { service, receiver } = self;
        let restarted = tokio::task::spawn_blocking(|| {
            let directory = service.stop_and_keep().expect("a stop");
            Service::start_in(directory, Edge::Without, &[])
        });
        Self { service: restarted.await.expect("a task").expect("a service"), receiver }
    }

    async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.service.stop());
        stopped.await.expect("a task").expect("a stop");
    }
}

async fn deliveries_go_on_when_origins_freeze_and_die(_: Host) {
    let world = World::new().await;
    world.insert(1, 50);
    world.receiver.wait_for_changes(1).await;
    let mut second = tokio::task::block_in_place(|| SecondOrigin::start(&world.service)).expect("an origin");
    world.service.signal(Signal::STOP);
    world.insert(51, 100);
    world.wait_for_keys(100).await;
    second.kill();
    world.service.signal(Signal::CONT);
    world.insert(101, 150);
    world.wait_for_keys(150).await;
    assert_eq!(world.keys(), (1..=150).collect::<Vec<_>>());
    world.stop().await;
}

async fn a_deleted_log_is_told(_: Host) {
    let mut world = World::new().await;
    world.insert(1, 1);
    world.receiver.wait_for_changes(1).await;
    world.set_paused(true).await;
    world.insert(2, 2);
    world.root("FLUSH BINARY LOGS");
    world.insert(3, 3);
    let status = world.root("SHOW MASTER STATUS");
    let file = status.split_whitespace().find(|word| word.starts_with("binlog.")).expect("a file");
    world.root(&format!("PURGE BINARY LOGS TO '{file}'"));
    // Until then, the origin has the changes in its memory.
    world = world.restart().await;
    world.set_paused(false).await;
    let received = world.receiver.wait(2).await;
    let told = received[1].body();
    assert_eq!((&told["changes"], &told["resync"]["reason"]), (&json!([]), &json!("log_purged")));
    let (since, first) = (&told["resync"]["since"], &received[0].changes()[0]["at"]);
    assert!(since.as_str().zip(first.as_str()).is_some_and(|(since, first)| since >= first), "{since} {first}");
    world.insert(4, 4);
    let keys: Vec<Value> =
        world.receiver.wait_for_changes(2).await.iter().map(|change| change["key"].clone()).collect();
    assert_eq!(keys, [1, 4]);
    world.stop().await;
}
