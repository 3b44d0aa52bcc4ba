//! Requests with invalid targets, methods or headers: each is refused with its code, and the service continues.

use crate::host::{Call, Host};
use crate::raw::{RawAnswer, converse, exchange, request};
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use shared::error::ErrorCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

cases! {
    Both: [
        paths_that_lead_nowhere_are_not_found,
        wrong_methods_are_told_the_right_ones,
        headers_that_make_no_sense_break_nothing,
        a_body_on_a_get_is_not_read,
        head_is_get_without_a_body,
        requests_that_are_no_http_break_nothing,
        a_query_string_of_noise_is_refused,
        broken_percent_encoding_is_refused,
    ],
    Origin: [
        a_connection_whose_body_is_not_awaited_is_closed_with_notice,
        a_stream_whose_body_is_not_awaited_is_not_reset,
        a_connection_outlasts_a_refused_body,
    ],
}

async fn raw(host: Host, method: &str, target: &[u8], body: &[u8]) -> Option<RawAnswer> {
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", shared().full_key);
    exchange(host.url(), &request(method, target, &headers, body)).await
}

async fn broken_percent_encoding_is_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v TEXT)"]).await;
    let base = format!("/api/v1/crud/{}", db.name);
    for broken in ["%", "%4", "%zz", "%ff", "%c3", "%ed%a0%80", "%F5%80%80%80", "%c0%af"] {
        for target in [
            format!("{base}/t{broken}"),
            format!("{base}/t/{broken}"),
            format!("/api/v1/crud/{broken}/t"),
            format!("{base}/t?query[v]={broken}"),
            format!("{base}/t?{broken}=1"),
            format!("{base}/t?limit={broken}"),
        ] {
            let answer = raw(host, "GET", target.as_bytes(), b"").await;
            let answer = answer.unwrap_or_else(|| panic!("no answer to {target}"));
            assert!(
                (400..500).contains(&answer.status),
                "{target}: {} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
            answer.code();
        }
    }
    for bytes in [&b"\xff"[..], b"\xc3", b"\xc3\xbc"] {
        for place in [&b"/t"[..], b"/t/", b"/t?query[v]=", b"/t?"] {
            let target = [base.as_bytes(), place, bytes].concat();
            // Any server on the way may refuse non-ASCII bytes in a request line.
            if let Some(answer) = raw(host, "GET", &target, b"").await {
                assert!(answer.status < 500, "{target:?}: {}", answer.status);
            }
        }
    }
}

async fn paths_that_lead_nowhere_are_not_found(host: Host) {
    for path in [
        "/",
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v1/crud//",
        "/api/v1/crud/demo//",
        "/api/v1/crud/demo/posts//",
        "/api/v1/crud/demo/posts/1/extra",
        "/api/v1/crud//posts",
        "/api/v1/crud/demo//1",
        "/api/v1/sql/x",
        "/api/v1/batch/x",
        "/API/V1/crud/demo/posts",
        "//api/v1/crud/demo/posts",
        "/api/v2/sql",
        "/favicon.ico",
        "/.env",
        "/api/v1/crud/demo/posts/_schema/x",
        "/healthz/",
        "/healthz/x",
        "/api/v1/nothing?x=1",
    ] {
        let answer = host.get(path).send().await;
        answer.refused(ErrorCode::RouteNotFound);
    }
    for target in [
        "/api/v1/crud/demo/../../../etc/passwd",
        "/api/v1/crud/demo/%2e%2e/x",
        "/./api/v1/sql",
        "/api/v1/crud/demo/posts/..%2f..%2f",
    ] {
        if let Some(answer) = raw(host, "GET", target.as_bytes(), b"").await {
            assert!((400..500).contains(&answer.status), "{target}: {}", answer.status);
        }
    }
}

