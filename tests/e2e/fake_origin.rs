//! A fake origin on its own port, which fails in a chosen manner and records its requests. It supports a minimum of
//! HTTP/1.1, with one request per connection.

use crate::service::free_port;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// Interval between two pieces of [`Manner::Drip`].
const DRIP: Duration = Duration::from_millis(50);

const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nX-Request-Id: REQUEST_ID\r\n\
    Connection: close\r\n\r\n{\"success\":false,\"error\":{\"code\":\"permission_denied\"}}";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers like Selkie, also at `/healthz`. The payload is the fake origin's name.
    Well,
    /// Accepts no connection.
    Refuse,
    /// Closes the connection without an answer.
    Close,
    /// Keeps the connection open without an answer.
    Hang,
    /// Sends these bytes and closes the connection. `REQUEST_ID` in the bytes is replaced by the request's id.
    Raw(&'static str),
    /// Sends these bytes, as [`Manner::Raw`] does, before the request's body has come, and keeps the connection open.
    Early(&'static str),
    /// Sends the first text, then the second text repeatedly while the connection is open.
    Drip(&'static str, &'static str),
    /// Forwards the request to a real origin, waits for its answer, and closes the connection without sending it.
    Swallow(String),
    /// Answers `/healthz` like Selkie, and other requests in the given manner.
    WellAsked(Box<Manner>),
    /// Answers `/readyz` like Selkie, and other requests in the given manner.
    Ready(Box<Manner>),
    /// Refuses `/readyz` with 403, as an origin does that doesn't trust the edge, and answers other requests in the given
    /// manner.
    Untrusting(Box<Manner>),
    /// Answers like Selkie, but only after this time.
    Late(Duration),
}

impl Manner {
    pub(crate) fn well_asked(self) -> Self {
        Self::WellAsked(Box::new(self))
    }

    pub(crate) fn ready(self) -> Self {
        Self::Ready(Box::new(self))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// Returns whether the request is a health check.
    pub(crate) fn is_sign(&self) -> bool {
        self.head.starts_with("GET /healthz ")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1);
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[derive(Default)]
struct Memory {
    seen: Vec<Seen>,
    left: usize,
    /// The most connections of [`Manner::Early`] that were open at once.
    open_max: usize,
}

pub(crate) struct FakeOrigin {
    /// Base URL, such as `http://127.0.0.1:8080`.
    pub(crate) url: String,
    manner: watch::Sender<Manner>,
    memory: Arc<Mutex<Memory>>,
    task: AbortHandle,
}

impl FakeOrigin {
    pub(crate) async fn start(name: &'static str, manner: Manner) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let (sender, mut receiver) = watch::channel(manner);
        let memory = Arc::new(Mutex::new(Memory::default()));
        let (url, kept) = (format!("http://{address}"), Arc::clone(&memory));
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut ready = Some(ready);
            loop {
                if *receiver.borrow_and_update() != Manner::Refuse {
                    let listener = TcpListener::bind(&address).await.expect("its port");
                    ready.take().map(|ready| ready.send(()));
                    listen(&listener, name, &mut receiver, &kept).await;
                } else if receiver.changed().await.is_err() {
                    return;
                }
                ready.take().map(|ready| ready.send(()));
            }
        });
        if *sender.borrow() != Manner::Refuse {
            is_ready.await.expect("a listener");
        }
        Self { url, manner: sender, memory, task: task.abort_handle() }
    }

    pub(crate) fn turn(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    pub(crate) fn asked(&self) -> Vec<Seen> {
        let seen = self.memory.lock().unwrap().seen.clone();
        seen.into_iter().filter(|seen| !seen.is_sign()).collect()
    }

    /// Deletes the recorded requests and returns their number without health checks.
    pub(crate) fn forget(&self) -> usize {
        let seen = std::mem::take(&mut self.memory.lock().unwrap().seen);
        seen.iter().filter(|seen| !seen.is_sign()).count()
    }

    pub(crate) fn signs(&self) -> usize {
        let memory = self.memory.lock().unwrap();
        memory.seen.iter().filter(|seen| seen.is_sign()).count()
    }

    /// Returns the number of connections that the client closed before the answer was complete.
    pub(crate) fn left(&self) -> usize {
        self.memory.lock().unwrap().left
    }

    pub(crate) fn open_max(&self) -> usize {
        self.memory.lock().unwrap().open_max
    }
}

impl Drop for FakeOrigin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until the manner becomes [`Manner::Refuse`].
async fn listen(
    listener: &TcpListener,
    name: &'static str,
    manner: &mut watch::Receiver<Manner>,
    memory: &Arc<Mutex<Memory>>,
) {
    // Dropping the set closes connections that hang.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            changed = manner.changed() => {
                if changed.is_err() || *manner.borrow() == Manner::Refuse {
                    return;
                }
            }
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (manner, memory) = (manner.borrow().clone(), Arc::clone(memory));
                open.spawn(async move {
                    let _ = serve(stream, name, manner, &memory).await;
                });
            }
        }
    }
}

