//! Request smuggling: requests whose end two servers would find at different places. The host must find one end and
//! answer once, or close the connection; it must never take the hidden part for a request.

use crate::host::Host;
use crate::service::shared;
use crate::worker::Worker;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

cases! {
    Own: [a_request_with_two_ends_hides_no_other_one],
}

/// The hidden request. An answer to it would repeat the path.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

/// The time without an answer after which the server counts as having refused the request.
const SILENCE: Duration = Duration::from_secs(2);

/// The shapes of requests for which workerd also answers the hidden part: workerd parses requests before the worker
/// gets them, and the worker can't close the connection. A caller only gets two answers to requests of its own. A proxy
/// in front of workerd must refuse or rewrite such requests, as usual proxies do. If both ends are visible in the head,
/// the edge refuses the request too.
const WORKERD_READS_ON: [&str; 5] = [
    "length, then chunks",
    "chunks, then length",
    "a space before the coding's colon",
    "a folded length",
    "a chunk whose line ends in LF alone",
];

/// The number of the shapes above that the worker can detect.
const TOLD_BY_THE_WORKER: usize = 3;

/// Returns the header lines after `Host` and the body of each shape, with its name.
fn shapes() -> Vec<(&'static str, String)> {
    let hidden = HIDDEN.len();
    let chunks = format!("0\r\n\r\n{HIDDEN}");
    let all = chunks.len();
    let with = |lines: &str, body: &str| format!("{lines}\r\n\r\n{body}");
    let chunked = "Transfer-Encoding: chunked";
    let many = (0..2_000).fold(String::new(), |lines, n| format!("{lines}X-{n}: 1\r\n"));
    vec![
        ("two lengths", with(&format!("Content-Length: 0\r\nContent-Length: {hidden}"), HIDDEN)),
        ("two lengths, the other way", with(&format!("Content-Length: {hidden}\r\nContent-Length: 0"), HIDDEN)),
        ("a list of lengths", with(&format!("Content-Length: 0, {hidden}"), HIDDEN)),
        ("a length with a sign", with("Content-Length: +0", HIDDEN)),
        ("a negative length", with("Content-Length: -1", HIDDEN)),
        ("a length in hexadecimal", with("Content-Length: 0x0", HIDDEN)),
        (
            "a length that is too long",
            with("Content-Length: 00000000000000000000000000000000018446744073709551616", HIDDEN),
        ),
        ("length, then chunks", with(&format!("Content-Length: {all}\r\n{chunked}"), &chunks)),
        ("chunks, then length", with(&format!("{chunked}\r\nContent-Length: {all}"), &chunks)),
        ("chunks, then identity", with("Transfer-Encoding: chunked, identity", &chunks)),
        (
            "identity, then chunks",
            with("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", &chunks),
        ),
        ("an unknown coding", with(&format!("Transfer-Encoding: xchunked\r\nContent-Length: {all}"), &chunks)),
        ("a coding in quotes", with(&format!("Transfer-Encoding: \"chunked\"\r\nContent-Length: {all}"), &chunks)),
        ("a coding behind a tab", with(&format!("Transfer-Encoding:\x0bchunked\r\nContent-Length: {all}"), &chunks)),
        ("a folded length", with(&format!("X-A: b\r\n Content-Length: {hidden}"), HIDDEN)),
        ("a folded coding", with(&format!("Transfer-Encoding:\r\n chunked\r\nContent-Length: {all}"), &chunks)),
        ("a space before the colon", with(&format!("Content-Length : {hidden}"), HIDDEN)),
        (
            "a space before the coding's colon",
            with(&format!("Transfer-Encoding : chunked\r\nContent-Length: {all}"), &chunks),
        ),
        ("a line that ends in LF alone", with(&format!("X-A: b\nContent-Length: {hidden}"), HIDDEN)),
        ("a line that ends in CR alone", with(&format!("X-A: b\rContent-Length: {hidden}"), HIDDEN)),
        ("a NUL in a value", with(&format!("X-A: b\0\r\nContent-Length: {hidden}"), HIDDEN)),
        ("a NUL in a name", with(&format!("Content-Length\0: {hidden}"), HIDDEN)),
        ("a name without a colon", with(&format!("Content-Length {hidden}"), HIDDEN)),
        ("a head that is too large", with(&format!("X-A: {}", "a".repeat(300_000)), HIDDEN)),
        ("a head of too many lines", with(&format!("{many}Content-Length: {hidden}"), HIDDEN)),
        ("a negative chunk", with(chunked, &format!("-1\r\n\r\n{HIDDEN}"))),
        ("a chunk in C's hexadecimal", with(chunked, &format!("0x0\r\n\r\n{HIDDEN}"))),
        ("a chunk of two numbers", with(chunked, &format!("0 0\r\n\r\n{HIDDEN}"))),
        ("a chunk beyond counting", with(chunked, &format!("10000000000000000\r\n\r\n{HIDDEN}"))),
        ("a chunk whose line ends in LF alone", with(chunked, &format!("0\n\n{HIDDEN}"))),
        ("a chunk longer than it says", with(chunked, &format!("1\r\nab\r\n0\r\n\r\n{HIDDEN}"))),
        ("a line break in a chunk's extension", with(chunked, &format!("0;a\n\r\n{HIDDEN}"))),
        ("an endless extension", with(chunked, &format!("0;{}\r\n\r\n{HIDDEN}", "a".repeat(300_000)))),
    ]
}

/// Returns everything that the server sends until it closes or is silent for [`SILENCE`].
async fn answers(url: &str, request: &[u8]) -> String {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // An error is ignored: the server may refuse and close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    while let Ok(Ok(1..)) = tokio::time::timeout(SILENCE, stream.read_buf(&mut bytes)).await {}
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn a_request_with_two_ends_hides_no_other_one(_: Host) {
    let worker = Worker::start(&[("ORIGINS", &shared().origin)]);
    let mut wrong = Vec::new();
    for url in [&shared().origin, &worker.url] {
        let key = &shared().read_key;
        let starts = [
            format!("POST /api/v1/crud/demo/posts/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"),
            "POST /nowhere HTTP/1.1\r\nHost: x\r\n".to_owned(),
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: x\r\n".to_owned(),
        ];
        let asked = shapes().into_iter().flat_map(|(name, rest)| {
            let starts = starts.each_ref();
            starts.map(|start| (name, format!("{start}{rest}")))
        });
        let asked = asked.map(async |(name, request)| {
            let text = answers(url, request.as_bytes()).await;
            let count = text.matches("HTTP/1.1 ").count();
            let is_told = WORKERD_READS_ON[..TOLD_BY_THE_WORKER].contains(&name);
            let has_body = request.starts_with("POST");
            let holds = if *url != worker.url || !WORKERD_READS_ON.contains(&name) {
                count <= 1 && !text.contains("smuggled")
            } else {
                count <= 2 && (!is_told || !has_body || text.starts_with("HTTP/1.1 400 "))
            };
            (!holds).then(|| format!("{url} {name}: {request:.20} → {count} answers, {text:.300}"))
        });
        wrong.extend(futures_util::future::join_all(asked).await.into_iter().flatten());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