async fn wrong_methods_are_told_the_right_ones(host: Host) {
    let table = "/api/v1/crud/demo/posts";
    for (method, path, allowed) in [
        (Method::POST, "/api/v1/crud/demo/posts/1", &["GET", "PUT", "PATCH", "DELETE"][..]),
        (Method::OPTIONS, "/api/v1/crud/demo/posts/query", &["GET", "POST", "PUT", "PATCH", "DELETE"]),
        (Method::GET, "/api/v1/sql", &["POST"]),
        (Method::PUT, "/api/v1/sql", &["POST"]),
        (Method::DELETE, "/api/v1/sql", &["POST"]),
        (Method::GET, "/api/v1/batch", &["POST"]),
        (Method::POST, "/healthz", &["GET"]),
        (Method::DELETE, "/readyz", &["GET"]),
        (Method::PUT, "/api/v1/crud/demo/posts/_schema", &["GET"]),
        (Method::TRACE, table, &["GET"]),
        (Method::from_bytes(b"PROPFIND").unwrap(), table, &["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    ] {
        let answer = host.call(method.clone(), path).send().await;
        answer.refused(ErrorCode::MethodNotAllowed);
        let allow = answer.header("allow").unwrap_or_default().to_owned();
        for name in allowed {
            assert!(allow.split(',').any(|one| one.trim() == *name), "{method} {path}: Allow: {allow}");
        }
        assert!(!allow.split(',').any(|one| one.trim() == method.as_str()), "{method} {path}: Allow: {allow}");
    }
}

async fn headers_that_make_no_sense_break_nothing(host: Host) {
    let long = "x".repeat(6_000);
    for (name, value) in [
        ("accept", "nonsense"),
        ("accept", "image/png"),
        ("accept-encoding", "nonsense"),
        ("range", "bytes=5-1"),
        ("if-none-match", "\"x\", W/"),
        ("content-encoding", "gzip"),
        ("cookie", &long),
        ("x-forwarded-for", "' OR 1=1"),
        ("origin", "null"),
        ("prefer", "return=everything"),
        ("expect", "100-continue"),
        ("user-agent", ""),
        ("accept-language", &long),
    ] {
        let answer = host.get("/api/v1/crud/demo/posts?limit=1").header(name, value).send().await;
        assert!(answer.status.as_u16() < 500, "{name}: {value}: {answer}");
    }
    let gzip = host
        .call(Method::POST, "/api/v1/sql")
        .bytes("{\"query\":\"SELECT 1\"}")
        .header("content-encoding", "gzip")
        .send()
        .await;
    assert!(gzip.status.as_u16() < 500, "{gzip}");
}

async fn a_query_string_of_noise_is_refused(host: Host) {
    for noise in [
        "&",
        "&&&",
        "=",
        "=1",
        "[]=1",
        "[",
        "]",
        "query[",
        "query]=1",
        "query[a]b=1",
        "query[a][=1",
        "query[]=1",
        "order[field",
        "?limit=1",
        "limit=1;page=2",
        "query[a][b][c][d]=1",
        "limit[]=1",
        "limit[a]=1",
    ] {
        let answer = host.get(&format!("/api/v1/crud/demo/posts?{noise}")).send().await;
        let only_separators = noise.chars().all(|c| c == '&');
        let refused = answer.status == 400 || (only_separators && answer.code() == "ok");
        assert!(refused, "{answer}");
    }
}

async fn a_body_on_a_get_is_not_read(host: Host) {
    let answer = host.get("/api/v1/crud/demo/posts?limit=1").bytes("{\"limit\": 5").send().await;
    assert_eq!(answer.payload().as_array().unwrap().len(), 1);
}

async fn a_connection_whose_body_is_not_awaited_is_closed_with_notice(host: Host) {
    let (key, body) = (format!("Authorization: Bearer {}\r\n", shared().full_key), "{\"query\": \"SELECT 1\"}");
    let next = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (method, key, sent, status, is_closed) in [
        ("POST", "", "", 401, true),
        ("GET", &*key, "", 405, true),
        // After `100 Continue` the body is read, and the connection serves the next request.
        ("POST", &*key, body, 200, false),
        ("POST", &*key, &"x".repeat(body.len()), 400, false),
    ] {
        let head = format!(
            "{method} /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{key}\
             Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            body.len()
        );
        let request = if sent.is_empty() { head } else { [&head, sent, next].concat() };
        let bytes = converse(host.url(), request.as_bytes(), |_| false).await;
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let answers: Vec<_> = text.split("http/1.1 ").skip(1).collect();
        let (awaited, answers) = answers.split_at(usize::from(!is_closed));
        assert!(awaited.iter().all(|answer| answer.starts_with("100")), "{text}");
        assert!(answers[0].starts_with(&status.to_string()), "{text}");
        assert_eq!(answers[0].contains("\r\nconnection: close\r\n"), is_closed, "{text}");
        assert_eq!(answers.len(), if is_closed { 1 } else { 2 }, "{text}");
    }
}

/// Over HTTP/2, curl takes the reset of such a stream for an empty response.
async fn a_stream_whose_body_is_not_awaited_is_not_reset(host: Host) {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const END_STREAM_OR_ACK: u8 = 1;
    const END_HEADERS: u8 = 4;
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, length(payload), kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/api/v1/sql"),
        (":authority", "x"),
        ("content-length", "9"),
        ("expect", "100-continue"),
    ];
    let field = |(name, value): (&str, &str)| {
        let [name, value] = [name, value].map(str::as_bytes);
        [&[0, length(name)], name, &[length(value)], value].concat()
    };
    let fields: Vec<u8> = fields.into_iter().flat_map(field).collect();
    let (settings, head) = (frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, &fields));
    let mut connection = TcpStream::connect(host.url().trim_start_matches("http://")).await.expect("a connection");
    let request = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings, &head].concat();
    connection.write_all(&request).await.expect("a request");
    let mut kinds = Vec::new();
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await.expect("a frame");
        let [_, high, low, kind, flags, .., stream] = head;
        let mut payload = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        connection.read_exact(&mut payload).await.expect("a payload");
        let is_last = flags & END_STREAM_OR_ACK != 0;
        match kind {
            PING if is_last => break,
            DATA if is_last => connection.write_all(&frame(PING, 0, 0, &[0; 8])).await.expect("a ping"),
            _ => {}
        }
        if stream == 1 {
            kinds.push(kind);
        }
    }
    assert_eq!(kinds, [HEADERS, DATA]);
}

