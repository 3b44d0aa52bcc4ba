//! Changes through the edge: what passes unbuffered and for how long, which slots it takes, and which long polls share
//! one request to the origin. A recording proxy before the origin counts the requests.

use super::origins::POSTS;
use super::recording_proxy::RecordingProxy;
use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner};
use crate::host::{Call, Host};
use crate::raw::{self, Wire};
use crate::roles::{Caller, create_role, role_of};
use crate::second_origin::SecondOrigin;
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use crate::worker::Worker;
use machines::process::allow_open_files;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use shared::error::ErrorCode;
use shared::limits::EDGE_CHANGES_MAX_COUNT;
use std::time::Duration;
use tokio::task::block_in_place;

cases! {
    Own: [
        events_pass_at_once_and_a_client_who_leaves_ends_them_at_the_origin,
        polls_and_streams_go_on_at_another_origin,
        a_poll_may_wait_for_longer_than_an_origin_may_take,
        of_many_who_wait_for_a_page_one_asks_the_origin,
        if_the_one_who_asks_leaves_another_one_asks,
        who_waits_with_another_key_asks_for_itself,
        what_is_refused_is_asked_by_each,
        who_waits_for_changes_takes_nothing_from_other_requests,
    ],
}

const WAIT_MAX: Duration = Duration::from_secs(60);

/// A worker, the recording proxy between it and the shared service's origin, and a table.
struct Feed {
    worker: Worker,
    tap: RecordingProxy,
    db: TestDb,
}

impl Feed {
    async fn start() -> Self {
        let db = table().await;
        let tap = RecordingProxy::before(&shared().origin).await;
        let worker = Worker::start(&[("ORIGINS", &tap.url)]);
        Self { worker, tap, db }
    }

    /// Returns a token of the end of the log, and forgets how it was asked for.
    async fn token(&self, key: &str) -> String {
        let answer = changes(&self.worker.url, &self.db, "").key(key).send().await;
        self.tap.forget();
        next(&answer.json())
    }

    /// Sends a long poll.
    async fn poll(&self, key: &str, since: &str) -> Wire {
        let target = format!("{}?since={since}&wait=25s", path(&self.db));
        let mut wire = Wire::open(&self.worker.url).await;
        let headers = format!("Authorization: Bearer {key}\r\nAccept-Encoding: gzip\r\n");
        wire.send(&raw::request("GET", target.as_bytes(), &headers, b"")).await;
        wire
    }

    /// Waits until the worker has begun to answer all that was sent: it takes requests in the order of their arrival.
    async fn all_wait(&self, asked: usize) {
        eventually("the origin is asked", WAIT_MAX, || async { (self.asked() >= asked).then_some(()) }).await;
        for _ in 0..3 {
            Call::new(&self.worker.url, Method::GET, "/healthz").send().await.payload();
        }
        assert_eq!(self.asked(), asked);
    }

    fn asked(&self) -> usize {
        self.tap.requests().len()
    }
}

async fn table() -> TestDb {
    TestDb::new(Host::Origin, &["CREATE TABLE t (id INT PRIMARY KEY, v INT)"]).await
}

fn path(db: &TestDb) -> String {
    db.path("t").replacen("/crud/", "/changes/", 1)
}

/// Builds a request for the table's changes with the shared read key.
fn changes(url: &str, db: &TestDb, options: &str) -> Call {
    Call::new(url, Method::GET, &format!("{}{options}", path(db))).key(&shared().read_key)
}

fn next(answer: &Value) -> String {
    answer["next"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
}

/// Returns the keys of a page's changes.
fn keys(page: &Value) -> Vec<&Value> {
    page["payload"]
        .as_array()
        .unwrap_or_else(|| panic!("no page: {page}"))
        .iter()
        .map(|change| &change["key"])
        .collect()
}

/// A stream of server-sent events.
struct Events {
    response: Response,
    text: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Events {
    async fn open(call: &Call) -> Self {
        let response = call.request().header("accept", "text/event-stream").send().await.expect("an answer");
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Returns the next event; `None` if the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if !event.starts_with(':') {
                    let part = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                    let data = serde_json::from_str(part("data:").expect("data")).expect("JSON");
                    let text = |name| part(name).unwrap_or_default().to_owned();
                    return Some(Event { name: text("event:"), id: text("id:"), data });
                }
                continue;
            }
            let piece = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
        }
    }

    /// Returns the key of the next change, and the token after its transaction.
    async fn change(&mut self) -> (Value, String) {
        let change = self.next().await.expect("a change");
        assert_eq!(change.name, "change", "{change:?}");
        let end = self.next().await.expect("the end of a transaction");
        assert_eq!((end.name.as_str(), &end.data["next"]), ("transaction", &json!(end.id)));
        (change.data["key"].clone(), end.id)
    }
}

