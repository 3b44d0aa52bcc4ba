//! Tests the edge in comparison with the origin (the answers must be equal), and the behaviour that only the edge has.

pub(crate) mod changes;
pub(crate) mod client_abort;
pub(crate) mod entrance;
pub(crate) mod flood;
pub(crate) mod forwarding;
pub(crate) mod media_cache;
pub(crate) mod no_database;
pub(crate) mod origins;
pub(crate) mod read_cache;
mod recording_proxy;
pub(crate) mod refusals;
pub(crate) mod tracing;

use crate::case::eventually;
use crate::host::{Answer, Call, Host, option};
use crate::raw::Wire;
use crate::service::{Edge, Service, shared, workspace};
use crate::test_db::TestDb;
use crate::worker::Worker;
use flate2::Compression;
use flate2::write::GzEncoder;
use recording_proxy::RecordingProxy;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::io::Write as _;
use std::time::Duration;

cases! {
    Own: [
        the_worker_runs_under_plain_workerd,
        the_worker_is_small,
        each_request_gets_one_line_in_the_workers_log,
        the_edge_alone_says_which_pages_may_read,
        a_tap_sees_what_the_origin_is_asked,
    ],
    Edge: [both_hosts_give_the_same_answers, the_edge_refuses_by_itself_and_says_when_the_origin_is_silent],
}

async fn both_hosts_give_the_same_answers(_: Host) {
    let db = TestDb::new(
        Host::Origin,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v JSON, d DECIMAL(10,2), s TEXT)",
            r#"INSERT INTO t VALUES (1, '{"a":[1]}', 1.5, 'é🦭')"#,
        ],
    )
    .await;
    let t = db.path("t");
    let sql = |query: &str| Some(json!({"query": query, "database": db.name}));
    let batch = |operations: Value| {
        let body = Some(json!({"operations": operations}));
        (Method::POST, "/api/v1/batch".to_owned(), body)
    };
    let requests: Vec<(Method, String, Option<Value>)> = vec![
        (Method::GET, t.clone(), None),
        (Method::GET, format!("{t}/1"), None),
        (Method::GET, format!("{t}/2"), None),
        (Method::GET, format!("{t}?limit=x"), None),
        (Method::GET, format!("{t}?selectFields=nope"), None),
        (Method::GET, format!("{t}?{}", option("query", &json!({"id": {"value": 1, "equality": "~"}}))), None),
        (Method::GET, format!("{t}?{}", option("query", &json!({"s": "é🦭"}))), None),
        (Method::GET, format!("{t}/_schema"), None),
        (Method::OPTIONS, t.clone(), None),
        (Method::POST, format!("{t}/query"), Some(json!({"limit": 1}))),
        (Method::POST, t.clone(), Some(json!([]))),
        (Method::POST, t.clone(), Some(json!({"nope": 1}))),
        (Method::POST, t.clone(), Some(json!({"id": 1}))),
        (Method::PUT, format!("{t}/1"), Some(json!({}))),
        (Method::PUT, format!("{t}/1"), Some(json!({"d": "abc"}))),
        (Method::PUT, t.clone(), Some(json!({"d": 1}))),
        (Method::DELETE, t.clone(), None),
        (Method::POST, "/api/v1/sql".into(), sql("SELECT * FROM t")),
        (Method::POST, "/api/v1/sql".into(), sql("SELEKT")),
        (Method::POST, "/api/v1/sql".into(), Some(json!({"query": 5}))),
        (Method::GET, "/api/v1/sql".into(), None),
        batch(json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}/1")}])),
        batch(json!([{"method": "POST", "path": t, "body": {"id": 1}}])),
        batch(json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}/2")}])),
        batch(json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}?limit=x")}])),
        batch(json!([{"method": "PUT", "path": format!("{t}/1"), "body": {"d": {"$ref": 0}}}])),
        batch(json!(5)),
        (Method::GET, "/api/v1/crud/nope/t".into(), None),
        (Method::GET, db.path("nope"), None),
        (Method::GET, "/nowhere".into(), None),
    ];
    let comparable = |answer: &Answer| {
        let mut body = answer.json();
        if let Some(error) = body.get_mut("error") {
            error["requestId"] = Value::Null;
        }
        let kept = [
            "content-type",
            "allow",
            "retry-after",
            "www-authenticate",
            "access-control-allow-origin",
            "cache-control",
            "vary",
        ];
        let headers: Vec<Option<String>> = kept.iter().map(|name| answer.header(name).map(str::to_owned)).collect();
        (answer.status, body, headers)
    };
    for (method, path, body) in requests {
        for key in [Some(&shared().full_key), Some(&shared().read_key), None] {
            let send = |host: Host| {
                let mut call = Call::new(host.url(), method.clone(), &path);
                if let Some(key) = key {
                    call = call.key(key);
                }
                if let Some(body) = &body {
                    call = call.json(body);
                }
                call.send()
            };
            let (direct, through) = (send(Host::Origin).await, send(Host::Edge).await);
            assert_eq!(comparable(&direct), comparable(&through), "\n{direct}\n{through}");
        }
    }
}

