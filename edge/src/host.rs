//! Adapters to the platform: `fetch`, streams, the Cache API, WebCrypto, the rate limiter and the log. Only this folder
//! and `lib.rs` know the worker's API; decisions belong in [`crate::core`].

mod awaited;
pub(crate) mod body;
pub(crate) mod cache;
pub(crate) mod cached;
pub(crate) mod client_abort;
pub(crate) mod headers;
pub(crate) mod log;
pub(crate) mod origin_fetch;
pub(crate) mod polls;
pub(crate) mod rate_limit;
pub(crate) mod signature;
mod timer;

use crate::core::{Answer, BodyLength};
use origin_fetch::OriginAnswer;
use worker::web_sys::{ReadableStream, Response};

/// A response before the common headers are added.
pub(crate) enum Reply {
    /// A response whose head the edge built. The stream, if any, is its body: from a cache entry, or from an origin's
    /// response that is being stored. Without a stream, the body is in the `Answer`.
    Own(Answer, Option<ReadableStream>),
    /// An origin's response. The runtime does not allow changing its headers.
    Origin(OriginAnswer),
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Own(answer, _) => answer.status,
            Self::Origin(answer) => answer.status,
        }
    }

    /// Returns the length of the body as a stream, which the runtime decodes if the response is compressed.
    pub(crate) fn length(&self) -> BodyLength {
        match self {
            Self::Own(_, Some(_)) => BodyLength::Unknown,
            Self::Own(answer, None) => BodyLength::Known(answer.body.len() as u64),
            Self::Origin(answer) => answer.length(),
        }
    }
}

/// Cancels the body of a response that is not used.
fn discard(response: &Response) {
    if let Some(body) = response.body() {
        // An error is ignored: the stream has failed already, or something else reads it.
        let _ = body.cancel();
    }
}
