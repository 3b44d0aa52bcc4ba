//! Streams response bodies through a bounded buffer. A client that reads nothing for too long is disconnected; further
//! limits are in [`StreamLimits`].

mod limits;

use crate::metrics::StreamGuard;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
pub(super) use limits::StreamLimits;
use std::error::Error;
use std::pin::pin;
use tokio::sync::mpsc;

/// Chunks for a slow client, besides the chunk being produced.
const CHUNKS_WAITING: usize = 1;

#[derive(Debug, thiserror::Error)]
enum Cut<E: Error + 'static> {
    #[error(transparent)]
    Failed(E),
    #[error("its client read nothing for too long, its time was over, or its key no longer holds")]
    Over,
}

/// If the channel closes without `End`, the body is incomplete.
enum Piece<E: Error + 'static> {
    Chunk(Result<Bytes, Cut<E>>),
    End,
}

/// If `chunks` fails or a limit ends the stream, the body gets `cut_mark` and then fails.
pub(super) fn body<E: Error + Send + Sync + 'static>(
    ready: impl IntoIterator<Item = Bytes, IntoIter: Send + 'static>,
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    cut_mark: &'static str,
    limits: StreamLimits,
    guard: StreamGuard,
) -> Body {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    let id = limits.request_id.clone();
    tokio::spawn(forward_chunks(chunks, sender, limits));
    let pieces = stream::iter(ready.into_iter().map(Ok)).chain(received(receiver, cut_mark));
    let pieces = pieces.map(move |piece| {
        let _streaming = &guard;
        // After an error, hyper closes the connection without the body's regular end.
        piece.inspect_err(|error| tracing::warn!(%id, %error, "an answer ended early"))
    });
    // The compression layer polls a body once more after its end.
    Body::from_stream(pieces.fuse())
}

/// A task of its own, since the body is not polled while its client does not read.
async fn forward_chunks<E: Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send,
    sender: mpsc::Sender<Piece<E>>,
    mut limits: StreamLimits,
) {
    let mut chunks = pin!(chunks);
    loop {
        let piece = tokio::select! {
            () = sender.closed() => return,
            () = &mut limits.over => return,
            chunk = chunks.next() => chunk.map_or(Piece::End, |chunk| Piece::Chunk(chunk.map_err(Cut::Failed))),
        };
        let last = !matches!(piece, Piece::Chunk(Ok(_)));
        let sent = tokio::select! {
            sent = tokio::time::timeout(limits.write_timeout, sender.send(piece)) => sent,
            () = &mut limits.over => return,
        };
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

enum Receiving<E: Error + 'static> {
    Pieces(mpsc::Receiver<Piece<E>>),
    Failing(Cut<E>),
}

fn received<E: Error>(
    receiver: mpsc::Receiver<Piece<E>>,
    cut_mark: &'static str,
) -> impl Stream<Item = Result<Bytes, Cut<E>>> {
    stream::unfold(Some(Receiving::Pieces(receiver)), move |receiving| async move {
        let error = match receiving? {
            Receiving::Pieces(mut receiver) => match receiver.recv().await {
                Some(Piece::Chunk(Ok(chunk))) => return Some((Ok(chunk), Some(Receiving::Pieces(receiver)))),
                Some(Piece::End) => return None,
                Some(Piece::Chunk(Err(error))) => error,
                None => Cut::Over,
            },
            Receiving::Failing(error) => {
                // The first pause makes the encoder flush, and after the second one it passes on what it flushed.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                return Some((Err(error), None));
            }
        };
        Some((Ok(Bytes::from_static(cut_mark.as_bytes())), Some(Receiving::Failing(error))))
    })
}
