//! Request heads that are refused for any operation: both hosts answer the same error, which is not retryable.

use crate::host::Host;
use crate::raw::{RawAnswer, exchange};
use crate::service::shared;
use crate::worker::Worker;
use serde_json::Value;
use shared::error::ErrorCode::{self, HeadersTooLarge, InvalidBody, InvalidRequest, UriTooLong};
use std::fmt::Write as _;

cases! {
    Own: [
        a_head_that_is_not_http_is_the_callers_fault,
        headers_up_to_the_limit_are_taken,
        dot_segments_are_resolved,
        an_odd_origin_makes_a_preflight_too,
    ],
    Both: [an_index_in_brackets_is_written_as_digits],
}

/// The URLs of both hosts. The edge runs in plain workerd, since a proxy in front of it would refuse some of these
/// requests itself.
struct Hosts {
    worker: Worker,
}

impl Hosts {
    async fn open() -> Self {
        let start = || Worker::start(&[("ORIGINS", &shared().origin)]);
        let worker = tokio::task::spawn_blocking(start).await.expect("a worker");
        Self { worker }
    }

    fn urls(&self) -> [&str; 2] {
        [&shared().origin, &self.worker.url]
    }
}

const HYPER_URL_MAX_BYTES: usize = u16::MAX as usize - 1;

const POSTS: &str = "/api/v1/crud/demo/posts";

/// Returns a request with a key; its target and further headers are sent unchanged.
fn request(method: &str, target: &[u8], headers: &[u8], body: &[u8]) -> Vec<u8> {
    let key = &shared().read_key;
    let head = format!(" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n");
    [method.as_bytes(), b" ", target, head.as_bytes(), headers, b"\r\n", body].concat()
}

fn get(target: &[u8], headers: &[u8]) -> Vec<u8> {
    request("GET", target, headers, b"")
}

async fn answered(url: &str, request: &[u8]) -> RawAnswer {
    let answer = exchange(url, request).await;
    let start = &request[..request.len().min(300)];
    answer.unwrap_or_else(|| panic!("{url}: no answer to {}", String::from_utf8_lossy(start)))
}

fn crowd(count: usize) -> Vec<u8> {
    let lines = (0..count).fold(String::new(), |mut lines, n| {
        let _ = write!(lines, "X-{n}: 1\r\n");
        lines
    });
    lines.into_bytes()
}

#[track_caller]
fn is_refused(answer: &RawAnswer, code: ErrorCode, what: &str) {
    let body: Value =
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{what}: no envelope, but {}", answer.head));
    let error = &body["error"];
    assert_eq!(
        (answer.status, error["code"].as_str(), &error["retryable"]),
        (code.status(), Some(code.as_str()), &Value::Bool(false)),
        "{what}: {body}"
    );
    let id = error["requestId"].as_str().expect("an id");
    let head = answer.head.to_lowercase();
    for header in [
        &format!("x-request-id: {id}"),
        "server-timing: ",
        "content-type: application/json",
        "access-control-allow-origin: *",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(header), "{what}: no {header} in {head}");
    }
}

async fn a_head_that_is_not_http_is_the_callers_fault(_: Host) {
    let record = format!("{POSTS}/1");
    let record = record.as_bytes();
    let twin = format!("{POSTS}/query");
    // The origin's HTTP server refuses some of these requests by itself, without an envelope.
    let mut unparsed = vec![("101 headers".to_owned(), get(record, &crowd(101)), HeadersTooLarge)];
    let mut requests = vec![
        ("90 headers".to_owned(), get(record, &crowd(90)), HeadersTooLarge),
        (
            "a header of 70 kB".to_owned(),
            get(record, &[b"Cookie: ", &[b'a'; 70_000][..], b"\r\n"].concat()),
            HeadersTooLarge,
        ),
        (
            "33 names in Connection".to_owned(),
            get(record, &[b"Connection: x", &b",x".repeat(32)[..], b"\r\n"].concat()),
            HeadersTooLarge,
        ),
        (
            "trailers".to_owned(),
            request(
                "POST",
                twin.as_bytes(),
                b"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n",
                b"2\r\n{}\r\n0\r\n\r\n",
            ),
            InvalidBody,
        ),
    ];
    for byte in (1..=0x1f_u8).chain([0x7f]).filter(|byte| !b"\t\r\n".contains(byte)) {
        for method in ["GET", "POST", "DELETE"] {
            let request = request(method, record, &[b"X-A: a", &[byte][..], b"b\r\n"].concat(), b"");
            unparsed.push((format!("{method}: {byte:#x} in a value"), request, InvalidRequest));
        }
    }
    for byte in [0x80_u8, 0xc3, 0xff] {
        let request = get(record, &[b"X-", &[byte][..], b": b\r\n"].concat());
        unparsed.push((format!("{byte:#x} in a name"), request, InvalidRequest));
    }
    for byte in [0x01_u8, 0x7f, b'"', b'<', b'>', b'\\', b'`', 0x80, 0xff] {
        for start in [record, &[record, b"?limit="].concat(), b"/readyz?", b"/nowhere"] {
            let request = get(&[start, &[byte], b"x"].concat(), b"");
            let what = format!("{byte:#x} behind {}", String::from_utf8_lossy(start));
            let hyper_takes: &[u8] = if start.contains(&b'?') { b"\\`" } else { b"\"\\" };
            let requests = if hyper_takes.contains(&byte) { &mut requests } else { &mut unparsed };
            requests.push((what, request, InvalidRequest));
        }
    }
    for length in [17_000, 70_000, 120_000] {
        for path in ["/readyz", "/healthz", "/media/default/x", "/nowhere", POSTS] {
            let target = format!("{path}?{}", "a".repeat(length));
            let what = format!("{length} bytes behind {path}");
            let requests = if length > HYPER_URL_MAX_BYTES { &mut unparsed } else { &mut requests };
            requests.push((what, get(target.as_bytes(), b""), UriTooLong));
        }
    }
    let hosts = Hosts::open().await;
    for (what, request, code) in requests {
        for url in hosts.urls() {
            let answer = answered(url, &request).await;
            is_refused(&answer, code, &format!("{url}: {what}"));
        }
    }
    for (what, request, code) in unparsed {
        is_refused(&answered(&hosts.worker.url, &request).await, code, &what);
        let answer = answered(&shared().origin, &request).await;
        assert_eq!((answer.status, answer.body.len()), (code.status(), 0), "{what}: {}", answer.head);
        assert!(answer.head.to_lowercase().contains("connection: close"), "{what}: {}", answer.head);
    }
}