async fn serve(mut stream: TcpStream, name: &str, manner: Manner, memory: &Mutex<Memory>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    if let Manner::Early(text) = manner {
        let seen = Seen { head, body: Vec::new() };
        let text = text.replace("REQUEST_ID", seen.header("x-request-id").unwrap_or_default());
        {
            let mut memory = memory.lock().unwrap();
            memory.seen.push(seen);
            memory.open_max = memory.open_max.max(memory.seen.len() - memory.left);
        }
        stream.write_all(text.as_bytes()).await?;
        return stay(stream, memory).await;
    }
    let length = header(&head, "content-length").and_then(|text| text.parse::<usize>().ok());
    let is_chunked = header(&head, "transfer-encoding").is_some();
    let is_whole = |bytes: &[u8]| match length {
        Some(length) => bytes.len() >= end + length,
        None => !is_chunked || bytes.ends_with(b"0\r\n\r\n"),
    };
    while !is_whole(&bytes) {
        if stream.read_buf(&mut bytes).await? == 0 {
            break;
        }
    }
    let seen = Seen { head, body: bytes[end..].to_vec() };
    let manner = match manner {
        Manner::Untrusting(_) if seen.head.starts_with("GET /readyz ") => Manner::Raw(FORBIDDEN),
        Manner::Untrusting(manner) => *manner,
        Manner::Ready(_) if seen.head.starts_with("GET /readyz ") => Manner::Well,
        Manner::Ready(manner) => *manner,
        manner => manner,
    };
    let manner = match manner {
        Manner::WellAsked(_) if seen.is_sign() => Manner::Well,
        Manner::WellAsked(manner) => *manner,
        manner => manner,
    };
    let id = seen.header("x-request-id").unwrap_or_default().to_owned();
    memory.lock().unwrap().seen.push(seen);
    let well = || {
        let body = format!(r#"{{"success":true,"payload":{}}}"#, Value::from(name));
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: {id}\r\nServer-Timing: db;dur=0.5, origin;dur=0.75\r\n\
             X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let answer = match manner {
        Manner::Well => well(),
        Manner::Late(time) => {
            tokio::time::sleep(time).await;
            well()
        }
        Manner::Raw(text) => text.replace("REQUEST_ID", &id),
        Manner::Drip(first, drop) => {
            let mut text = first.replace("REQUEST_ID", &id);
            while stream.write_all(text.as_bytes()).await.is_ok() {
                drop.clone_into(&mut text);
                tokio::time::sleep(DRIP).await;
            }
            memory.lock().unwrap().left += 1;
            return Ok(());
        }
        Manner::Hang => return stay(stream, memory).await,
        Manner::Swallow(origin) => {
            let mut beyond = TcpStream::connect(origin.trim_start_matches("http://")).await?;
            beyond.write_all(&bytes).await?;
            let mut answer = [0; 4_096];
            let _ = beyond.read(&mut answer).await?;
            return Ok(());
        }
        Manner::Refuse
        | Manner::Close
        | Manner::Early(_)
        | Manner::WellAsked(_)
        | Manner::Ready(_)
        | Manner::Untrusting(_) => return Ok(()),
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Waits until the client closes the connection.
async fn stay(mut stream: TcpStream, memory: &Mutex<Memory>) -> std::io::Result<()> {
    let mut rest = [0; 1_024];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
    memory.lock().unwrap().left += 1;
    Ok(())
}
