//! Hand-written HTTP, for requests that no client library would send, and for answers that no client library would show
//! unchanged.

use crate::host::Host;
use shared::error::ErrorCode;
use std::io::{Read, Write};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const EXCHANGE_MAX: Duration = Duration::from_secs(30);

pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawAnswer {
    /// Returns the code of a refusal. Panics if the body is no error envelope.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        let body: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("no envelope, but {}: {text:?}", self.head));
        assert_eq!(body["success"], false, "{text}");
        let code = body["error"]["code"].as_str().unwrap_or_else(|| panic!("no code: {text}"));
        let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
        let known = known.unwrap_or_else(|| panic!("no code of the table: {text}"));
        let is_edge = crate::ledger::is_edges(&self.head);
        crate::ledger::note(if is_edge { Host::Edge } else { Host::Origin }, *known);
        code.to_owned()
    }
}

/// Sends bytes to `http://address` and reads one answer. `None` if the server closes without one.
pub(crate) async fn exchange(url: &str, request: &[u8]) -> Option<RawAnswer> {
    parse(&converse(url, request, is_whole).await)
}

/// Sends bytes and reads until `is_enough` returns true or the server closes: not every server honours `Connection:
/// close`.
pub(crate) async fn converse(url: &str, request: &[u8], is_enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // An error is ignored: the server may refuse the request and close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let reading = async {
        while !is_enough(&answer) {
            match stream.read_buf(&mut answer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    };
    let outcome = tokio::time::timeout(EXCHANGE_MAX, reading).await;
    let start = String::from_utf8_lossy(&request[..request.len().min(200)]);
    assert!(outcome.is_ok(), "no end of the answer to {start:?}");
    answer
}

pub(crate) struct Wire {
    stream: TcpStream,
}

impl Wire {
    pub(crate) async fn open(url: &str) -> Self {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.expect("a connection");
        Self { stream }
    }

    /// Sends a piece. Ignores an error: the server may already have answered and closed.
    pub(crate) async fn send(&mut self, piece: &[u8]) {
        let sending = tokio::time::timeout(EXCHANGE_MAX, self.stream.write_all(piece));
        let _ = sending.await.expect("the other side takes the piece");
    }

    /// Tells the server that nothing more will be sent. The answer can still be read.
    pub(crate) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Breaks the connection, which plain workerd notices at once, unlike a connection that is closed.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }

    /// Reads the answer to a complete request. `None` if the server closes without one.
    pub(crate) async fn answer(&mut self) -> Option<RawAnswer> {
        let mut answer = Vec::new();
        let reading = async {
            while !is_whole(&answer) {
                match self.stream.read_buf(&mut answer).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        };
        let outcome = tokio::time::timeout(EXCHANGE_MAX, reading).await;
        assert!(outcome.is_ok(), "no end of the answer");
        parse(&answer)
    }
}

/// Returns whether `answer` is complete.
fn is_whole(answer: &[u8]) -> bool {
    let Some(RawAnswer { status, head, body }) = parse(answer) else {
        return false;
    };
    if status == 204 {
        return true;
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    match length {
        Some(length) => body.len() >= length,
        None => head.contains("transfer-encoding: chunked") && answer.ends_with(b"0\r\n\r\n"),
    }
}

/// Builds a request with `Connection: close`; `target` and `headers` are sent unchanged.
pub(crate) fn request(method: &str, target: &[u8], headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} ").into_bytes();
    bytes.extend_from_slice(target);
    bytes.extend_from_slice(b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
    bytes.extend_from_slice(headers.as_bytes());
    if !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Parses an answer as far as it was received; `None` if its head is incomplete.
pub(crate) fn parse(answer: &[u8]) -> Option<RawAnswer> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let rest = &answer[end + 4..];
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { dechunk(rest) } else { rest.to_vec() };
    Some(RawAnswer { status, head, body })
}

/// Decodes a chunked body as far as it was received.
fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && rest.len() >= line + 2 + size) else {
            break;
        };
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = rest.get(line + 2 + size + 2..).unwrap_or_default();
    }
    body
}

/// Returns the first bytes of an answer, for use before a runtime exists.
pub(crate) fn status_line_blocking(address: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(request)?;
    let mut answer = vec![0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Sends an incomplete request until `is_held` says that the server has received it. Repeats the request if it is
/// answered before that. Returns the task that waits for the answer.
pub(crate) async fn leave_open(
    url: &str,
    request: &[u8],
    is_held: impl AsyncFn() -> bool,
) -> JoinHandle<Option<RawAnswer>> {
    let send = || {
        let (url, request) = (url.to_owned(), request.to_owned());
        tokio::spawn(async move { exchange(&url, &request).await })
    };
    let deadline = tokio::time::Instant::now() + EXCHANGE_MAX;
    let mut sent = send();
    loop {
        if is_held().await && !sent.is_finished() {
            return sent;
        }
        if sent.is_finished() {
            sent = send();
        }
        let is_late = tokio::time::Instant::now() > deadline;
        assert!(!is_late, "{url} did not take the request");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