async fn headers_up_to_the_limit_are_taken(_: Host) {
    let hosts = Hosts::open().await;
    let record = format!("{POSTS}/1");
    for headers in [
        crowd(70),
        // Several lines with the same name count as one header.
        b"X-A: 1\r\n".repeat(90),
        [b"Cookie: ", &[b'a'; 60_000][..], b"\r\n"].concat(),
        b"X-A: \xff\t\r\nTrailer:\r\n".to_vec(),
    ] {
        for url in hosts.urls() {
            let answer = answered(url, &get(record.as_bytes(), &headers)).await;
            assert_eq!(answer.status, 200, "{url}: {}", answer.head);
        }
    }
}

async fn dot_segments_are_resolved(_: Host) {
    let hosts = Hosts::open().await;
    for (target, status) in [
        ("/./api/v1/crud/demo/posts/1", 200),
        ("/api/v1/crud/demo/posts/./1", 200),
        ("/api/v1/crud/demo/posts/../posts/1", 200),
        ("/api/v1/crud/demo/posts/%2e/1", 200),
        ("/api/v1/crud/demo/posts/%2E%2e/posts/1", 200),
        ("/api/v1/crud/demo/nope/.%2e/posts/1?limit=/../x", 400),
        ("/api/v1/../../healthz", 200),
        ("/../readyz", 200),
        ("/api/v1/crud/demo/posts/1/..?limit=1", 200),
        ("/api/v1/crud/demo/posts/.?limit=1", 200),
        ("/api/v1/crud/demo/posts/...", 404),
        ("/api/v1/crud/demo/posts/%2e%2e%2fposts", 404),
        ("/media/default/../../readyz", 200),
    ] {
        for url in hosts.urls() {
            let answer = answered(url, &get(target.as_bytes(), b"")).await;
            let body = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, status, "{url}{target}: {body}");
        }
    }
}

async fn an_odd_origin_makes_a_preflight_too(_: Host) {
    let hosts = Hosts::open().await;
    let preflight = |origin: &[u8], method: &[u8]| {
        let start = format!("OPTIONS {POSTS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        [start.as_bytes(), b"Origin: ", origin, b"\r\nAccess-Control-Request-Method: ", method, b"\r\n\r\n"].concat()
    };
    for (origin, method, status) in [
        (&b"https://a.test"[..], &b"PUT"[..], 204),
        (b"null", b"PUT", 204),
        (b"https://\xc3\xbc.test", b"PUT", 204),
        (b"\xff", b"PUT", 204),
        (b"a, b", b"PUT", 204),
        (b"a\r\nOrigin: b", b"PUT", 204),
        (b"a\tb", b"no method", 204),
        (b"https://a.test", b"\xff", 204),
        // Some HTTP parsers treat an empty header as missing.
        (b"", b"PUT", 401),
        (b"\x01", b"PUT", 400),
    ] {
        for url in hosts.urls() {
            let answer = answered(url, &preflight(origin, method)).await;
            let origin = String::from_utf8_lossy(origin);
            assert_eq!(answer.status, status, "{url} {origin}: {}", answer.head);
        }
    }
}

async fn an_index_in_brackets_is_written_as_digits(host: Host) {
    let read = |query: &str| host.get(&format!("{POSTS}?limit=1&{query}")).send();
    read("selectFields[0]=id").await.payload();
    for query in ["%2B0", "00", "-0", "%200", "0x0"] {
        let answer = read(&format!("selectFields[{query}]=id")).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
}
