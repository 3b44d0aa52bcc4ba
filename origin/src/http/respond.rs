//! Answers: their bodies and the headers that all of them carry.

use super::etag::ETag;
use crate::db::DbError;
use crate::db::run::Chunks;
use crate::metrics::StreamGuard;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use shared::envelope;
use shared::error::Problem;
use shared::format::Format;
use std::time::Duration;
use tokio::sync::mpsc;

/// 200 with a JSON body that is an envelope already.
pub(super) fn json(envelope: Vec<u8>) -> Response {
    with_type(Body::from(envelope), "application/json")
}

/// 200 with this JSON text as the payload.
pub(super) fn payload(payload: &[u8]) -> Response {
    json(envelope::success(payload))
}

/// 200 with one record, or 304 if the caller has it already. It may be kept, but is asked for again
/// each time.
pub(super) fn record(body: Vec<u8>, format: Format, if_none_match: Option<&str>) -> Response {
    let tag = ETag::of(&body);
    let mut response = match if_none_match {
        Some(known) if tag.is_named_by(known) => not_modified(),
        _ => with_type(Body::from(body), format.content_type()),
    };
    let headers = response.headers_mut();
    headers.extend(tag.header().map(|tag| (header::ETAG, tag)));
    depends_on_accept(headers, "private, no-cache");
    response
}

/// An answer with a list of records. Nothing can tell whether it is still true, so it is not kept.
pub(super) fn list(mut response: Response) -> Response {
    depends_on_accept(response.headers_mut(), "no-store");
    response
}

fn depends_on_accept(headers: &mut HeaderMap, cache_control: &'static str) {
    let kept = HeaderValue::from_static(cache_control);
    headers.insert(header::CACHE_CONTROL, kept);
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
}

fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// The same answer without its body, whose length is told if it is known (RFC 9110, section 9.3.2).
pub(super) fn head(mut response: Response) -> Response {
    let body = std::mem::take(response.body_mut());
    if let Some(length @ 1..) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// The head of an answer that arrives in chunks: its first chunk decides, the others are not wanted.
pub(super) async fn chunks_head(
    mut chunks: Chunks,
    content_type: &'static str,
) -> Result<Response, DbError> {
    if let Some(first) = chunks.next().await {
        first?;
    }
    Ok(with_type(Body::empty(), content_type))
}

/// 200 in Prometheus' text format.
pub(super) fn text(text: String) -> Response {
    with_type(
        Body::from(text),
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
}

fn with_type(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A problem's envelope, status and headers.
pub(super) fn problem(problem: &Problem, request_id: &str) -> Response {
    let mut response = json(problem.to_json(request_id));
    *response.status_mut() =
        StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in problem.headers() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// An answer that arrives in chunks. Its first chunk decides whether it is a success; one that is whole
/// at once goes out in one piece, with its length. A caller who takes nothing for `write_timeout` loses
/// the rest, and with it the connection to MariaDB that it occupies.
pub(super) async fn chunks(
    mut chunks: Chunks,
    content_type: &'static str,
    write_timeout: Duration,
    guard: impl FnOnce() -> StreamGuard,
) -> Result<Response, DbError> {
    let first = match chunks.next().await {
        Some(first) => first?,
        None => Bytes::new(),
    };
    // The last chunk is followed by the end at once; before any other one MariaDB is asked again.
    let ready = match chunks.next().now_or_never() {
        Some(None) => return Ok(with_type(Body::from(first), content_type)),
        // Nothing was sent yet: the caller is told what happened.
        Some(Some(second)) => Some(second?),
        None => None,
    };
    let guard = guard();
    let (taker, taken) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(hand_over(chunks, taker, write_timeout));
    // The head and the first chunk go out before anything can cut the answer short.
    let flushed = stream::once(tokio::task::yield_now()).filter_map(|()| std::future::ready(None));
    let rest = stream::iter([first].into_iter().chain(ready).map(Ok))
        .chain(flushed)
        .chain(received(taken));
    let body = rest.map(move |piece| {
        let _streaming = &guard;
        // An error here ends the connection without the closing chunk: the answer never reads as whole.
        piece.inspect_err(|error| tracing::warn!(%error, "an answer ended early"))
    });
    Ok(with_type(Body::from_stream(body), content_type))
}

/// Chunks that wait for a slow caller, besides the one that MariaDB's rows are written into.
const CHUNKS_WAITING: usize = 1;

/// Why an answer ends before its last byte.
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error(transparent)]
    Failed(#[from] DbError),
    #[error("its caller did not take it in time")]
    NotTaken,
}

/// A chunk of an answer, or its regular end: a channel that merely closes is no end.
enum Piece {
    Chunk(Result<Bytes, Cut>),
    End,
}

/// Passes chunks on until their end, or until nobody takes them. Runs beside the body, which nobody
/// polls while its caller does not read.
async fn hand_over(mut chunks: Chunks, taker: mpsc::Sender<Piece>, write_timeout: Duration) {
    loop {
        let piece = tokio::select! {
            () = taker.closed() => return,
            chunk = chunks.next() => chunk.map_or(Piece::End, |chunk| Piece::Chunk(chunk.map_err(Cut::from))),
        };
        let last = !matches!(piece, Piece::Chunk(Ok(_)));
        let given = tokio::time::timeout(write_timeout, taker.send(piece)).await;
        if last || !matches!(given, Ok(Ok(()))) {
            return;
        }
    }
}

fn received(taken: mpsc::Receiver<Piece>) -> impl Stream<Item = Result<Bytes, Cut>> {
    stream::unfold(Some(taken), |taken| async {
        let mut taken = taken?;
        match taken.recv().await {
            Some(Piece::Chunk(Ok(chunk))) => Some((Ok(chunk), Some(taken))),
            Some(Piece::Chunk(Err(error))) => Some((Err(error), None)),
            Some(Piece::End) => None,
            None => Some((Err(Cut::NotTaken), None)),
        }
    })
}