/// Stops the origin's process by SIGSTOP: the kernel accepts connections to its port, but nothing answers them.
async fn the_edge_refuses_by_itself_and_says_when_the_origin_is_silent(_: Host) {
    let start = || Service::start(Edge::With, &[]);
    let service = tokio::task::spawn_blocking(start).await.unwrap().expect("a service");
    let edge = service.edge.clone().expect("an edge");
    let call = |method: Method, path: &str| Call::new(&edge, method, path).key(&service.full_key);
    call(Method::GET, "/api/v1/crud/demo/posts/1").send().await.payload();
    service.signal(Signal::STOP);
    let posts = "/api/v1/crud/demo/posts";
    for (refused, code) in [
        (call(Method::GET, posts).no_key(), ErrorCode::MissingKey),
        (call(Method::GET, posts).key("a.b.c"), ErrorCode::InvalidKey),
        (call(Method::DELETE, "/api/v1/crud/demo/posts/1").key(&service.read_key), ErrorCode::FullAccessRequired),
        (call(Method::GET, "/nowhere"), ErrorCode::RouteNotFound),
        (call(Method::GET, "/api/v1/sql"), ErrorCode::MethodNotAllowed),
        (call(Method::GET, "/api/v1/crud/demo/posts?limit=x"), ErrorCode::InvalidQueryOption),
        (call(Method::POST, posts).bytes("{"), ErrorCode::InvalidJson),
        (
            call(Method::POST, "/api/v1/batch")
                .json(&json!({"operations": [{"method": "POST", "path": "/api/v1/sql"}]})),
            ErrorCode::InvalidBody,
        ),
        (call(Method::POST, posts).bytes("{}").header("content-type", "text/plain"), ErrorCode::UnsupportedMediaType),
    ] {
        refused.send().await.refused(code);
    }
    let silent = call(Method::GET, "/api/v1/crud/demo/posts/1").send().await;
    silent.refused(ErrorCode::OriginTimeout);
    service.signal(Signal::CONT);
    let works = eventually("the origin answers again", Duration::from_secs(20), || async {
        let answer = call(Method::GET, "/api/v1/crud/demo/posts/1").send().await;
        (answer.code() == "ok").then_some(())
    });
    works.await;
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}

async fn the_worker_runs_under_plain_workerd(_: Host) {
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let posts = "/api/v1/crud/demo/posts";
    let call = Call::new(&worker.url, Method::GET, &format!("{posts}/1"));
    call.clone().send().await.refused(ErrorCode::MissingKey);
    let record = call.key(&shared().read_key).send().await.payload();
    assert_eq!(record["id"], 1);
}

/// Maximum bytes of the worker's compressed wasm, which an isolate loads at its start.
const WORKER_MAX_BYTES: usize = 345_000;

async fn the_worker_is_small(_: Host) {
    let wasm = std::fs::read(workspace().join("edge/build/index_bg.wasm")).expect("`make edge`");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&wasm).unwrap();
    let bytes = gzip.finish().unwrap().len();
    assert!(bytes < WORKER_MAX_BYTES, "{bytes} bytes");
}

