//! Bodies that must be whole before they mean anything, read within bounds.

use crate::app::Bounds;
use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use shared::admission::body_too_large;
use shared::error::{ErrorCode, Problem};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of all bodies held at once, beyond the first [`FREE_BYTES`] of each: sixteen of the largest,
/// each of which is parsed and bound in three or four copies. Keeps some hundred callers with a large
/// body each from filling memory together.
const HELD_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Bytes of a body that are never refused for lack of room: what a record takes.
const FREE_BYTES: usize = 64 * 1024;

/// Counts the bytes of the bodies that are held.
#[derive(Debug, Default)]
pub struct Room {
    held: AtomicUsize,
}

/// A body, and its place in the [`Room`] until it is dropped.
pub(super) struct Held<'a> {
    room: &'a Room,
    counted: usize,
    bytes: Bytes,
}

impl<'a> Held<'a> {
    /// No body at all.
    pub(super) fn nothing(room: &'a Room) -> Self {
        Self {
            room,
            counted: 0,
            bytes: Bytes::new(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Counts a body that has grown to `length`.
    fn grow(&mut self, length: usize) -> Result<(), Problem> {
        let more = length.saturating_sub(FREE_BYTES) - self.counted;
        let before = self.room.held.fetch_add(more, Ordering::Relaxed);
        self.counted += more;
        if more > 0 && before + more > HELD_MAX_BYTES {
            return Err(Problem::new(
                ErrorCode::Overloaded,
                "Too many large bodies are on their way.",
            ));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Reads a JSON body.
pub(super) async fn read<'a>(
    body: &mut Body,
    headers: &HeaderMap,
    bounds: Bounds,
    room: &'a Room,
) -> Result<Held<'a>, Problem> {
    let announced = headers
        .get("content-length")
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| {
        usize::try_from(bytes).map_or(true, |bytes| bytes > bounds.body_max_bytes)
    }) {
        return Err(body_too_large(bounds.body_max_bytes));
    }
    tokio::time::timeout(bounds.body_timeout, collect(body, bounds, room))
        .await
        .unwrap_or_else(|_| {
            Err(Problem::new(
                ErrorCode::InvalidBody,
                format!(
                    "The body did not arrive within {}.",
                    humantime::format_duration(bounds.body_timeout)
                ),
            ))
        })
}

async fn collect<'a>(body: &mut Body, bounds: Bounds, room: &'a Room) -> Result<Held<'a>, Problem> {
    let mut held = Held::nothing(room);
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            Problem::new(
                ErrorCode::InvalidBody,
                "The body ended before its announced length.",
            )
        })?;
        // Trailers mean nothing here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = whole.len() + data.len();
        if length > bounds.body_max_bytes {
            return Err(body_too_large(bounds.body_max_bytes));
        }
        held.grow(length)?;
        // Most bodies arrive in one piece, which is then not copied.
        if whole.is_empty() && body.is_end_stream() {
            held.bytes = data;
            return Ok(held);
        }
        whole.extend_from_slice(&data);
    }
    held.bytes = whole.freeze();
    Ok(held)
}

/// Bytes of a refused body that are still taken, so that the caller, who is busy sending, gets to read
/// the answer; beyond, the connection is cut.
const DRAIN_MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long a refused body is taken.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes what is left of a body that nobody wants.
pub(super) async fn drain(mut body: Body, headers: &HeaderMap) {
    // A caller who waits for leave to send gets none.
    if body.is_end_stream() || headers.contains_key("expect") {
        return;
    }
    let mut left = DRAIN_MAX_BYTES;
    let taken = tokio::time::timeout(DRAIN_TIMEOUT, async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    });
    // Whether it was taken whole makes no difference to the answer.
    let _ = taken.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_room_for_so_many_bytes_together_and_small_ones_always() {
        let room = Room::default();
        let mut large = Held::nothing(&room);
        assert!(large.grow(HELD_MAX_BYTES + FREE_BYTES).is_ok());
        let mut another = Held::nothing(&room);
        assert!(another.grow(FREE_BYTES).is_ok());
        let refused = another.grow(FREE_BYTES + 1).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        drop(large);
        drop(another);
        assert_eq!(room.held.load(Ordering::Relaxed), 0);
    }
}
