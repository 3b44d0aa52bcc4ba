//! What the edge decides: answer by itself, or forward; and what of the origin it believes.
//!
//! Pure, and tested natively. Knows neither the worker's API nor a clock; bodies by their length, and by the
//! bytes that it is shown.

mod answer;
mod call;
mod headers;
mod origin;
mod record;
#[cfg(test)]
mod tests;
mod upload;

pub use answer::Answer;
pub use call::{BodyLength, Call, scheme_and_host, split_url};
pub use headers::{
    CLIENT_ADDRESS, FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO, NOT_FORWARDED, lists,
    server_timing,
};
pub use origin::{Fault, Form, OriginHead, judge};
pub use record::{Ending, RequestRecord};
pub use upload::Upload;

use crate::config::Config;
use shared::admission::{check_body_length, knock};
use shared::cors::is_preflight;
use shared::envelope;
use shared::error::{ErrorCode, Problem};
use shared::key::TokenCache;
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::media::FilePath;
use shared::operation::{BodyUse, Pending, route};
use std::cell::RefCell;

/// Verified tokens of one generation of the cache (two live): about 150 bytes each, so 0.6 MB at most
/// of an isolate's 128.
const TOKEN_CACHE_CAPACITY: usize = 2_048;

/// What becomes of a request.
#[derive(Debug)]
pub enum Decision {
    /// The edge answers.
    Answer(Answer),
    /// The origin answers.
    Forward(BodyPlan),
}

/// What of a request's body is forwarded.
#[derive(Debug)]
pub enum BodyPlan {
    /// Nothing: the operation has none.
    Drop,
    /// Everything, as it arrives. The origin checks it.
    Stream,
    /// Everything, after [`check_body`] found no fault in it.
    Check(Pending),
    /// Everything, as it arrives, and checked as it passes.
    Upload(Upload),
}

/// An isolate's gateway: its configuration and the keys that it verified lately.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    tokens: RefCell<TokenCache>,
}

impl Gateway {
    /// A gateway with nothing verified yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let tokens = TokenCache::new(config.keys.clone(), TOKEN_CACHE_CAPACITY);
        Self {
            config,
            tokens: RefCell::new(tokens),
        }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Decides about a request; `now` is in seconds since 1970. What it learns goes to `record`.
    ///
    /// # Errors
    /// Whatever the shared parsers, the key and the policy refuse, and `body_too_large`.
    pub fn decide(
        &self,
        call: &Call,
        now: u64,
        record: &mut RequestRecord,
    ) -> Result<Decision, Problem> {
        let requested_method = call.access_control_request_method.as_deref();
        if is_preflight(&call.method, call.origin.as_deref(), requested_method) {
            record.route("preflight");
            return Ok(Decision::Answer(Answer::preflight(&self.config.cors)));
        }
        match call.path.as_str() {
            "/healthz" => {
                record.route("/healthz");
                only_get(call).map(|()| Decision::Answer(Answer::alive()))
            }
            "/readyz" => {
                record.route("/readyz");
                only_get(call).map(|()| Decision::Forward(BodyPlan::Drop))
            }
            path if path.starts_with(FilePath::PREFIX) => {
                record.route("/media/{path}");
                // Whether there is such a file, and who may have it, the origin knows.
                route::file(&call.head()).map(|_| Decision::Forward(BodyPlan::Drop))
            }
            _ => self.admit(call, now, record).map(Decision::Forward),
        }
    }

    fn admit(
        &self,
        call: &Call,
        now: u64,
        record: &mut RequestRecord,
    ) -> Result<BodyPlan, Problem> {
        let knock = knock(&call.head())?;
        if let Some(action) = knock.action() {
            record.action(action);
        }
        let principal = self
            .tokens
            .borrow_mut()
            .verify(call.authorization.as_deref(), now)?;
        let pending = knock.admit(record.caller(principal))?;
        match pending.body() {
            BodyUse::None => return Ok(BodyPlan::Drop),
            BodyUse::Upload => {
                return Upload::begin(call, self.config.upload_limits).map(BodyPlan::Upload);
            }
            BodyUse::Bytes => return Ok(BodyPlan::Stream),
            BodyUse::Json => {}
        }
        match call.body {
            BodyLength::Known(bytes) => {
                check_body_length(bytes)?;
                let small = usize::try_from(bytes).is_ok_and(|n| n <= EDGE_CHECKED_BODY_MAX_BYTES);
                Ok(if small {
                    BodyPlan::Check(pending)
                } else {
                    BodyPlan::Stream
                })
            }
            BodyLength::Unknown => Ok(BodyPlan::Stream),
        }
    }
}

/// Checks a body that was read whole.
///
/// # Errors
/// Whatever the shared parsers refuse.
pub fn check_body(pending: Pending, body: &[u8]) -> Result<(), Problem> {
    pending.finish(body).map(drop)
}

fn only_get(call: &Call) -> Result<(), Problem> {
    const METHODS: &str = "GET, HEAD";
    if matches!(call.method.as_str(), "GET" | "HEAD") {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::MethodNotAllowed,
        "Only GET and HEAD are allowed here.",
    )
    .with_allow(METHODS))
}

/// The payload of `/healthz`.
const ALIVE: &[u8] = br#"{"status":"ok"}"#;

impl Answer {
    /// The edge runs. Says nothing about the origin: that is `/readyz`.
    fn alive() -> Self {
        Self::json(200, envelope::success(ALIVE))
    }
}
