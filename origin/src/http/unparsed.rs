//! Replaces hyper's empty responses to HTTP/1 requests that hyper can't parse by error envelopes. hyper has no hook for
//! these responses, so this module watches the connection's writes: a response that hyper writes while no request is in
//! flight must be one of them.

use super::body::{DRAIN_MAX_BYTES, DRAIN_TIMEOUT};
use super::server::Connection;
use axum::body::{Body, HttpBody};
use axum::http::header::{CONNECTION, CONTENT_LENGTH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use shared::error::Problem;
use shared::{request, request_id};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

/// No request is in flight, and the last response is written completely.
const IDLE: u8 = 0;
const IN_FLIGHT: u8 = 1;
/// The whole response is in hyper's buffer, but perhaps not yet written.
const BUFFERED: u8 = 2;

const STATUS_AT: std::ops::Range<usize> = "HTTP/1.1 ".len().."HTTP/1.1 400".len();

#[derive(Debug, Default)]
pub(super) struct Exchange {
    phase: AtomicU8,
    refused: Mutex<Option<Refused>>,
}

/// Holds the status of hyper's response, which was not sent.
#[derive(Debug)]
pub(super) struct Refused {
    stream: Connection,
    status: u16,
}

impl Exchange {
    pub(super) fn begin(&self) {
        self.phase.store(IN_FLIGHT, Ordering::Relaxed);
    }

    /// Must be called after hyper has ended its use of the connection.
    pub(super) fn take_refused(&self) -> Option<Refused> {
        self.refused.lock().ok()?.take()
    }
}

impl Refused {
    pub(super) fn unread(stream: Connection) -> Self {
        Self { stream, status: StatusCode::BAD_REQUEST.as_u16() }
    }

    pub(super) fn problem(&self) -> Problem {
        match self.status {
            414 => request::url_too_long(),
            431 => request::headers_too_large(),
            _ => request::malformed(),
        }
    }

    /// Reads and discards the rest of the request, because a client may read only after it has sent everything.
    pub(super) async fn answer(mut self, response: Response) {
        let exchange = async {
            self.stream.write_all(&bytes(response).await).await?;
            self.stream.shutdown().await?;
            let (mut left, mut taken) = (DRAIN_MAX_BYTES, [0; 4_096]);
            while let count @ 1.. = self.stream.read(&mut taken).await? {
                left = left.checked_sub(count).ok_or(io::ErrorKind::FileTooLarge)?;
            }
            Ok::<(), io::Error>(())
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, exchange).await;
    }
}

async fn bytes(response: Response) -> Vec<u8> {
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let body = body.unwrap_or_default();
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in &parts.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    bytes
}

/// Doesn't send the error responses that hyper itself writes: [`Refused`] answers instead.
#[derive(Debug)]
pub(super) struct ExchangeStream {
    /// `None` once [`Exchange`] has taken the connection.
    stream: Option<Connection>,
    /// `None` for HTTP/2, whose writes are not watched.
    exchange: Option<Arc<Exchange>>,
    /// The status of hyper's own error response, which this stream discards.
    refused: Option<u16>,
}

impl ExchangeStream {
    pub(super) fn new(stream: Connection, exchange: Option<Arc<Exchange>>) -> Self {
        Self { stream: Some(stream), exchange, refused: None }
    }

    fn is_refusal(&mut self, bytes: &[u8]) -> bool {
        if self.refused.is_some() {
            return true;
        }
        let phase = self.exchange.as_ref().map(|exchange| &exchange.phase);
        if phase.is_none_or(|phase| phase.load(Ordering::Relaxed) != IDLE) {
            return false;
        }
        let status = bytes.get(STATUS_AT).and_then(|digits| StatusCode::from_bytes(digits).ok());
        // Every response of this service has a request id header, so none of them is withheld, whatever the phase.
        let id = request_id::HEADER.as_bytes();
        let is_of_hyper = bytes.windows(id.len()).all(|part| part != id);
        self.refused = status.filter(|_| is_of_hyper).map(|status| status.as_u16());
        self.refused.is_some()
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Connection>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for ExchangeStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for ExchangeStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_refusal(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.stream()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if pieces.first().is_some_and(|first| self.is_refusal(first)) {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        }
        self.stream()?.poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(Connection::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper calls this once its buffer is empty, so the last response is written.
        if let Some(exchange) = &self.exchange {
            let phase = &exchange.phase;
            let _ = phase.compare_exchange(BUFFERED, IDLE, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(status) = self.refused else {
            return self.stream()?.poll_shutdown(context);
        };
        let stream = self.stream.take();
        if let Some((stream, exchange)) = stream.zip(self.exchange.as_ref())
            && let Ok(mut refused) = exchange.refused.lock()
        {
            *refused = Some(Refused { stream, status });
        }
        Poll::Ready(Ok(()))
    }
}

#[derive(Debug)]
pub(super) struct ExchangeBody {
    body: Body,
    exchange: Option<Arc<Exchange>>,
}

impl ExchangeBody {
    pub(super) fn new(body: Body, exchange: Option<Arc<Exchange>>) -> Self {
        Self { body, exchange }
    }
}

impl HttpBody for ExchangeBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ExchangeBody {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.phase.store(BUFFERED, Ordering::Relaxed);
        }
    }
}
