//! A tap on the line between a worker and a real origin: every byte passes as it is, and what was asked is
//! written down. Knows HTTP/1.1 as far as it takes to tell one request from the next, and no more.

use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Header lines of one request; the origin takes no more.
const HEADERS_MAX_COUNT: usize = 128;

/// One request as it passed.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of its body so far, without the chunks' own.
    pub(crate) body_bytes: u64,
    /// Whether all of its body passed.
    pub(crate) is_complete: bool,
}

impl Seen {
    /// Not the worker's own question whether a slow origin lives: on a busy machine any answer may be slow.
    fn is_a_callers(self: &&Self) -> bool {
        self.target != "/healthz"
    }

    /// The first header of that name, which is written in lower case.
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

/// A tap; dropped, it closes, and its connections break.
pub(crate) struct RecordingProxy {
    /// Where to be asked: `http://127.0.0.1:port`.
    pub(crate) url: String,
    record: Arc<Mutex<Record>>,
    listening: AbortHandle,
}

impl RecordingProxy {
    /// A tap before the server at `http://host:port`.
    pub(crate) async fn before(url: &str) -> Self {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let record = Arc::new(Mutex::new(Record::default()));
        let shared = Arc::clone(&record);
        let listening = tokio::spawn(async move {
            // Dropped with this task, and with it all connections.
            let mut open = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                lock(&shared).connections += 1;
                open.spawn(pass(caller, target.clone(), Arc::clone(&shared)));
            }
        });
        Self { url: format!("http://{address}"), record, listening: listening.abort_handle() }
    }

    /// Connections that were made, kept ones once.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.record).connections
    }

    /// Requests of callers whose head passed, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        let record = lock(&self.record);
        record.requests.iter().filter(Seen::is_a_callers).cloned().collect()
    }

    /// Requests that passed whole.
    pub(crate) fn complete(&self) -> usize {
        let record = lock(&self.record);
        let requests = record.requests.iter().filter(Seen::is_a_callers);
        requests.filter(|one| one.is_complete).count()
    }

    /// Forgets what was asked until now. Not while a request is on its way.
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
    // A server that can't be reached closes the caller's connection, as it would itself.
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    // Small writes are passed on at once, as they would arrive without a tap.
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

/// Where in the stream of requests a connection is.
enum Look {
    /// In a head, which begins so.
    Head(Vec<u8>),
    /// In the body of the request of that number, of which so many bytes are left.
    Counted(usize, u64),
    /// In the body of the request of that number, between two chunks, of whose line so much was seen.
    Between(usize, Vec<u8>),
    /// In a chunk, of which so many bytes are left, with its line's end.
    Chunk(usize, u64),
    /// Behind the last chunk, in the lines before the next request.
    Trailer(usize, Vec<u8>),
    /// Beyond what is understood here.
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
                    // The last two are the line's end.
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

/// How a body says where it ends.
enum Framing {
    Length(u64),
    Chunked,
}

type Head = Result<(Seen, usize, Framing), ()>;

/// A request, the bytes of its head and its body's framing; none while the head is not whole.
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
