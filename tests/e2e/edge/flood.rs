//! Many callers at once, through a real workerd: callers who send nothing, or leave, keep nobody else from being
//! answered, and an honest crowd is not refused.

use super::origins::POSTS;
use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner};
use crate::host::{Call, Host};
use crate::issuer::Issuer;
use crate::raw::{self, Wire};
use crate::roles::{Caller, role_of};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use crate::worker::Worker;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use machines::process::allow_open_files;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;
use shared::limits::{EDGE_REQUESTS_MAX_COUNT, EDGE_UNVERIFIED_REQUESTS_MAX_COUNT};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

cases! {
    Own: [
        callers_who_send_no_body_lock_nobody_out,
        the_origin_refuses_before_the_body_has_come,
        one_key_leaves_slots_to_the_others_of_its_project,
        refused_bodies_that_never_come_take_little_memory,
        clients_who_leave_after_an_early_refusal_leave_no_connection_behind,
        refused_bodies_that_never_come_take_few_connections_to_the_origin,
        a_crowd_of_one_project_is_answered,
        a_request_that_waits_gets_the_next_free_slot,
        clients_who_read_slowly_take_little_memory,
        callers_who_leave_at_once_take_nothing_from_others,
    ],
}

const WAIT_MAX: Duration = Duration::from_secs(60);

/// Number of connections of each kind of caller who sends no body: more than there are slots for them.
const SILENT_UNVERIFIED: usize = EDGE_UNVERIFIED_REQUESTS_MAX_COUNT * 6 / 5 + 50;
const SILENT_VERIFIED: usize = EDGE_REQUESTS_MAX_COUNT * 6 / 5 + 50;

/// A token of an issuer that nobody knows, with a forged signature.
const FORGED: &str = "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

async fn callers_who_send_no_body_lock_nobody_out(_: Host) {
    allow_open_files(8_000).expect("a limit");
    let db = TestDb::new(Host::Origin, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
    let mut role = role_of(&db, [("t", json!({"read": true, "insert": true}))]);
    role["rateLimit"] = "2/1s".into();
    let limited = Caller::with_role(&db, &crate::roles::create_role(&role), json!({}));
    let project = unique("users");
    shared().create_project(&project);
    let issuer = Issuer::new(&project, "EdDSA");
    issuer.publish(&[issuer.key.jwk("a")], &["--map", "reader=read"]);
    let mut claims = issuer.claims("ann");
    claims["role"] = "reader".into();
    let user = issuer.token(&claims);
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    for framing in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
        let mut silent = Vec::new();
        for (token, count) in [(FORGED, SILENT_UNVERIFIED), (&limited.key, SILENT_VERIFIED)] {
            let headers = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n{framing}\r\n");
            let head = raw::request("POST", db.path("t").as_bytes(), &headers, b"");
            for _ in 0..count {
                let mut wire = Wire::open(&worker.url).await;
                wire.send(&head).await;
                silent.push(wire);
            }
        }
        let call = |method, path: &str| Call::new(&worker.url, method, path);
        for path in ["/readyz", "/docs", "/console"] {
            assert_eq!(call(Method::GET, path).send().await.status, 200, "{framing}: {path}");
        }
        call(Method::GET, "/media/default/none.png").send().await.refused(ErrorCode::MediaNotFound);
        let is_known =
            || async { (call(Method::GET, "/api/v1/media").key(&user).send().await.status == 200).then_some(()) };
        eventually("the origin knows the issuer", WAIT_MAX, is_known).await;
        let query = call(Method::POST, "/api/v1/crud/nowhere/posts/query").key(&user).json(&json!({}));
        query.send().await.refused(ErrorCode::DatabaseNotFound);
        for key in [&limited.key, &shared().full_key] {
            let query = call(Method::POST, &format!("{}/query", db.path("t"))).key(key).json(&json!({"limit": 1}));
            assert_eq!(query.send().await.payload(), json!([{"id": 1}]), "{framing}");
        }
        drop(silent);
    }
}