async fn each_request_gets_one_line_in_the_workers_log(_: Host) {
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let call = |method: Method, path: &str, id: &str| {
        Call::new(&worker.url, method, path).key(&shared().read_key).header("x-request-id", id)
    };
    let record = "/api/v1/crud/demo/posts/1";
    call(Method::GET, record, "line-1").send().await.payload();
    let refused = call(Method::DELETE, record, "line-2").send().await;
    refused.refused(ErrorCode::FullAccessRequired);
    let log = worker.log();
    let line = |id: &str| -> Value {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(id)).collect();
        assert_eq!(lines.len(), 1, "{log}");
        serde_json::from_str(lines[0]).unwrap_or_else(|error| panic!("{error}: {log}"))
    };
    let key = crate::forged::claims(&shared().read_key)["sub"].clone();
    let (read, refused) = (line("line-1"), line("line-2"));
    assert_eq!(read["status"], 200);
    assert_eq!(read["route"], "/api/v1/crud/{db}/{table}/{id}");
    assert_eq!(read["key"], key);
    assert_eq!(refused["status"], 403);
    assert_eq!(refused["key"], key);
    assert_eq!(refused["code"], "full_access_required");
    assert!(!log.contains(&shared().read_key));

    let silent = Worker::start(&[("ORIGINS", &shared().origin), ("LOG_REQUESTS", "off")]);
    let read = Call::new(&silent.url, Method::GET, record).key(&shared().read_key);
    read.send().await.payload();
    assert_eq!(silent.log(), "");
}

/// Checks the recording proxy, on which all counts of requests at the origin depend.
async fn a_tap_sees_what_the_origin_is_asked(_: Host) {
    let tap = RecordingProxy::before(&shared().origin).await;
    let call = |method, path: &str| Call::new(&tap.url, method, path).key(&shared().full_key);
    let read = call(Method::GET, "/api/v1/crud/demo/posts/1").send().await;
    assert_eq!(read.payload()["id"], 1);
    let large = json!({"query": format!("SELECT LENGTH('{}') AS v", "x".repeat(200_000))});
    let sql = || call(Method::POST, "/api/v1/sql");
    let counted = sql().json(&large).send().await;
    let pieces = large.to_string().into_bytes();
    let pieces: Vec<_> = pieces.chunks(30_000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let chunked = sql().request().body(chunked).send().await.unwrap();
    assert_eq!(chunked.status(), 200);
    assert_eq!(counted.payload(), json!([{"v": 200_000}]));
    let mut cut = Wire::open(&tap.url).await;
    cut.send(b"POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").await;
    drop(cut);
    let seen = eventually("the last one is seen", Duration::from_secs(10), || async {
        Some(tap.requests()).filter(|seen| seen.len() == 4)
    })
    .await;
    let bytes = large.to_string().len() as u64;
    let told: Vec<_> =
        seen.iter().map(|one| (one.method.as_str(), one.target.as_str(), one.body_bytes, one.is_complete)).collect();
    assert_eq!(
        told,
        [
            ("GET", "/api/v1/crud/demo/posts/1", 0, true),
            ("POST", "/api/v1/sql", bytes, true),
            ("POST", "/api/v1/sql", bytes, true),
            ("POST", "/api/v1/sql", 1, false),
        ]
    );
    assert_eq!(seen[3].header("content-length"), Some("100"));
    assert_eq!(tap.complete(), 3);
    assert!((2..=4).contains(&tap.connections()), "{}", tap.connections());
    tap.forget();
    assert_eq!(tap.requests().len(), 0);
}

/// The suite's origin allows all CORS origins, so the headers tested here can only be the edge's.
async fn the_edge_alone_says_which_pages_may_read(_: Host) {
    let variables = [("ORIGINS", shared().origin.as_str()), ("CORS_ORIGINS", "https://a.test")];
    let worker = Worker::start(&variables);
    for (page, allowed) in [("https://a.test", Some("https://a.test")), ("https://b.test", None)] {
        for path in ["/api/v1/crud/demo/posts/1", "/readyz", "/nowhere"] {
            let call = Call::new(&worker.url, Method::GET, path).key(&shared().read_key);
            let answer = call.header("origin", page).send().await;
            let named = answer.header("access-control-allow-origin");
            assert_eq!(named, allowed, "{answer}");
            let exposed = answer.header("access-control-expose-headers");
            assert_eq!(exposed.is_some(), allowed.is_some(), "{answer}");
            assert!(answer.header("vary").unwrap().contains("Origin"), "{answer}");
        }
    }
}
