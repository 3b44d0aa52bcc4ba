//! The edge beside the origin: same answers, and what it does alone.

use crate::door::{Answer, Call, Door, option};
use crate::room::Room;
use crate::service::{Edge, Service, shared};
use crate::worker::Worker;

pub(crate) mod forwarding;
pub(crate) mod origins;

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Own: [the_worker_runs_under_plain_workerd],
    Edge: [both_doors_give_the_same_answers, the_edge_refuses_by_itself_and_says_when_the_origin_is_silent],
}

async fn both_doors_give_the_same_answers(_: Door) {
    let room = Room::new(
        Door::Origin,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v JSON, d DECIMAL(10,2), s TEXT)",
            r#"INSERT INTO t VALUES (1, '{"a":[1]}', 1.5, 'é🦭')"#,
        ],
    )
    .await;
    let t = room.path("t");
    let sql = |query: &str| Some(json!({"query": query, "database": room.db}));
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
        (
            Method::GET,
            format!(
                "{t}?{}",
                option("query", &json!({"id": {"value": 1, "equality": "~"}}))
            ),
            None,
        ),
        (
            Method::GET,
            format!("{t}?{}", option("query", &json!({"s": "é🦭"}))),
            None,
        ),
        (Method::GET, format!("{t}/_schema"), None),
        (Method::OPTIONS, t.clone(), None),
        (
            Method::POST,
            format!("{t}/query"),
            Some(json!({"limit": 1})),
        ),
        (Method::POST, t.clone(), Some(json!([]))),
        (Method::POST, t.clone(), Some(json!({"nope": 1}))),
        (Method::POST, t.clone(), Some(json!({"id": 1}))),
        (Method::PUT, format!("{t}/1"), Some(json!({}))),
        (Method::PUT, format!("{t}/1"), Some(json!({"d": "abc"}))),
        (Method::PUT, t.clone(), Some(json!({"d": 1}))),
        (Method::DELETE, t.clone(), None),
        (Method::POST, "/api/v1/sql".into(), sql("SELECT * FROM t")),
        (Method::POST, "/api/v1/sql".into(), sql("SELEKT")),
        (
            Method::POST,
            "/api/v1/sql".into(),
            Some(json!({"query": 5})),
        ),
        (Method::GET, "/api/v1/sql".into(), None),
        batch(json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}/1")}])),
        batch(json!([{"method": "POST", "path": t, "body": {"id": 1}}])),
        batch(json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}/2")}])),
        batch(
            json!([{"method": "GET", "path": t}, {"method": "GET", "path": format!("{t}?limit=x")}]),
        ),
        batch(json!([{"method": "PUT", "path": format!("{t}/1"), "body": {"d": {"$ref": 0}}}])),
        batch(json!(5)),
        (Method::GET, "/api/v1/crud/nope/t".into(), None),
        (Method::GET, room.path("nope"), None),
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
        let headers: Vec<Option<String>> = kept
            .iter()
            .map(|name| answer.header(name).map(str::to_owned))
            .collect();
        (answer.status, body, headers)
    };
    for (method, path, body) in requests {
        for key in [Some(&shared().full_key), Some(&shared().read_key), None] {
            let send = |door: Door| {
                let mut call = Call::new(door.url(), method.clone(), &path);
                if let Some(key) = key {
                    call = call.key(key);
                }
                if let Some(body) = &body {
                    call = call.json(body);
                }
                call.send()
            };
            let (direct, through) = (send(Door::Origin).await, send(Door::Edge).await);
            assert_eq!(
                comparable(&direct),
                comparable(&through),
                "\n{direct}\n{through}"
            );
        }
    }
}

/// The process that listens on the origin's port is stopped, so that connections are taken, and nothing is answered.
async fn the_edge_refuses_by_itself_and_says_when_the_origin_is_silent(_: Door) {
    let start = || Service::start(Edge::With, &[]);
    let service = tokio::task::spawn_blocking(start)
        .await
        .unwrap()
        .expect("a service");
    let edge = service.edge.clone().expect("an edge");
    let call = |method: Method, path: &str| Call::new(&edge, method, path).key(&service.full_key);
    call(Method::GET, "/api/v1/crud/demo/posts/1")
        .send()
        .await
        .payload();
    service.signal(Signal::STOP);
    let posts = "/api/v1/crud/demo/posts";
    for (refused, code) in [
        (call(Method::GET, posts).no_key(), ErrorCode::MissingKey),
        (call(Method::GET, posts).key("a.b.c"), ErrorCode::InvalidKey),
        (
            call(Method::DELETE, "/api/v1/crud/demo/posts/1").key(&service.read_key),
            ErrorCode::FullAccessRequired,
        ),
        (call(Method::GET, "/nowhere"), ErrorCode::RouteNotFound),
        (
            call(Method::GET, "/api/v1/sql"),
            ErrorCode::MethodNotAllowed,
        ),
        (
            call(Method::GET, "/api/v1/crud/demo/posts?limit=x"),
            ErrorCode::InvalidQueryOption,
        ),
        (call(Method::POST, posts).bytes("{"), ErrorCode::InvalidJson),
        (
            call(Method::POST, "/api/v1/batch")
                .json(&json!({"operations": [{"method": "POST", "path": "/api/v1/sql"}]})),
            ErrorCode::InvalidBody,
        ),
        (
            call(Method::POST, posts)
                .bytes("{}")
                .header("content-type", "text/plain"),
            ErrorCode::UnsupportedMediaType,
        ),
    ] {
        refused.send().await.refused(code);
    }
    let silent = call(Method::GET, "/api/v1/crud/demo/posts/1").send().await;
    silent.refused(ErrorCode::OriginTimeout);
    service.signal(Signal::CONT);
    let works = crate::case::eventually(
        "the origin answers again",
        std::time::Duration::from_secs(20),
        || async {
            let answer = call(Method::GET, "/api/v1/crud/demo/posts/1").send().await;
            (answer.code() == "ok").then_some(())
        },
    );
    works.await;
    tokio::task::spawn_blocking(move || service.stop())
        .await
        .unwrap()
        .unwrap();
}

async fn the_worker_runs_under_plain_workerd(_: Door) {
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let posts = "/api/v1/crud/demo/posts";
    let call = Call::new(&worker.url, Method::GET, &format!("{posts}/1"));
    call.clone().send().await.refused(ErrorCode::MissingKey);
    let record = call.key(&shared().read_key).send().await.payload();
    assert_eq!(record["id"], 1);
}
