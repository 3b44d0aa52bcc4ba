//! Bodies that are streamed: what is buffered for a slow client is bounded, and a client that reads nothing for too long
//! loses the rest. [`Terms`] has what else ends a stream.

mod terms;

use crate::metrics::StreamGuard;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use std::error::Error;
use std::pin::pin;
pub(super) use terms::Terms;
use tokio::sync::mpsc;

/// Chunks that are buffered for a slow client, besides the one that is being made.
const CHUNKS_WAITING: usize = 1;

/// Why an answer ends before its last byte.
#[derive(Debug, thiserror::Error)]
enum Cut<E: Error + 'static> {
    #[error(transparent)]
    Failed(E),
    #[error("its client read nothing for too long, its time was over, or its key no longer holds")]
    Over,
}

/// A chunk of an answer, or its regular end: a channel that merely closes is no end.
enum Piece<E: Error + 'static> {
    Chunk(Result<Bytes, Cut<E>>),
    End,
}

/// Returns a body of the chunks that are ready and of those to come. Where the terms end the stream, the client loses the
/// rest, and the chunks' resources are freed. The guard lives as long as the body.
pub(super) fn body<E: Error + Send + Sync + 'static>(
    ready: impl IntoIterator<Item = Bytes, IntoIter: Send + 'static>,
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    terms: Terms,
    guard: StreamGuard,
) -> Body {
    let (taker, taken) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(hand_over(chunks, taker, terms));
    // The head and what is ready go out before anything can cut the answer short.
    let flushed = stream::once(tokio::task::yield_now()).filter_map(|()| std::future::ready(None));
    let pieces = stream::iter(ready.into_iter().map(Ok)).chain(flushed).chain(received(taken));
    let pieces = pieces.map(move |piece| {
        let _streaming = &guard;
        // An error here ends the connection without the answer's end: it never reads as whole.
        piece.inspect_err(|error| tracing::warn!(%error, "an answer ended early"))
    });
    // Fused, since compression polls a body once more after its end.
    Body::from_stream(pieces.fuse())
}

/// Passes chunks on until their end, or until the terms end the stream. Runs in a task of its own, since the body is not
/// polled while its client does not read.
async fn hand_over<E: Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send,
    taker: mpsc::Sender<Piece<E>>,
    mut terms: Terms,
) {
    let mut chunks = pin!(chunks);
    loop {
        let piece = tokio::select! {
            () = taker.closed() => return,
            () = &mut terms.over => return,
            chunk = chunks.next() => chunk.map_or(Piece::End, |chunk| Piece::Chunk(chunk.map_err(Cut::Failed))),
        };
        let last = !matches!(piece, Piece::Chunk(Ok(_)));
        let given = tokio::select! {
            given = tokio::time::timeout(terms.write_timeout, taker.send(piece)) => given,
            () = &mut terms.over => return,
        };
        if last || !matches!(given, Ok(Ok(()))) {
            return;
        }
    }
}

fn received<E: Error>(taken: mpsc::Receiver<Piece<E>>) -> impl Stream<Item = Result<Bytes, Cut<E>>> {
    stream::unfold(Some(taken), |taken| async {
        let mut taken = taken?;
        match taken.recv().await {
            Some(Piece::Chunk(Ok(chunk))) => Some((Ok(chunk), Some(taken))),
            Some(Piece::Chunk(Err(error))) => Some((Err(error), None)),
            Some(Piece::End) => None,
            None => Some((Err(Cut::Over), None)),
        }
    })
}
