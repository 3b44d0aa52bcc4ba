//! Tests what the edge forwards between a client and an origin: headers, ids, bodies, and disconnects of either side.

use super::origins::{POSTS, Pair, call, states};
use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner, Seen};
use crate::host::{Call, Host};
use crate::raw;
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service, shared};
use crate::worker::Worker;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

cases! {
    Own: [
        a_body_that_is_cut_is_never_asked_for_again,
        a_caller_who_leaves_ends_his_connection_and_no_other,
        headers_of_the_connection_go_no_further_and_the_callers_identity_does,
        a_real_second_origin_takes_over_reads_and_inserts,
    ],
}

async fn a_body_that_is_cut_is_never_asked_for_again(_: Host) {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\nContent-Length: 500\r\n\r\n{\"success\":true,\"pay",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"succes\r\n",
    ] {
        let pair = Pair::start(Manner::Raw(answer), Manner::Well).await;
        // The client asks to close its connection, which the worker closes anyway when the answer breaks off.
        let cut = call(&pair.worker, Method::GET, POSTS).header("connection", "close");
        let response = cut.request().send().await;
        // A local workerd may end the body properly: docs/troubleshooting.md, "Limits of the local edge".
        if let Ok(body) = response.expect("a head").bytes().await {
            assert!(serde_json::from_slice::<Value>(&body).is_err(), "{body:?}");
        }
        assert_eq!(pair.asked(), (1, 0));
        assert_eq!(states(&pair.worker).await[0]["failures"], 0);
    }
}

async fn a_caller_who_leaves_ends_his_connection_and_no_other(_: Host) {
    // A local workerd notices a disconnect only when it writes: docs/troubleshooting.md, "Limits of the local edge".
    let begun = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"succes\r\n";
    let pair = Pair::start(Manner::Drip(begun, "1\r\n-\r\n"), Manner::Well).await;
    let open = || async {
        let response = call(&pair.worker, Method::GET, POSTS).request().send().await;
        let mut chunks = response.expect("a head").bytes_stream();
        let first = chunks.next().await.expect("a chunk").expect("bytes");
        assert!(first.starts_with(b"{\"succes"));
        chunks
    };
    let (leaves, stays) = (open().await, open().await);
    pair.a.turn(Manner::Well);
    drop(leaves);
    eventually("his connection ends", Duration::from_secs(10), || async { (pair.a.left() == 1).then_some(()) }).await;
    for answer in join_all((0..10).map(|_| pair.read())).await {
        assert_eq!(answer.payload(), "a", "{answer}");
    }
    assert_eq!(pair.a.left(), 1);
    drop(stays);
}

async fn headers_of_the_connection_go_no_further_and_the_callers_identity_does(_: Host) {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\n\
        Connection: close\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nTrailer: X-T\r\n\
        Proxy-Connection: close\r\nUpgrade: h2c\r\nX-Stays: 1\r\nServer-Timing: db;dur=0.5, origin;dur=0.75\r\n\
        Content-Length: 31\r\n\r\n{\"success\":true,\"payload\":null}";
    let pair = Pair::start(Manner::Close, Manner::Raw(ANSWER)).await;
    let request = raw::request(
        "GET",
        format!("{POSTS}/1").as_bytes(),
        &format!(
            "Authorization: Bearer {}\r\nConnection: x-private, Accept, traceparent, X-HTTP-Method-Override\r\nX-HTTP-Method-Override: GET\r\nX-Private: 1\r\nAccept: application/json\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n\
             Proxy-Authorization: Basic eDp5\r\nProxy-Connection: close\r\nX-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n\
             X-Real-IP: 192.0.2.1\r\nCF-Connecting-IP: 192.0.2.1\r\nX-Request-Id: mine-1\r\n\
             traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ntracestate: a=b\r\nX-Stays: 1\r\n",
            shared().full_key
        ),
        b"",
    );
    let answer = raw::exchange(&pair.worker.url, &request).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.head);
    let seen = pair.b.asked().pop().expect("a request");
    for gone in [
        "x-private",
        "keep-alive",
        "te",
        "proxy-authorization",
        "proxy-connection",
        "forwarded",
        "x-real-ip",
        "cf-connecting-ip",
    ] {
        assert_eq!(seen.header(gone), None, "{}", seen.head);
    }
    assert!(!seen.head.contains("192.0.2.1"), "{}", seen.head);
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-request-id", "mine-1"),
        ("tracestate", "a=b"),
        // The answer depends on these headers, so they are forwarded although `Connection` names them.
        ("accept", "application/json"),
        ("x-http-method-override", "GET"),
        ("x-stays", "1"),
        ("x-forwarded-proto", "http"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{}", seen.head);
    }
    // The edge continues the caller's trace with a span of its own.
    let trace: Vec<&str> = seen.header("traceparent").expect("a trace").split('-').collect();
    assert_eq!((trace[0], trace[1], trace[3]), ("00", "4bf92f3577b34da6a3ce929d0e0e4736", "01"), "{}", seen.head);
    assert_ne!(trace[2], "00f067aa0ba902b7");
    let head = Seen { head: answer.head, body: Vec::new() };
    for gone in ["keep-alive", "proxy-authenticate", "proxy-connection", "trailer", "upgrade"] {
        assert_eq!(head.header(gone), None, "{}", head.head);
    }
    assert_eq!(head.header("x-stays"), Some("1"));
    let timing = head.head.to_lowercase();
    for part in ["edge;dur=", "upstream;dur=", "db;dur=0.5", "origin;dur=0.75"] {
        assert!(timing.contains(part), "{part}: {timing}");
    }
}

async fn a_real_second_origin_takes_over_reads_and_inserts(_: Host) {
    let service = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[]));
    let service = service.await.unwrap().expect("a service");
    let second = tokio::task::block_in_place(|| SecondOrigin::start(&service)).expect("a second origin");
    let first = FakeOrigin::start("first", Manner::Swallow(service.origin.clone())).await;
    let origins = format!("{},{}", first.url, second.origin);
    let jwks = service.cli_ok(&["key", "jwks"]);
    let worker = tokio::task::block_in_place(|| {
        Worker::start(&[("ORIGINS", &origins), ("JWKS", jwks.trim()), ("ORIGIN_CONNECT_TIMEOUT_MS", "5000")])
    });
    let call = |method, path: &str| Call::new(&worker.url, method, path).key(&service.full_key);
    let body = json!({"title": "once", "body": "x"});
    // The first origin inserts the record, but its answer is lost.
    let insert = call(Method::POST, POSTS).json(&body).header("idempotency-key", "k1");
    let id = insert.clone().send().await.payload();
    assert_eq!(first.asked().len(), 1);
    let record = call(Method::GET, &format!("{POSTS}/{id}")).send().await.payload();
    assert_eq!(record["title"], "once");
    assert_eq!(insert.send().await.payload(), id);
    let query = json!({"query": "SELECT COUNT(*) AS n FROM posts WHERE title = 'once'", "database": "demo"});
    let rows = call(Method::POST, "/api/v1/sql").json(&query).send().await.payload();
    assert_eq!(rows[0]["n"], 1);
    drop(worker);
    drop(second);
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}
