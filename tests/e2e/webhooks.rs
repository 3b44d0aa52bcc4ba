//! Webhooks: `/api/v1/webhooks`, and what reaches their endpoints.

mod delivery;
mod life;
mod managing;
mod receiver;

use crate::case::eventually;
use crate::host::{Call, Host, enc};
use crate::test_db::{TestDb, unique};
use receiver::Receiver;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum wait for a delivery. Its first attempt follows a change at once, a second one after 5 s.
const DELIVERY_MAX: Duration = Duration::from_secs(60);

/// A webhook of the shared service. It is deleted with the test database's webhooks only by name.
struct Webhook {
    host: Host,
    name: String,
    secret: String,
}

impl Webhook {
    /// Makes a webhook of the table `t`, with these further members of its subscription.
    async fn new(db: &TestDb, receiver: &Receiver, subscription: Value) -> Self {
        let (host, name) = (db.host, unique("to the test/ü "));
        let body = json!({"name": name, "url": receiver.url, "subscriptions": [of_table(&db.name, subscription)]});
        let made = host.post("/api/v1/webhooks", &body).send().await.payload();
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        crate::ledger::keep_secret(&secret);
        Self { host, name, secret }
    }

    fn call(&self, method: Method, rest: &str) -> Call {
        self.host.call(method, &format!("/api/v1/webhooks/{}{rest}", enc(&self.name)))
    }

    async fn show(&self) -> Value {
        self.call(Method::GET, "").send().await.payload()
    }

    /// Puts the webhook's definition with these members changed.
    async fn set(&self, members: Value) -> Value {
        let shown = self.show().await;
        let mut body = json!({"url": shown["url"], "subscriptions": shown["subscriptions"]});
        body.as_object_mut().expect("members").extend(members.as_object().expect("members").clone());
        self.call(Method::PUT, "").json(&body).send().await.payload()
    }

    async fn deliveries(&self) -> Vec<Value> {
        self.call(Method::GET, "/deliveries").send().await.payload().as_array().expect("deliveries").clone()
    }

    /// Waits for a delivery, and returns it, for which `is_it` holds.
    async fn delivery(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        eventually(what, DELIVERY_MAX, || async { self.deliveries().await.into_iter().find(&is_it) }).await
    }

    async fn delete(self) {
        self.call(Method::DELETE, "").send().await.payload();
    }
}

fn of_table(database: &str, mut subscription: Value) -> Value {
    subscription["database"] = database.into();
    subscription["table"] = "t".into();
    subscription
}

async fn table(host: Host) -> TestDb {
    TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s TEXT)"]).await
}