async fn events_pass_at_once_and_a_client_who_leaves_ends_them_at_the_origin(_: Host) {
    let db = table().await;
    // An origin of its own, since other cases stream from the shared one.
    let origin = block_in_place(|| SecondOrigin::start(shared())).expect("an origin");
    let worker = Worker::start(&[("ORIGINS", &origin.origin)]);
    let streams = || async {
        let text = Call::new(&origin.origin, Method::GET, "/metrics").send().await.text();
        let line = text.lines().find_map(|line| line.strip_prefix("selkie_streams "));
        line.expect("a gauge").to_owned()
    };
    let mut events = Events::open(&changes(&worker.url, &db, "")).await;
    assert_eq!(events.next().await.expect("the place").name, "transaction");
    for id in 1..=3 {
        db.exec(&format!("INSERT INTO t VALUES ({id}, 0)")).await;
        assert_eq!(events.change().await.0, id);
    }
    assert_eq!(streams().await, "1");
    let mut leaving = Wire::open(&worker.url).await;
    let headers = format!("Authorization: Bearer {}\r\nAccept: text/event-stream\r\n", shared().read_key);
    leaving.send(&raw::request("GET", path(&db).as_bytes(), &headers, b"")).await;
    eventually("both streams", WAIT_MAX, || async { (streams().await == "2").then_some(()) }).await;
    leaving.reset();
    eventually("one stream has ended", WAIT_MAX, || async { (streams().await == "1").then_some(()) }).await;
    // A poll's connection to the origin is closed too.
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let worker = Worker::start(&[("ORIGINS", &origin.url)]);
    let mut leaving = Wire::open(&worker.url).await;
    leaving.send(&raw::request("GET", format!("{}?since=a&wait=25s", path(&db)).as_bytes(), &headers, b"")).await;
    eventually("the origin is asked", WAIT_MAX, || async { (origin.asked().len() == 1).then_some(()) }).await;
    leaving.reset();
    eventually("the poll has ended", WAIT_MAX, || async { (origin.left() == 1).then_some(()) }).await;
    db.exec("INSERT INTO t VALUES (4, 0)").await;
    assert_eq!(events.change().await.0, 4);
}

async fn polls_and_streams_go_on_at_another_origin(_: Host) {
    let db = table().await;
    let first = RecordingProxy::before(&shared().origin).await;
    let second = block_in_place(|| SecondOrigin::start(shared())).expect("an origin");
    let worker = Worker::start(&[("ORIGINS", &format!("{},{}", first.url, second.origin))]);
    let mut events = Events::open(&changes(&worker.url, &db, "")).await;
    events.next().await.expect("the place");
    db.exec("INSERT INTO t VALUES (1, 0)").await;
    let (key, token) = events.change().await;
    assert_eq!(key, 1);
    let subscription = json!({"id": "a", "database": db.name, "table": "t"});
    let several = |more: Value| {
        let mut body = json!({"subscriptions": [subscription]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Call::new(&worker.url, Method::POST, "/api/v1/changes").key(&shared().full_key).json(&body)
    };
    let of_several = next(&several(json!({})).send().await.json());
    first.forget();
    let poll = tokio::spawn(changes(&worker.url, &db, &format!("?since={token}&wait=25s")).send());
    let posted = tokio::spawn(several(json!({"since": of_several, "wait": "25s"})).send());
    eventually("both wait", WAIT_MAX, || async { (first.complete() == 2).then_some(()) }).await;
    drop(first);
    assert!(events.next().await.is_none(), "the stream ends with its origin");
    db.exec("INSERT INTO t VALUES (2, 0)").await;
    for waiting in [poll, posted] {
        let page = waiting.await.expect("a task").json();
        assert_eq!(keys(&page), [&json!(2)], "{page}");
    }
    let mut events = Events::open(&changes(&worker.url, &db, "").header("last-event-id", &token)).await;
    assert_eq!(events.change().await.0, 2);
    db.exec("INSERT INTO t VALUES (3, 0)").await;
    assert_eq!(events.change().await.0, 3);
}

async fn a_poll_may_wait_for_longer_than_an_origin_may_take(_: Host) {
    let db = table().await;
    let worker = Worker::start(&[("ORIGINS", &shared().origin), ("ORIGIN_TIMEOUT_MS", "1000")]);
    let token = next(&changes(&worker.url, &db, "").send().await.json());
    let page = changes(&worker.url, &db, &format!("?since={token}&wait=2s")).send().await.json();
    assert_eq!((&page["payload"], &page["upToDate"]), (&json!([]), &json!(true)), "{page}");
}

async fn of_many_who_wait_for_a_page_one_asks_the_origin(_: Host) {
    const CALLERS: usize = 100;
    let feed = Feed::start().await;
    let key = &shared().read_key;
    let token = feed.token(key).await;
    let mut waiting = Vec::new();
    for _ in 0..CALLERS {
        waiting.push(feed.poll(key, &token).await);
    }
    feed.all_wait(1).await;
    feed.db.exec("INSERT INTO t VALUES (1, 5)").await;
    let mut bodies = Vec::new();
    for mut wire in waiting {
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.head.to_lowercase().contains("content-type: application/json"), "{}", answer.head);
        bodies.push(answer.body);
    }
    let page: Value = serde_json::from_slice(&bodies[0]).expect("JSON");
    assert_eq!(page["payload"][0]["record"], json!({"id": 1, "v": 5}), "{page}");
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(feed.asked(), 1);
    // The next page is another request.
    let mut first = feed.poll(key, &next(&page)).await;
    let mut other = feed.poll(key, &token).await;
    let again: Value = serde_json::from_slice(&other.answer().await.expect("an answer").body).expect("JSON");
    assert_eq!(again["payload"], page["payload"]);
    feed.db.exec("INSERT INTO t VALUES (2, 5)").await;
    let page: Value = serde_json::from_slice(&first.answer().await.expect("an answer").body).expect("JSON");
    assert_eq!((keys(&page), feed.asked()), (vec![&json!(2)], 3));
}

async fn if_the_one_who_asks_leaves_another_one_asks(_: Host) {
    let feed = Feed::start().await;
    let key = &shared().read_key;
    let token = feed.token(key).await;
    let first = feed.poll(key, &token).await;
    feed.all_wait(1).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(feed.poll(key, &token).await);
    }
    feed.all_wait(1).await;
    first.reset();
    feed.all_wait(2).await;
    feed.db.exec("INSERT INTO t VALUES (1, 0)").await;
    for mut wire in others {
        let page: Value = serde_json::from_slice(&wire.answer().await.expect("an answer").body).expect("JSON");
        assert_eq!(keys(&page), [&json!(1)], "{page}");
    }
    assert_eq!(feed.asked(), 2);
}

