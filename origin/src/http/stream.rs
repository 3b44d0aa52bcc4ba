//! Streams response bodies through a bounded buffer, in pieces of a bounded size. A client that takes no piece for too
//! long is disconnected; further limits are in [`StreamLimits`].

mod limits;

use crate::metrics::StreamGuard;
use axum::body::Body;
use bytes::{Buf as _, Bytes};
use futures_util::{Stream, StreamExt as _, stream};
pub(super) use limits::StreamLimits;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum number of pieces that wait for a slow client, besides the piece being produced.
const PIECES_WAITING: usize = 1;

/// Maximum size of a piece. hyper holds one piece for a client that does not read, perhaps for as long as the
/// connection lasts: an HTTP/2 client may let a stream wait without end.
const PIECE_MAX_BYTES: usize = 128 * 1024;

#[derive(Debug, thiserror::Error)]
enum Cut<E: Error + 'static> {
    #[error(transparent)]
    Failed(E),
    #[error("its client read nothing for too long, its time was over, or its key no longer holds")]
    Over,
}

/// A part of a body. If the channel closes without `End`, the body is incomplete.
enum Piece<E: Error + 'static> {
    Chunk(Result<Bytes, Cut<E>>),
    End,
}

/// Shared with the sending task, which discards the pieces that the client does not read in time.
type Waiting<E> = Mutex<mpsc::Receiver<Piece<E>>>;

/// Returns a body of `ready`, then `chunks`. At an error of `chunks` or a limit, the body ends by `cut_mark` and an
/// error.
pub(super) fn body<E: Error + Send + Sync + 'static>(
    ready: impl IntoIterator<Item = Bytes, IntoIter: Send + 'static>,
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    cut_mark: &'static str,
    limits: StreamLimits,
    guard: StreamGuard,
) -> Body {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING);
    let id = limits.request_id.clone();
    let mut ready = ready.into_iter().flat_map(pieces);
    // The first piece is there when hyper sends the head, so that both go into one packet.
    if let Some(first) = ready.next() {
        let _ = sender.try_send(Piece::Chunk(Ok(first)));
    }
    let waiting = Arc::new(Mutex::new(receiver));
    let chunks = stream::iter(ready.map(Ok)).chain(chunks);
    tokio::spawn(forward_chunks(chunks, sender, Arc::downgrade(&waiting), limits));
    let pieces = received(waiting, cut_mark).map(move |piece| {
        let _streaming = &guard;
        // After an error, hyper closes the connection without the body's regular end.
        piece.inspect_err(|error| tracing::warn!(%id, %error, "an answer ended early"))
    });
    // The compression layer polls a body once more after its end.
    Body::from_stream(pieces.fuse())
}

/// Splits a chunk. The pieces of a long chunk are copies, so that none of them holds the whole chunk in memory.
fn pieces(mut chunk: Bytes) -> impl Iterator<Item = Bytes> {
    let is_long = chunk.len() > PIECE_MAX_BYTES;
    std::iter::from_fn(move || match chunk.len() {
        0 => None,
        _ if !is_long => Some(std::mem::take(&mut chunk)),
        left => {
            let piece = Bytes::copy_from_slice(&chunk[..left.min(PIECE_MAX_BYTES)]);
            chunk.advance(piece.len());
            Some(piece)
        }
    })
}

/// Sends the chunks to the body, from a task of its own: the body is not polled while its client does not read.
async fn forward_chunks<E: Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send,
    sender: mpsc::Sender<Piece<E>>,
    waiting: Weak<Waiting<E>>,
    mut limits: StreamLimits,
) {
    let is_taken = tokio::select! {
        () = &mut limits.over => false,
        is_taken = send_all(chunks, &sender, limits.write_timeout) => is_taken,
    };
    if !is_taken && let Some(waiting) = waiting.upgrade() {
        while locked(&waiting).try_recv().is_ok() {}
    }
}

