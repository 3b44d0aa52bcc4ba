//! Bodies that must be whole before they mean anything, read within bounds.

use crate::app::Bounds;
use axum::body::Body;
use axum::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use shared::error::{ErrorCode, Problem};

/// Reads a JSON body.
pub(super) async fn read(
    body: Body,
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
