//! A proxy between a worker and a real origin that forwards every byte unchanged and records the requests. Knows only
//! as much HTTP/1.1 as it takes to find where a request ends.

use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum header lines of a request, as in the origin.
const HEADERS_MAX_COUNT: usize = 128;

/// A request that the proxy has forwarded.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query of the request.
    pub(crate) target: String,
    /// Header names in lower case and values, in their order.
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the body so far, without chunk headers.
    pub(crate) body_bytes: u64,
    /// Whether the whole request was forwarded.
    pub(crate) is_complete: bool,
}

impl Seen {
    /// Returns whether a client sent the request. The worker sends health checks if an answer is slow.
    fn is_a_callers(self: &&Self) -> bool {
        self.target != "/healthz"
    }

    /// Returns the value of the first header with this name, given in lower case; `None` if there is none.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Record {
    connections: usize,
    requests: Vec<Seen>,
}

/// A running proxy; dropping it closes all connections.
pub(crate) struct RecordingProxy {
    /// Base URL of the proxy: `http://127.0.0.1:port`.
    pub(crate) url: String,
    record: Arc<Mutex<Record>>,
    listening: AbortHandle,
}

impl RecordingProxy {
    /// Starts a proxy in front of the server at `http://host:port`.
    pub(crate) async fn before(url: &str) -> Self {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let record = Arc::new(Mutex::new(Record::default()));
        let shared = Arc::clone(&record);
        let listening = tokio::spawn(async move {
            // Dropping the set at the task's end closes all connections.
            let mut open = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                lock(&shared).connections += 1;
                open.spawn(pass(caller, target.clone(), Arc::clone(&shared)));
            }
        });
        Self { url: format!("http://{address}"), record, listening: listening.abort_handle() }
    }

    pub(crate) fn connections(&self) -> usize {
        lock(&self.record).connections
    }

    /// Returns the requests, except health checks, whose head was forwarded, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        let record = lock(&self.record);
        record.requests.iter().filter(Seen::is_a_callers).cloned().collect()
    }

    /// Returns the number of requests that were forwarded completely.
    pub(crate) fn complete(&self) -> usize {
        let record = lock(&self.record);
        let requests = record.requests.iter().filter(Seen::is_a_callers);
        requests.filter(|one| one.is_complete).count()
    }

    /// Deletes the recorded requests. No request may be in progress.
    pub(crate) fn forget(&self) {
        *lock(&self.record) = Record::default();
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().expect("nobody panics with it")
}

async fn pass(caller: TcpStream, target: String, record: Arc<Mutex<Record>>) {
    // If the server can't be reached, the caller's connection is closed, as the server would do.
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    // Small writes are forwarded at once, as without the proxy.
    let _ = (caller.set_nodelay(true), server.set_nodelay(true));
    let (from_caller, mut to_caller) = caller.into_split();
    let (mut from_server, to_server) = server.into_split();
    let asking = ask(from_caller, to_server, &record);
    let answering = async {
        let _ = copy(&mut from_server, &mut to_caller).await;
        let _ = to_caller.shutdown().await;
    };
    tokio::join!(asking, answering);
}

