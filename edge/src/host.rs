//! The platform: `fetch`, streams, the Cache API, the rate limiter and the log. Besides `lib.rs`, only the files of this
//! folder know the worker's API; they decide nothing that [`crate::core`] could decide.

pub(crate) mod body;
pub(crate) mod cache;
pub(crate) mod cached;
pub(crate) mod client_abort;
pub(crate) mod headers;
pub(crate) mod log;
pub(crate) mod origin_fetch;
pub(crate) mod rate_limit;

use crate::core::{Answer, BodyLength};
use origin_fetch::OriginAnswer;
use worker::web_sys::{ReadableStream, Response};

/// An answer, before the headers that every answer has are added.
pub(crate) enum Reply {
    /// The edge's own, or one from the cache, whose body is a stream.
    Own(Answer, Option<ReadableStream>),
    /// An origin's, whose headers can't be changed.
    Origin(OriginAnswer),
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Own(answer, _) => answer.status,
            Self::Origin(answer) => answer.status,
        }
    }

    pub(crate) fn length(&self) -> BodyLength {
        match self {
            Self::Own(_, Some(_)) => BodyLength::Unknown,
            Self::Own(answer, None) => BodyLength::Known(answer.body.len() as u64),
            Self::Origin(answer) => BodyLength::announced(answer.header("content-length")),
        }
    }
}

/// Tells the runtime that nobody reads the body of an answer.
fn discard(response: &Response) {
    if let Some(body) = response.body() {
        // A stream that can't be cancelled needs no cancelling.
        let _ = body.cancel();
    }
}
