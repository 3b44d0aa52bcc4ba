//! Several origins behind one edge: which one is asked, what happens when one fails, and what clients see.
//!
//! Fake origins count their requests, to check that nothing is sent twice that must not be.

use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner, Seen};
use crate::host::{Answer, Call, Host};
use crate::service::shared;
use crate::worker::Worker;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::{Duration, Instant};

cases! {
    Own: [
        a_read_goes_on_to_the_next_whatever_the_first_does,
        an_origin_that_comes_back_is_asked_again,
        a_write_that_may_have_been_taken_is_never_sent_twice,
        an_insert_with_an_idempotency_key_goes_on_to_the_next_once,
        what_cant_be_repeated_is_not_sent_to_a_dead_origin,
        when_all_are_dead_the_caller_is_told_when_to_come_again,
        of_one_origin_its_own_fault_is_told,
        the_only_origin_is_asked_again_although_it_was_silent,
        an_edge_that_was_busy_waits_once_more,
        an_origin_that_is_slow_but_lives_is_waited_for,
        what_a_caller_may_have_brought_about_is_no_fault_of_the_origin,
    ],
}

pub(super) const POSTS: &str = "/api/v1/crud/demo/posts";
const HTML: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 9\r\n\r\n<p>hi</p>";
const BAD_GATEWAY: &str = "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbad";
const HALF_JSON: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 11\r\n\r\n{\"success\":";
const PROXY_REFUSAL: &str =
    "HTTP/1.1 413 Too Large\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig";

/// Two fake origins and an edge in front of them.
pub(super) struct Pair {
    pub(super) a: FakeOrigin,
    pub(super) b: FakeOrigin,
    pub(super) worker: Worker,
}

impl Pair {
    pub(super) async fn start(a: Manner, b: Manner) -> Self {
        let (a, b) = (FakeOrigin::start("a", a).await, FakeOrigin::start("b", b).await);
        let worker = edge(&format!("{},{};near=EU", a.url, b.url)).await;
        Self { a, b, worker }
    }

    pub(super) async fn read(&self) -> Answer {
        read(&self.worker).await
    }

    pub(super) fn asked(&self) -> (usize, usize) {
        (self.a.asked().len(), self.b.asked().len())
    }
}

/// Starts an edge in front of these origins, with a short timeout.
async fn edge(origins: &str) -> Worker {
    edge_with(origins, "10000").await
}

async fn edge_with(origins: &str, timeout_ms: &str) -> Worker {
    let (origins, timeout_ms) = (origins.to_owned(), timeout_ms.to_owned());
    let start = move || {
        Worker::start(&[
            ("ORIGINS", &origins),
            ("ORIGIN_TIMEOUT_MS", &timeout_ms),
            ("ORIGIN_CONNECT_TIMEOUT_MS", "300"),
        ])
    };
    tokio::task::spawn_blocking(start).await.expect("a worker")
}

pub(super) fn call(worker: &Worker, method: Method, path: &str) -> Call {
    Call::new(&worker.url, method, path).key(&shared().full_key)
}

async fn read(worker: &Worker) -> Answer {
    call(worker, Method::GET, &format!("{POSTS}/1")).send().await
}

fn insert(worker: &Worker) -> Call {
    call(worker, Method::POST, POSTS).json(&json!({"title": "x"}))
}

/// Returns what the edge reports about its origins.
pub(super) async fn states(worker: &Worker) -> Vec<Value> {
    let answer = Call::new(&worker.url, Method::GET, "/healthz").send().await;
    let payload = answer.payload();
    assert_eq!(payload["status"], "ok");
    assert!(!answer.text().contains("127.0.0.1"), "{answer}");
    payload["origins"].as_array().expect("a list").clone()
}

async fn a_read_goes_on_to_the_next_whatever_the_first_does(_: Host) {
    for (manner, attempts) in [
        (Manner::Refuse, 0),
        (Manner::Close, 1),
        (Manner::Hang, 1),
        (Manner::Raw(HTML), 1),
        (Manner::Raw(BAD_GATEWAY), 1),
        (Manner::Raw(HALF_JSON), 1),
    ] {
        let pair = Pair::start(manner.clone(), Manner::Well).await;
        let expected = json!([
            {"origin": 1, "state": "unknown", "failures": 0},
            {"origin": 2, "near": ["EU"], "state": "unknown", "failures": 0},
        ]);
        assert_eq!(json!(states(&pair.worker).await), expected);
        let began = Instant::now();
        for method in [Method::GET, Method::OPTIONS] {
            let answer = call(&pair.worker, method, POSTS).send().await;
            assert_eq!(answer.payload(), "b", "{manner:?}: {answer}");
        }
        let twin = call(&pair.worker, Method::POST, &format!("{POSTS}/query")).json(&json!({}));
        assert_eq!(twin.send().await.payload(), "b", "{manner:?}");
        for answer in join_all((0..20).map(|_| pair.read())).await {
            assert_eq!(answer.payload(), "b", "{manner:?}: {answer}");
        }
        assert_eq!(pair.asked(), (attempts, 23), "{manner:?}");
        let [a, b] = &states(&pair.worker).await[..] else { panic!("two origins") };
        assert!(a["failures"].as_u64() > Some(0), "{manner:?}: {a}");
        assert_eq!((&b["state"], &b["failures"]), (&json!("healthy"), &json!(0)));
        // The first origin gets one request when it begins to hang, and one after each cool-down of a second or more.
        let most = 2 + usize::try_from(began.elapsed().as_secs()).unwrap();
        assert!(pair.a.signs() <= most, "{manner:?}: {}", pair.a.signs());
        assert!(pair.worker.log().contains("origin=1"), "{manner:?}");
    }
}

async fn an_origin_that_comes_back_is_asked_again(_: Host) {
    for manner in [Manner::Refuse, Manner::Hang, Manner::Raw(HTML)] {
        let pair = Pair::start(manner, Manner::Well).await;
        assert_eq!(pair.read().await.payload(), "b");
        pair.a.turn(Manner::Well);
        eventually("the first origin answers", Duration::from_secs(20), || async {
            (pair.read().await.payload() == "a").then_some(())
        })
        .await;
        assert_eq!(states(&pair.worker).await[0]["state"], "healthy");
        assert_eq!(pair.read().await.payload(), "a");
    }
}

/// Returns one call for each write that can't be repeated.
fn writes(worker: &Worker) -> Vec<Call> {
    let body = json!({"title": "x"});
    vec![
        insert(worker),
        call(worker, Method::PUT, &format!("{POSTS}/1")).json(&body),
        call(worker, Method::DELETE, &format!("{POSTS}/1")),
        call(worker, Method::POST, "/api/v1/sql").json(&json!({"query": "DO 1"})),
        // An upload, whose body is streamed.
        call(worker, Method::POST, "/api/v1/media")
            .json(&json!({"media": [{"name": "a", "base64": "data:text/plain;base64,aGk="}], "type": "file"})),
    ]
}

async fn a_write_that_may_have_been_taken_is_never_sent_twice(_: Host) {
    for (manner, code) in
        [(Manner::Close, ErrorCode::OriginUnreachable), (Manner::Raw(HALF_JSON), ErrorCode::BadOriginAnswer)]
    {
        let pair = Pair::start(manner.clone().well_asked(), Manner::Well).await;
        let count = writes(&pair.worker).len();
        for nth in 0..count {
            // Both origins answer well again before each case, so that the first origin is asked.
            pair.a.turn(Manner::Well);
            eventually("the first origin answers", Duration::from_secs(20), || async {
                (pair.read().await.payload() == "a").then_some(())
            })
            .await;
            let before = pair.asked();
            pair.a.turn(manner.clone().well_asked());
            let answer = writes(&pair.worker).remove(nth).send().await;
            let error = answer.refused(code);
            let hint = error["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("Idempotency-Key"), "{answer}");
            assert_eq!(pair.asked(), (before.0 + 1, before.1), "{answer}");
        }
    }
}

async fn an_insert_with_an_idempotency_key_goes_on_to_the_next_once(_: Host) {
    for manner in [Manner::Close, Manner::Hang, Manner::Raw(BAD_GATEWAY)] {
        let pair = Pair::start(manner.clone().well_asked(), Manner::Well).await;
        if manner == Manner::Hang {
            // Without this request, the edge would still wait for the first origin to answer.
            pair.a.turn(Manner::Hang);
            assert_eq!(pair.read().await.payload(), "b");
        }
        let before = pair.asked();
        let answer = insert(&pair.worker).header("idempotency-key", "k1").send().await;
        assert_eq!(answer.payload(), "b", "{manner:?}: {answer}");
        let attempts = usize::from(manner != Manner::Hang);
        assert_eq!(pair.asked(), (before.0 + attempts, before.1 + 1), "{manner:?}");
        let last: Seen = pair.b.asked().pop().expect("a request");
        assert_eq!(last.header("idempotency-key"), Some("k1"));
        assert_eq!(last.body, br#"{"title":"x"}"#);
    }
}

async fn what_cant_be_repeated_is_not_sent_to_a_dead_origin(_: Host) {
    for manner in [Manner::Refuse, Manner::Close, Manner::Hang, Manner::Raw(HTML)] {
        let pair = Pair::start(manner.clone(), Manner::Well).await;
        let writes = writes(&pair.worker);
        let count = writes.len();
        for write in writes {
            let answer = write.send().await;
            assert_eq!(answer.payload(), "b", "{manner:?}: {answer}");
        }
        assert_eq!(pair.asked(), (0, count), "{manner:?}");
    }
}

async fn when_all_are_dead_the_caller_is_told_when_to_come_again(_: Host) {
    for (first, second) in
        [(Manner::Refuse, Manner::Refuse), (Manner::Hang, Manner::Hang), (Manner::Raw(HTML), Manner::Close)]
    {
        let pair = Pair::start(first, second).await;
        let calls = [read(&pair.worker).await, insert(&pair.worker).send().await];
        for answer in calls {
            answer.refused(ErrorCode::OriginUnavailable);
            let after = answer.header("retry-after").expect("a time");
            assert!(after.parse::<u32>().is_ok_and(|after| (1..=30).contains(&after)), "{after}");
        }
        pair.b.turn(Manner::Well);
        eventually("one is back", Duration::from_secs(60), || async {
            (pair.read().await.code() == "ok").then_some(())
        })
        .await;
    }
}

async fn of_one_origin_its_own_fault_is_told(_: Host) {
    for (manner, code) in [
        (Manner::Refuse, ErrorCode::OriginUnreachable),
        (Manner::Close, ErrorCode::OriginUnreachable),
        (Manner::Raw(HTML), ErrorCode::BadOriginAnswer),
        (Manner::Raw(BAD_GATEWAY), ErrorCode::BadOriginAnswer),
    ] {
        let a = FakeOrigin::start("a", manner.clone()).await;
        let worker = edge(&a.url).await;
        if manner == Manner::Close {
            // A single broken connection doesn't make an origin count as down.
            a.turn(manner.well_asked());
            insert(&worker).send().await.refused(code);
            assert_eq!(states(&worker).await[0]["failures"], 0);
            a.turn(Manner::Close);
        }
        read(&worker).await.refused(code);
        let again = join_all((0..5).map(|_| read(&worker))).await;
        for answer in &again {
            let codes = [code.as_str(), ErrorCode::OriginUnavailable.as_str()];
            assert!(codes.contains(&answer.code().as_str()), "{answer}");
        }
        a.turn(Manner::Well);
        eventually("it is back", Duration::from_secs(20), || async {
            (read(&worker).await.code() == "ok").then_some(())
        })
        .await;
    }
}

async fn the_only_origin_is_asked_again_although_it_was_silent(_: Host) {
    let a = FakeOrigin::start("a", Manner::Hang).await;
    let worker = edge(&a.url).await;
    for failures in 1..=2 {
        for answer in join_all((0..5).map(|_| read(&worker))).await {
            answer.refused(ErrorCode::OriginTimeout);
        }
        let state = &states(&worker).await[0];
        assert_eq!((&state["state"], &state["failures"]), (&json!("failing"), &json!(failures)));
    }
    a.turn(Manner::Well);
    assert_eq!(read(&worker).await.payload(), "a");
}

/// Stops workerd until the timers of the request are late. Its origin answers too late for an edge that then waits for
/// the health check only.
async fn an_edge_that_was_busy_waits_once_more(_: Host) {
    const SILENCE_MAX: Duration = Duration::from_secs(2);
    let a = FakeOrigin::start("a", Manner::Late(7 * SILENCE_MAX / 2)).await;
    let silence_max = SILENCE_MAX.as_millis().to_string();
    let worker = Worker::start(&[("ORIGINS", &a.url), ("ORIGIN_CONNECT_TIMEOUT_MS", &silence_max)]);
    let stop = async {
        eventually("the origin is asked", SILENCE_MAX, || async { (a.asked().len() == 1).then_some(()) }).await;
        worker.signal(Signal::STOP);
        tokio::time::sleep(2 * SILENCE_MAX).await;
        worker.signal(Signal::CONT);
    };
    let (answer, ()) = tokio::join!(read(&worker), stop);
    assert_eq!(answer.payload(), "a");
    assert_eq!(states(&worker).await[0]["failures"], 0);
}

async fn an_origin_that_is_slow_but_lives_is_waited_for(_: Host) {
    let late = Manner::Late(Duration::from_millis(900)).well_asked();
    let pair = Pair::start(late, Manner::Well).await;
    assert_eq!(pair.read().await.payload(), "a");
    assert_eq!((pair.asked(), pair.a.signs()), ((1, 0), 1));
    let (a, b) = (FakeOrigin::start("a", Manner::Hang.well_asked()).await, FakeOrigin::start("b", Manner::Well).await);
    let worker = edge_with(&format!("{},{}", a.url, b.url), "1500").await;
    read(&worker).await.refused(ErrorCode::OriginTimeout);
    assert_eq!((a.asked().len(), b.asked().len()), (1, 0));
    assert_eq!(states(&worker).await[0]["failures"], 0);
    // The request that timed out is aborted.
    eventually("the connection ends", Duration::from_secs(10), || async { (a.left() == 1).then_some(()) }).await;
}

async fn what_a_caller_may_have_brought_about_is_no_fault_of_the_origin(_: Host) {
    for refusal in [PROXY_REFUSAL, BAD_GATEWAY] {
        let pair = Pair::start(Manner::Raw(refusal).well_asked(), Manner::Well).await;
        for _ in 0..3 {
            assert_eq!(pair.read().await.payload(), "b");
        }
        assert_eq!(pair.asked(), (3, 3));
        assert_eq!(states(&pair.worker).await[0]["failures"], 0);
        pair.a.turn(Manner::Raw(refusal));
        for _ in 0..3 {
            assert_eq!(pair.read().await.payload(), "b");
        }
        assert_eq!(pair.asked(), (4, 6));
    }
}