async fn ask(mut caller: OwnedReadHalf, mut server: OwnedWriteHalf, record: &Mutex<Record>) {
    let mut piece = vec![0; 64 * 1024];
    let mut look = Look::Head(Vec::new());
    loop {
        let count = match caller.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        look = look.take(&piece[..count], record);
        if server.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
    let _ = server.shutdown().await;
}

/// The parser's position in a connection's requests.
enum Look {
    /// Within a head, of which these bytes were read.
    Head(Vec<u8>),
    /// Within the body of the request with this index, with this many bytes left.
    Counted(usize, u64),
    /// Within a chunk header of the request with this index; these bytes of its line were read.
    Between(usize, Vec<u8>),
    /// Within a chunk of the request with this index, with this many bytes left, line end included.
    Chunk(usize, u64),
    /// After the last chunk of the request with this index, within the trailers.
    Trailer(usize, Vec<u8>),
    /// The parser doesn't understand the bytes; nothing more is recorded.
    Lost,
}

impl Look {
    fn take(mut self, mut bytes: &[u8], record: &Mutex<Record>) -> Self {
        while !bytes.is_empty() {
            self = match self {
                Self::Head(mut head) => {
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    match read_head(&head) {
                        Some(Ok((request, used, body))) => {
                            bytes = &bytes[used - before..];
                            begin(request, body, record)
                        }
                        Some(Err(())) => Self::Lost,
                        None => return Self::Head(head),
                    }
                }
                Self::Counted(at, left) => {
                    let taken = left.min(bytes.len() as u64);
                    bytes = &bytes[taken as usize..];
                    grow(at, taken, record);
                    if left == taken { end(at, record) } else { Self::Counted(at, left - taken) }
                }
                Self::Between(at, mut line) => {
                    line.push(bytes[0]);
                    bytes = &bytes[1..];
                    match httparse::parse_chunk_size(&line) {
                        Ok(httparse::Status::Complete((_, 0))) => Self::Trailer(at, Vec::new()),
                        Ok(httparse::Status::Complete((_, size))) => Self::Chunk(at, size + 2),
                        Ok(httparse::Status::Partial) => Self::Between(at, line),
                        Err(_) => Self::Lost,
                    }
                }
                Self::Chunk(at, left) => {
                    let taken = left.min(bytes.len() as u64);
                    bytes = &bytes[taken as usize..];
                    // The last two bytes of a chunk are its line end.
                    grow(at, taken.min(left.saturating_sub(2)), record);
                    if left == taken { Self::Between(at, Vec::new()) } else { Self::Chunk(at, left - taken) }
                }
                Self::Trailer(at, mut lines) => {
                    lines.push(bytes[0]);
                    bytes = &bytes[1..];
                    if lines == b"\r\n" || lines.ends_with(b"\r\n\r\n") {
                        end(at, record)
                    } else {
                        Self::Trailer(at, lines)
                    }
                }
                Self::Lost => return Self::Lost,
            };
        }
        self
    }
}

/// How the end of a body is found.
enum Framing {
    Length(u64),
    Chunked,
}

type Head = Result<(Seen, usize, Framing), ()>;

/// Parses a request's head; `None` if it is incomplete.
fn read_head(bytes: &[u8]) -> Option<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX_COUNT];
    let mut request = httparse::Request::new(&mut headers);
    let used = match request.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some(Err(())),
    };
    let seen = Seen {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        headers: request
            .headers
            .iter()
            .map(|header| {
                let value = String::from_utf8_lossy(header.value).into_owned();
                (header.name.to_lowercase(), value)
            })
            .collect(),
        body_bytes: 0,
        is_complete: false,
    };
    let framing = match (seen.header("transfer-encoding"), seen.header("content-length")) {
        (Some(_), _) => Framing::Chunked,
        (None, length) => Framing::Length(length.and_then(|text| text.parse().ok()).unwrap_or(0)),
    };
    Some(Ok((seen, used, framing)))
}

fn begin(request: Seen, framing: Framing, record: &Mutex<Record>) -> Look {
    let at = {
        let requests = &mut lock(record).requests;
        requests.push(request);
        requests.len() - 1
    };
    match framing {
        Framing::Length(0) => end(at, record),
        Framing::Length(bytes) => Look::Counted(at, bytes),
        Framing::Chunked => Look::Between(at, Vec::new()),
    }
}

fn grow(at: usize, bytes: u64, record: &Mutex<Record>) {
    if let Some(request) = lock(record).requests.get_mut(at) {
        request.body_bytes += bytes;
    }
}

fn end(at: usize, record: &Mutex<Record>) -> Look {
    if let Some(request) = lock(record).requests.get_mut(at) {
        request.is_complete = true;
    }
    Look::Head(Vec::new())
}