/// A connection serves another request after the body of a refused one, but not if the server gave up waiting for it.
async fn the_origin_refuses_before_the_body_has_come(_: Host) {
    let head = format!(
        "POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {FORGED}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut wire = Wire::open(&shared().origin).await;
    for number in 0..3 {
        wire.send(head.as_bytes()).await;
        assert_eq!(wire.answer().await.map(|answer| answer.code()).as_deref(), Some("invalid_key"), "{number}");
        wire.send(b"2\r\n{}\r\n0\r\n\r\n").await;
    }
}

async fn one_key_leaves_slots_to_the_others_of_its_project(_: Host) {
    allow_open_files(8_000).expect("a limit");
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let timeouts = [("ORIGIN_TIMEOUT_MS", "600000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "600000")];
    let worker = Worker::start(&[&[("ORIGINS", &*origin.url)], &timeouts[..]].concat());
    let headers = format!("Authorization: Bearer {}\r\n", shared().full_key);
    let read = raw::request("GET", POSTS.as_bytes(), &headers, b"");
    let mut slow = Vec::new();
    for _ in 0..EDGE_REQUESTS_MAX_COUNT {
        let mut wire = Wire::open(&worker.url).await;
        wire.send(&read).await;
        slow.push(wire);
    }
    eventually("one key holds all slots", WAIT_MAX, || async {
        (origin.asked().len() == EDGE_REQUESTS_MAX_COUNT).then_some(())
    })
    .await;
    origin.turn(Manner::Well);
    let read = Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key);
    assert_eq!(read.send().await.payload(), "a");
    drop(slow);
}

async fn refused_bodies_that_never_come_take_little_memory(_: Host) {
    const CALLERS: usize = 1_500;
    // When all of them were drained, workerd grew by more than 200 MB.
    const GROWTH_MAX_KIB: u64 = 140 * 1024;
    allow_open_files(8_000).expect("a limit");
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let begun = worker.memory_kib();
    let head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
    let refused = (0..CALLERS).map(|_| async {
        let mut wire = Wire::open(&worker.url).await;
        wire.send(head).await;
        assert_eq!(wire.answer().await.map(|answer| answer.status), Some(401));
        wire
    });
    let silent = join_all(refused).await;
    let grown = worker.memory_kib().saturating_sub(begun);
    assert!(grown < GROWTH_MAX_KIB, "{grown} KiB more than {begun} KiB");
    drop(silent);
}

/// How a body is announced that the edge pipes, and its first bytes.
const PIPED: [(&str, &[u8]); 2] =
    [("Content-Length: 2000000", b"{\"query\": "), ("Transfer-Encoding: chunked", b"a\r\n{\"query\": \r\n")];

/// Sends a request with a forged token and only the first bytes of its body, and waits for the refusal.
async fn refused_early(worker: &Worker, (framing, first): (&str, &[u8])) -> Wire {
    let headers = format!("Authorization: Bearer {FORGED}\r\nContent-Type: application/json\r\n{framing}\r\n");
    let mut wire = Wire::open(&worker.url).await;
    wire.send(&[&raw::request("POST", b"/api/v1/sql", &headers, b""), first].concat()).await;
    assert_eq!(wire.answer().await.map(|answer| answer.code()).as_deref(), Some("invalid_key"), "{framing}");
    wire
}

async fn clients_who_leave_after_an_early_refusal_leave_no_connection_behind(_: Host) {
    const CLIENTS: usize = 100;
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let begun = worker.descriptors();
    for piped in PIPED {
        for _ in 0..CLIENTS {
            drop(refused_early(&worker, piped).await);
        }
        eventually("the connections are closed", WAIT_MAX, || async {
            (worker.descriptors() < begun + CLIENTS / 5).then_some(())
        })
        .await;
    }
}

async fn refused_bodies_that_never_come_take_few_connections_to_the_origin(_: Host) {
    const CLIENTS: usize = 300;
    const AT_ONCE: usize = 20;
    const REFUSAL: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\n\
        Connection: close\r\nContent-Length: 63\r\n\r\n{\"success\":false,\"payload\":null,\"error\":{\"code\":\"invalid_key\"}}";
    for piped in PIPED {
        let origin = FakeOrigin::start("a", Manner::Early(REFUSAL)).await;
        let worker = Worker::start(&[("ORIGINS", &origin.url)]);
        let silent: Vec<_> =
            stream::iter(0..CLIENTS).map(|_| refused_early(&worker, piped)).buffer_unordered(AT_ONCE).collect().await;
        // Some whose refusals were just passed on are about to be closed.
        assert!(origin.open_max() <= 5 * AT_ONCE, "{} connections: {}", origin.open_max(), piped.0);
        eventually("all connections are closed", WAIT_MAX, || async { (origin.left() == CLIENTS).then_some(()) }).await;
        drop(silent);
    }
}

/// Not more callers than slots, since a request waits for a slot only for a few seconds.
async fn a_crowd_of_one_project_is_answered(_: Host) {
    const CALLERS: usize = EDGE_REQUESTS_MAX_COUNT * 9 / 10;
    allow_open_files(8_000).expect("a limit");
    // On a busy machine, the origin may be silent for longer than by default.
    let timeouts = [("ORIGIN_TIMEOUT_MS", "120000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "60000")];
    let worker = Worker::start(&[&[("ORIGINS", &*shared().origin)], &timeouts[..]].concat());
    let record = Call::new(&worker.url, Method::GET, &format!("{POSTS}/1")).key(&shared().read_key);
    let callers = (0..CALLERS).map(|_| {
        let record = record.clone();
        tokio::spawn(async move { [record.clone().send().await.code(), record.send().await.code()] })
    });
    let codes: Vec<String> = join_all(callers).await.into_iter().flat_map(|codes| codes.expect("a caller")).collect();
    let refused: Vec<_> = codes.iter().filter(|code| *code != "ok").collect();
    assert_eq!((codes.len(), refused.len()), (2 * CALLERS, 0), "{:?}", refused.first());
}

async fn a_request_that_waits_gets_the_next_free_slot(_: Host) {
    allow_open_files(8_000).expect("a limit");
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let timeouts = [("ORIGIN_TIMEOUT_MS", "600000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "600000")];
    let worker = Worker::start(&[&[("ORIGINS", &*origin.url)], &timeouts[..]].concat());
    let headers = format!("Authorization: Bearer {}\r\n", shared().read_key);
    let read = raw::request("GET", POSTS.as_bytes(), &headers, b"");
    let address = worker.url.trim_start_matches("http://");
    let mut slow = Vec::new();
    for _ in 0..EDGE_REQUESTS_MAX_COUNT {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_zero_linger().expect("a socket");
        stream.write_all(&read).await.expect("a request");
        slow.push(stream);
    }
    eventually("one key holds all slots", WAIT_MAX, || async {
        (origin.asked().len() == EDGE_REQUESTS_MAX_COUNT).then_some(())
    })
    .await;
    origin.turn(Manner::Well);
    let mut waiting = Wire::open(&worker.url).await;
    waiting.send(&read).await;
    slow.pop();
    assert_eq!(waiting.answer().await.map(|answer| answer.status), Some(200));
}

/// Plain workerd has no cache. If the edge held files in memory to cache them, a file of 1 MiB would take that much for
/// each client who reads nothing.
async fn clients_who_read_slowly_take_little_memory(_: Host) {
    const CLIENTS: usize = 200;
    const GROWTH_MAX_KIB: u64 = 100 * 1024;
    const LENGTH: usize = 1024 * 1024;
    const VERSION: &str = "0123456789abcdef0123456789abcdef";
    let file: &'static str = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Request-Id: REQUEST_ID\r\nETag: \"{VERSION}\"\r\n\
         Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nCache-Control: public, max-age=31536000, immutable\r\n\
         Connection: close\r\nContent-Length: {LENGTH}\r\n\r\n{}",
        "x".repeat(LENGTH)
    )
    .leak();
    let origin = FakeOrigin::start("a", Manner::Raw(file)).await;
    let worker = Worker::start(&[("ORIGINS", &origin.url)]);
    let begun = worker.memory_kib();
    let mut slow = Vec::new();
    for number in 0..CLIENTS {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a socket");
        let address = worker.url.trim_start_matches("http://").parse().expect("an address");
        let mut stream = socket.connect(address).await.expect("a connection");
        let path = format!("/media/default/{number}.txt?v={VERSION}");
        stream.write_all(&raw::request("GET", path.as_bytes(), "", b"")).await.expect("a request");
        assert_eq!(&stream.read_u64().await.expect("an answer").to_be_bytes(), b"HTTP/1.1");
        slow.push(stream);
    }
    let grown = worker.memory_kib().saturating_sub(begun);
    assert!(grown < GROWTH_MAX_KIB, "{grown} KiB more than {begun} KiB");
}

/// Number of requests whose callers leave.
const LEAVING: usize = 4_000;

/// Maximum growth of workerd's memory in KiB. Without a limit of requests, it grew by 760 MB.
const GROWTH_MAX_KIB: u64 = 400 * 1024;

/// The callers close their connections as only a reset tells the runtime.
async fn callers_who_leave_at_once_take_nothing_from_others(_: Host) {
    allow_open_files(20_000).expect("a limit");
    let origin = FakeOrigin::start("a", Manner::Hang.well_asked()).await;
    let timeouts = [("ORIGIN_TIMEOUT_MS", "600000"), ("ORIGIN_CONNECT_TIMEOUT_MS", "600000")];
    let worker = Worker::start(&[&[("ORIGINS", &*origin.url)], &timeouts[..]].concat());
    let (begun, descriptors) = (worker.memory_kib(), worker.descriptors());
    let address = worker.url.trim_start_matches("http://").to_owned();
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", shared().full_key);
    let insert = raw::request("POST", POSTS.as_bytes(), &headers, br#"{"title": "x"}"#);
    let leave = || async {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        stream.set_zero_linger().expect("a socket");
        // An error is ignored: the worker may have refused the request already.
        let _ = stream.write_all(&insert).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for _ in 0..LEAVING / 500 {
        join_all((0..500).map(|_| leave())).await;
        let read = Call::new(&worker.url, Method::GET, "/healthz");
        assert_eq!(read.send().await.payload()["status"], "ok");
    }
    let grown = worker.memory_kib().saturating_sub(begun);
    assert!(grown < GROWTH_MAX_KIB, "{grown} KiB more than {begun} KiB");
    eventually("all requests are aborted, and their descriptors closed", WAIT_MAX, || async {
        (origin.left() == origin.asked().len() && worker.descriptors() < descriptors + 100).then_some(())
    })
    .await;
    origin.turn(Manner::Well);
    let read = Call::new(&worker.url, Method::GET, POSTS).key(&shared().read_key);
    assert_eq!(read.send().await.payload(), "a");
}
