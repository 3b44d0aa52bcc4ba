//! Bodies that must be whole before they mean anything, read within bounds.

use crate::app::Bounds;
use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use shared::error::{ErrorCode, Problem};
use std::time::Duration;

/// Reads a JSON body.
pub(super) async fn read(
    body: &mut Body,
    headers: &HeaderMap,
    bounds: Bounds,
) -> Result<Bytes, Problem> {
    let announced = headers
        .get("content-length")
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| {
        usize::try_from(bytes).map_or(true, |bytes| bytes > bounds.body_max_bytes)
    }) {
        return Err(too_large(bounds));
    }
    let collected = tokio::time::timeout(
        bounds.body_timeout,
        Limited::new(body, bounds.body_max_bytes).collect(),
    )
    .await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(bounds)),
        Ok(Err(_)) => Err(Problem::new(
            ErrorCode::InvalidBody,
            "The body ended before its announced length.",
        )),
        Err(_) => Err(Problem::new(
            ErrorCode::InvalidBody,
            format!(
                "The body did not arrive within {}.",
                humantime::format_duration(bounds.body_timeout)
            ),
        )),
    }
}

fn too_large(bounds: Bounds) -> Problem {
    Problem::new(
        ErrorCode::BodyTooLarge,
        format!("The body is larger than {} bytes.", bounds.body_max_bytes),
    )
    .with_hint("Send the records in several requests.")
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