async fn a_connection_outlasts_a_refused_body(host: Host) {
    let body = "x".repeat(1024 * 1024);
    let next = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for path in ["/api/v1/sql", "/media/default/a", "/docs", "/healthz", "/nothing"] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let bytes = converse(host.url(), [&head, &body, next].concat().as_bytes(), |_| false).await;
        let text = String::from_utf8_lossy(&bytes);
        let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..1]).collect();
        assert_eq!(statuses, ["4", "2"], "{path}: {text}");
    }
}

async fn head_is_get_without_a_body(host: Host) {
    for path in ["/healthz", "/api/v1/crud/demo/posts?limit=1", "/api/v1/crud/demo/posts/1"] {
        let answer = host.call(Method::HEAD, path).send().await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.is_empty(), "{path}");
    }
    let refused = Call::new(host.url(), Method::HEAD, "/api/v1/crud/demo/posts").send().await;
    assert_eq!(refused.status, 401);
}

async fn requests_that_are_no_http_break_nothing(host: Host) {
    let requests: [&[u8]; 8] = [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\nConnection: close\r\n\r\n",
        b"POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\nConnection: close\r\n\r\n123456",
        b"POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n\r\n",
    ];
    for request in requests {
        // It is also right if the server waits for more bytes; the client then closes the connection.
        let exchange = exchange(host.url(), request);
        if let Ok(Some(answer)) = tokio::time::timeout(std::time::Duration::from_secs(2), exchange).await {
            assert!((400..=505).contains(&answer.status), "{request:?}: {}", answer.status);
        }
    }
    host.get("/healthz").send().await.payload();
}
