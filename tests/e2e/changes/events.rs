//! Server-sent events.

use super::{Page, call};
use crate::host::{Call, Host};
use crate::service::shared;
use crate::test_db::TestDb;
use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;

cases! {
    Both: [
        a_stream_tells_a_snapshot_then_changes_and_goes_on_after_its_last_event,
        a_break_ends_a_stream_with_its_reason,
        a_revoked_key_ends_its_stream,
        a_stream_without_changes_tells_the_present_token,
    ],
}

const THINGS: &str = "CREATE TABLE things (id INT PRIMARY KEY, v INT)";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) name: String,
    id: Option<String>,
    pub(super) data: Value,
}

/// The events of a stream; comments are left out.
pub(super) struct Events {
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>>>>,
    text: String,
}

impl Events {
    pub(super) async fn open(call: Call, last: Option<&str>) -> Self {
        let request = call.header("accept", "text/event-stream").request();
        let request = match last {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        let response = request.send().await.expect("a response");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { bytes: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// Returns the next event; `None` at the stream's end.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block.starts_with(':') {
                    continue;
                }
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let data = field("data: ").expect("data");
                let data = serde_json::from_str(&data).expect("JSON");
                return Some(Event { name: field("event: ").expect("a name"), id: field("id: "), data });
            }
            match self.bytes.next().await {
                Some(Ok(bytes)) => self.text.push_str(std::str::from_utf8(&bytes).expect("UTF-8")),
                Some(Err(_)) | None => return None,
            }
        }
    }

    async fn expect(&mut self, name: &str) -> Event {
        let event = self.next().await.expect("an event");
        assert_eq!(event.name, name, "{event:?}");
        event
    }
}

async fn a_stream_tells_a_snapshot_then_changes_and_goes_on_after_its_last_event(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    db.exec("INSERT INTO things VALUES (1, 1)").await;
    let mut events = Events::open(call(&db, "things", "snapshot=true"), None).await;
    let record = events.expect("change").await;
    assert_eq!(record.data, json!({"type": "insert", "snapshot": true, "key": 1, "record": {"id": 1, "v": 1}}));
    assert_eq!(record.id, None);
    let begin = events.expect("transaction").await;
    assert_eq!(begin.data["next"].as_str(), begin.id.as_deref());
    db.exec("INSERT INTO things VALUES (2, 2), (3, 3)").await;
    let [second, third] = [events.expect("change").await, events.expect("change").await];
    assert_eq!([&second.data["key"], &third.data["key"]], [&json!(2), &json!(3)]);
    assert_eq!((&second.data["end"], &third.data["end"]), (&Value::Null, &json!(true)));
    let end = events.expect("transaction").await;
    assert_eq!(end.id, third.id);
    drop(events);
    db.exec("DELETE FROM things WHERE id = 1").await;
    // As a browser's EventSource asks again: with the URL of the snapshot.
    for (last, keys) in [(&begin, vec![2, 3, 1]), (&second, vec![3, 1]), (&third, vec![1])] {
        let mut events = Events::open(call(&db, "things", "snapshot=true"), last.id.as_deref()).await;
        for key in keys {
            let mut event = events.next().await.expect("an event");
            while event.name == "transaction" {
                event = events.next().await.expect("an event");
            }
            assert_eq!(event.data["key"], key, "after {last:?}");
        }
    }
}

async fn a_break_ends_a_stream_with_its_reason(host: Host) {
    for statement in ["DROP TABLE things", "CREATE OR REPLACE DATABASE "] {
        let db = TestDb::new(host, &[THINGS]).await;
        let mut events = Events::open(call(&db, "things", ""), None).await;
        events.expect("transaction").await;
        let name = if statement.ends_with(' ') { db.name.as_str() } else { "" };
        db.behind(&format!("{statement}{name}"));
        let event = events.expect("resync").await;
        assert_eq!(event.data, json!({"reason": "schema_changed"}), "{statement}");
        assert_eq!(events.next().await, None);
    }
}

async fn a_revoked_key_ends_its_stream(host: Host) {
    let db = TestDb::new(host, &[THINGS]).await;
    let key = shared().create_key("default", "read", &[]);
    let mut events = Events::open(call(&db, "things", "").key(&key.token), None).await;
    events.expect("transaction").await;
    shared().cli_ok(&["key", "revoke", &key.id]);
    let end = tokio::time::timeout(Duration::from_secs(20), events.next()).await;
    assert_eq!(end.expect("the stream ends"), None);
}

/// MariaDB may delete the log from an old token on.
async fn a_stream_without_changes_tells_the_present_token(host: Host) {
    let db = TestDb::new(host, &[THINGS, "CREATE TABLE others (id INT PRIMARY KEY)"]).await;
    let mut events = Events::open(call(&db, "things", "query={\"v\":{\"gt\":9}}"), None).await;
    let first = events.expect("transaction").await;
    // The first is a change of the table that the list does not show.
    db.exec("INSERT INTO things VALUES (1, 1)").await;
    db.exec("INSERT INTO others VALUES (1)").await;
    let told = events.expect("transaction").await;
    assert_ne!(told.data["position"], first.data["position"]);
    assert_ne!(told.id, first.id);
    assert_eq!(told.data["next"].as_str(), told.id.as_deref());
    db.exec("INSERT INTO things VALUES (2, 10)").await;
    let page = Page::of(
        &call(
            &db,
            "things",
            &format!("query={{\"v\":{{\"gt\":9}}}}&since={}", told.data["next"].as_str().expect("a token")),
        )
        .send()
        .await,
    );
    assert_eq!(page.changes.len(), 1);
}
