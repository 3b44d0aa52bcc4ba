//! Clients that disconnect before they are answered, as a deployed worker sees them: the request to the origin is
//! aborted, and its memory is freed. `client_abort.capnp` makes the disconnects.

use super::origins::POSTS;
use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner};
use crate::host::{Call, Host};
use crate::service::shared;
use crate::test_db::unique;
use crate::worker::Worker;
use futures_util::future::join_all;
use machines::process::allow_open_files;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use shared::limits::EDGE_REQUESTS_MAX_COUNT;
use std::time::Duration;

cases! {
    Own: [
        aborted_requests_leave_nothing_behind,
        a_request_without_a_body_is_aborted_too,
        a_project_may_have_all_requests_that_wait_for_an_origin_and_starves_nobody,
    ],
}

const WAIT_MAX: Duration = Duration::from_secs(60);
const BODY_BYTES: usize = 1_000_000;
const AT_ONCE: usize = 5;

/// Number of requests before the measurement: after them, the memory for the runtime's garbage no longer grows.
const BEFORE: usize = 20;

/// Number of measured requests. A bug that was fixed leaked more than the body of each request.
const BETWEEN: usize = 40;

/// Maximum number of closures that exist when no request is being answered: those that all requests share, and timers.
const CLOSURES_MAX: usize = 10;

/// Maximum growth of memory, in KiB: far less than the requests' bodies, far more than the garbage varies.
const GROWTH_MAX_KIB: u64 = 100 * 1024;

async fn aborted_requests_leave_nothing_behind(_: Host) {
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let variables = [("ORIGINS", origin.url.as_str())];
    let worker = Worker::serve("tests/e2e/edge/client_abort.capnp", &variables);
    let long = json!({"query": {"title": "x".repeat(BODY_BYTES)}});
    let abort = || async {
        let question = Call::new(&worker.url, Method::POST, &format!("{POSTS}/query"))
            .key(&shared().read_key)
            .header("x-aborts-after-ms", "150")
            .json(&long);
        let answer = question.request().send().await.expect("an answer");
        assert_eq!(answer.status(), 499);
    };
    let mut asked = 0;
    let mut begun = 0;
    for round in 0..BEFORE + BETWEEN {
        if round == BEFORE {
            begun = worker.memory_kib();
        }
        join_all((0..AT_ONCE).map(|_| abort())).await;
        asked += origin.forget();
    }
    assert!(asked > AT_ONCE * (BEFORE + BETWEEN) / 2, "{asked} asked");
    eventually("every request is aborted", Duration::from_secs(10), || async {
        (origin.left() == asked + origin.asked().len()).then_some(())
    })
    .await;
    let grown = worker.memory_kib().saturating_sub(begun);
    assert!(
        grown < GROWTH_MAX_KIB,
        "{grown} KiB more than {begun} KiB, after {} MB of bodies",
        BODY_BYTES * AT_ONCE * BETWEEN / 1_000_000
    );
    let closures = Call::new(&worker.url, Method::GET, "/closures").request().send().await.expect("an answer");
    let closures: usize = closures.text().await.unwrap().parse().expect("a number");
    assert!(closures <= CLOSURES_MAX, "{closures} closures after {asked} aborted requests");
    // A client that doesn't disconnect is answered.
    origin.turn(Manner::Well);
    let stays = Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key);
    assert_eq!(stays.send().await.payload(), "a");
}

async fn a_request_without_a_body_is_aborted_too(_: Host) {
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let variables = [("ORIGINS", origin.url.as_str())];
    let worker = Worker::serve("tests/e2e/edge/client_abort.capnp", &variables);
    for _ in 0..AT_ONCE {
        let question =
            Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key).header("x-aborts-after-ms", "150");
        let answer = question.request().send().await.expect("an answer");
        assert_eq!(answer.status(), 499, "{answer:?}");
    }
    eventually("every request is aborted", Duration::from_secs(10), || async {
        (origin.left() == origin.asked().len()).then_some(())
    })
    .await;
    assert!(!origin.asked().is_empty());
    origin.turn(Manner::Well);
    let stays = Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key);
    assert_eq!(stays.send().await.payload(), "a");
}

/// Number of requests that are aborted together.
const ABORTED_TOGETHER: usize = 100;

async fn a_project_may_have_all_requests_that_wait_for_an_origin_and_starves_nobody(_: Host) {
    allow_open_files(8_000).expect("a limit");
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    // The origin is silent for longer than by default.
    let timeouts = [("ORIGIN_TIMEOUT_MS", "600000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "600000")];
    let variables = [&[("ORIGINS", origin.url.as_str())], &timeouts[..]].concat();
    let worker = Worker::serve("tests/e2e/edge/client_abort.capnp", &variables);
    let read = || Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key);
    // Aborted requests are not counted: more than may wait are aborted, and all may wait afterwards.
    for _ in 0..=EDGE_REQUESTS_MAX_COUNT / ABORTED_TOGETHER {
        let aborted = join_all((0..ABORTED_TOGETHER).map(|_| async {
            read().header("x-aborts-after-ms", "150").request().send().await.expect("an answer").status()
        }));
        assert!(aborted.await.iter().all(|status| *status == 499));
    }
    eventually("every request is aborted", WAIT_MAX, || async {
        (origin.left() == origin.asked().len()).then_some(())
    })
    .await;
    origin.forget();
    let waiting: Vec<_> = (0..EDGE_REQUESTS_MAX_COUNT).map(|_| tokio::spawn(read().send())).collect();
    eventually("all wait", WAIT_MAX, || async { (origin.asked().len() == EDGE_REQUESTS_MAX_COUNT).then_some(()) })
        .await;
    // Another project and callers of another class are served at once; a further request of the project waits in vain.
    origin.turn(Manner::Well);
    let project = unique("other");
    shared().create_project(&project);
    let other = shared().create_key(&project, "read", &[]).token;
    assert_eq!(read().key(&other).send().await.payload(), "a");
    let public = Call::new(&worker.url, Method::GET, "/media/default/none.png");
    assert_eq!(public.send().await.payload(), "a");
    let refused = read().send().await;
    refused.refused(ErrorCode::Overloaded);
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The origin closes all connections, so that all requests end.
    origin.turn(Manner::Refuse);
    for ended in join_all(waiting).await {
        ended.unwrap().refused(ErrorCode::OriginUnreachable);
    }
    origin.turn(Manner::Well);
    eventually("a further request is answered", WAIT_MAX, || async {
        (read().send().await.status == 200).then_some(())
    })
    .await;
}