/// Sends the chunks. Returns false if the client does not take a piece in time.
async fn send_all<E: Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send,
    sender: &mpsc::Sender<Piece<E>>,
    write_timeout: Duration,
) -> bool {
    let mut chunks = pin!(chunks);
    let send = async |piece| matches!(tokio::time::timeout(write_timeout, sender.send(piece)).await, Ok(Ok(())));
    loop {
        let chunk = tokio::select! {
            () = sender.closed() => return true,
            chunk = chunks.next() => chunk,
        };
        let last = match chunk {
            Some(Ok(chunk)) => {
                for piece in pieces(chunk) {
                    if !send(Piece::Chunk(Ok(piece))).await {
                        return false;
                    }
                }
                continue;
            }
            Some(Err(error)) => Piece::Chunk(Err(Cut::Failed(error))),
            None => Piece::End,
        };
        // There is room again when the last piece was taken.
        return send(last).await && tokio::time::timeout(write_timeout, sender.reserve()).await.is_ok();
    }
}

fn locked<E: Error>(waiting: &Waiting<E>) -> MutexGuard<'_, mpsc::Receiver<Piece<E>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Receiving<E: Error + 'static> {
    Pieces(Arc<Waiting<E>>),
    Failing(Cut<E>),
}

fn received<E: Error>(waiting: Arc<Waiting<E>>, cut_mark: &'static str) -> impl Stream<Item = Result<Bytes, Cut<E>>> {
    stream::unfold(Some(Receiving::Pieces(waiting)), move |receiving| async move {
        let error = match receiving? {
            Receiving::Pieces(waiting) => match poll_fn(|context| locked(&waiting).poll_recv(context)).await {
                Some(Piece::Chunk(Ok(chunk))) => return Some((Ok(chunk), Some(Receiving::Pieces(waiting)))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::project_quota::ProjectQuota;
    use futures_util::stream::empty;
    use http_body_util::BodyExt as _;
    use shared::ident::ProjectName;
    use shared::request_id::RequestId;
    use std::convert::Infallible;

    const PIECES: usize = 4;
    const SECOND: Duration = Duration::from_secs(1);

    /// An answer that holds all of `memory`: its client must take a piece within 30 s, and all of them within 60 s.
    fn held(memory: &ProjectQuota) -> Body {
        let project = ProjectName::parse("one").unwrap();
        let limits = StreamLimits {
            write_timeout: 30 * SECOND,
            over: Box::pin(std::future::pending()),
            _slot: None,
            request_id: RequestId::from_incoming("r").unwrap(),
        };
        let limits = limits.within(60 * SECOND, memory.try_take(&project, memory.share()).unwrap());
        let whole = Bytes::from(vec![7; PIECES * PIECE_MAX_BYTES]);
        body([whole], empty::<Result<_, Infallible>>(), "", limits, Metrics::new().stream())
    }

    fn is_free(memory: &ProjectQuota) -> bool {
        memory.try_take(&ProjectName::parse("one").unwrap(), memory.share()).is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_memory_until_it_is_taken() {
        let memory = ProjectQuota::new(1, 1);
        let body = held(&memory);
        tokio::time::sleep(29 * SECOND).await;
        assert!(!is_free(&memory));
        let taken = body.collect().await.unwrap().to_bytes();
        assert_eq!(taken.len(), PIECES * PIECE_MAX_BYTES);
        tokio::time::sleep(SECOND).await;
        assert!(is_free(&memory));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_given_up() {
        let memory = ProjectQuota::new(1, 1);
        let body = held(&memory);
        tokio::time::sleep(31 * SECOND).await;
        assert!(is_free(&memory));
        assert!(body.collect().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_too_slowly_is_given_up() {
        let memory = ProjectQuota::new(1, 1);
        let mut body = held(&memory);
        for _ in 0..2 {
            tokio::time::sleep(25 * SECOND).await;
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), PIECE_MAX_BYTES);
        }
        assert!(!is_free(&memory));
        tokio::time::sleep(15 * SECOND).await;
        assert!(is_free(&memory));
        assert!(body.collect().await.is_err());
    }

    #[test]
    fn a_long_chunk_is_copied_into_pieces_and_a_short_one_is_not() {
        for length in [0, 1, PIECE_MAX_BYTES, PIECE_MAX_BYTES + 1, 3 * PIECE_MAX_BYTES + 17] {
            let whole = Bytes::from(vec![7; length]);
            let cut: Vec<_> = pieces(whole.clone()).collect();
            assert_eq!(cut.concat(), whole);
            assert!(cut.iter().all(|piece| (1..=PIECE_MAX_BYTES).contains(&piece.len())));
            let shares_memory = cut.iter().any(|piece| piece.as_ptr() == whole.as_ptr());
            assert_eq!(shares_memory, (1..=PIECE_MAX_BYTES).contains(&length), "{length} bytes");
        }
    }
}