async fn who_waits_with_another_key_asks_for_itself(_: Host) {
    let feed = Feed::start().await;
    let rule = json!({"read": {"rows": {"v": {"value": {"claim": "v"}}}}});
    let role = create_role(&role_of(&feed.db, [("t", rule)]));
    let [one, same, other] = [1, 1, 2].map(|v| Caller::with_role(&feed.db, &role, json!({"v": v})).key);
    // An origin has accepted all of them lately.
    for key in [&same, &other] {
        feed.token(key).await;
    }
    let token = feed.token(&one).await;
    let first = feed.poll(&one, &token).await;
    feed.all_wait(1).await;
    let second = feed.poll(&same, &token).await;
    feed.all_wait(2).await;
    let refused = feed.poll(&other, &token).await.answer().await.expect("an answer");
    assert_eq!(refused.code(), ErrorCode::ResyncRequired.as_str());
    assert_eq!(feed.asked(), 3);
    feed.db.exec("INSERT INTO t VALUES (2, 2), (1, 1)").await;
    for mut wire in [first, second] {
        let page: Value = serde_json::from_slice(&wire.answer().await.expect("an answer").body).expect("JSON");
        assert_eq!(keys(&page), [&json!(1)], "{page}");
    }
}

async fn what_is_refused_is_asked_by_each(_: Host) {
    let feed = Feed::start().await;
    let key = &shared().read_key;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(feed.poll(key, "nonsense").await);
    }
    for mut wire in waiting {
        assert_eq!(wire.answer().await.expect("an answer").code(), ErrorCode::InvalidQueryOption.as_str());
    }
    assert_eq!(feed.asked(), 3);
}

async fn who_waits_for_changes_takes_nothing_from_other_requests(_: Host) {
    allow_open_files(12_000).expect("a limit");
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let timeouts = [("ORIGIN_TIMEOUT_MS", "600000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "600000")];
    let worker = Worker::start(&[&[("ORIGINS", &*origin.url)], &timeouts[..]].concat());
    let headers = format!("Authorization: Bearer {}\r\n", shared().read_key);
    let mut waiting = Vec::new();
    for number in 0..EDGE_CHANGES_MAX_COUNT {
        let mut wire = Wire::open(&worker.url).await;
        let target = format!("/api/v1/changes/demo/posts?since={number}&wait=25s");
        wire.send(&raw::request("GET", target.as_bytes(), &headers, b"")).await;
        waiting.push(wire);
    }
    eventually("all wait", WAIT_MAX, || async { (origin.asked().len() == EDGE_CHANGES_MAX_COUNT).then_some(()) }).await;
    origin.turn(Manner::Well);
    let call = |path: &str| Call::new(&worker.url, Method::GET, path).key(&shared().read_key);
    assert_eq!(call(POSTS).send().await.payload(), "a");
    let poll = "/api/v1/changes/demo/posts?since=x&wait=25s";
    call(poll).send().await.refused(ErrorCode::Overloaded);
    let project = unique("other");
    shared().create_project(&project);
    let other = shared().create_key(&project, "read", &[]).token;
    assert_eq!(call(poll).key(&other).send().await.payload(), "a");
    drop(waiting);
}
