//! An origin of minimal cost: it answers every request with the same record, as Selkie's origin would, from a thread of
//! this process, so that measurements show the worker's cost.
//!
//! Supports only requests without a body.

use std::{io, net::SocketAddr};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// The path whose answer is large; every other path answers with one record.
pub(super) const LARGE_PATH: &str = "/api/v1/crud/bench/large";

const HEAD_MAX_BYTES: usize = 16 * 1024;
const PIECE_BYTES: usize = 64 * 1024;
const HEADERS: usize = 64;

/// Body of an answer with a record.
const RECORD: &str = r#"{"success":true,"payload":[{"id":4711,"title":"Notes from the harbour, no. 4711","body":"The tide was out & the boats lay still. Wait for the evening, said the old man on the bench, and went on mending his net. Nobody asked him how long he had been waiting himself. The bell of the ferry rang twice, as it does when there is fog, and the gulls rose and settled again on the same posts.","category":"c1","price":"34.50","is_published":true,"views":37,"published_at":"2020-01-04T06:31:00"}],"error":null,"meta":null}"#;

/// Headers that Selkie's origin sends with a record.
const HEADERS_OF_ALL: &str = "content-type: application/json\r\naccess-control-allow-origin: *\r\n\
    access-control-expose-headers: Accept-Ranges, Allow, Content-Disposition, Content-Length, Content-Range, ETag, \
    Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, Selkie-Media-Id, Selkie-Media-Url, \
    Server-Timing, WWW-Authenticate, X-Request-Id\r\nserver-timing: db;dur=0.21, origin;dur=0.35\r\n\
    date: Sat, 21 Nov 2026 14:44:51 GMT\r\n";

/// Starts the origin on a thread for as long as this process lives. [`LARGE_PATH`] answers `large_bytes`.
pub(super) fn start(large_bytes: u64) -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            while let Ok((stream, _)) = listener.accept().await {
                // An error means that the caller has closed its connection.
                tokio::spawn(serve(stream, large_bytes));
            }
        });
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream, large_bytes: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; HEAD_MAX_BYTES];
    let mut filled = 0;
    let mut answer = Vec::new();
    loop {
        let asked = head(&buffer[..filled]).map_err(io::Error::other)?;
        let Some(asked) = asked else {
            if filled == buffer.len() {
                return Err(io::Error::other("the head of a request is too long"));
            }
            match stream.read(&mut buffer[filled..]).await? {
                0 => return Ok(()),
                bytes => filled += bytes,
            }
            continue;
        };
        answer.clear();
        answer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        answer.extend_from_slice(HEADERS_OF_ALL.as_bytes());
        answer.extend_from_slice(&asked.request_id);
        if asked.is_large {
            // Chunked, like an answer of many rows, whose length is unknown.
            answer.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            stream.write_all(&answer).await?;
            send_large(&mut stream, large_bytes).await?;
        } else {
            answer.extend_from_slice(format!("content-length: {}\r\n\r\n", RECORD.len()).as_bytes());
            answer.extend_from_slice(RECORD.as_bytes());
            stream.write_all(&answer).await?;
        }
        buffer.copy_within(asked.bytes..filled, 0);
        filled -= asked.bytes;
    }
}

struct Asked {
    bytes: usize,
    is_large: bool,
    /// Header line that repeats the request's id; empty without one.
    request_id: Vec<u8>,
}

fn head(bytes: &[u8]) -> Result<Option<Asked>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(bytes) = request.parse(bytes)? else {
        return Ok(None);
    };
    let request_id = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("x-request-id"));
    Ok(Some(Asked {
        bytes,
        is_large: request.path == Some(LARGE_PATH),
        request_id: request_id.map_or_else(Vec::new, |header| [b"x-request-id: ", header.value, b"\r\n"].concat()),
    }))
}

async fn send_large(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let text = RECORD.as_bytes().repeat(PIECE_BYTES / RECORD.len() + 1);
    let mut left = bytes;
    while left > 0 {
        let length = left.min(PIECE_BYTES as u64);
        stream.write_all(format!("{length:x}\r\n").as_bytes()).await?;
        stream.write_all(&text[..usize::try_from(length).unwrap_or(0)]).await?;
        stream.write_all(b"\r\n").await?;
        left -= length;
    }
    stream.write_all(b"0\r\n\r\n").await
}
