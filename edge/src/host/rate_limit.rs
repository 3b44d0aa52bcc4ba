//! The platform's rate limiter, asked once for each request with a verified key, where a limit is set. The platform counts,
//! in each of its locations by itself.

use super::log;
use crate::core::RequestLog;
use futures_util::future::{Either, select};
use shared::error::Problem;
use shared::rate::RateLimit;
use shared::request_id::RequestId;
use std::pin::pin;
use std::time::Duration;
use worker::js_sys::Reflect;
use worker::wasm_bindgen::JsCast;
use worker::{Delay, Env, RateLimiter};

/// The binding, if there is one: plain workerd has none.
const BINDING: &str = "RATE_LIMITER";

/// How long the limiter may take; it is nearby and answers within a millisecond or so.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Refuses a request if its key sent too many. A limiter that fails refuses nothing.
///
/// # Errors
/// `rate_limited`.
pub(crate) async fn check(
    env: &Env,
    limit: RateLimit,
    request_log: &RequestLog,
    id: &RequestId,
) -> Result<(), Problem> {
    let (Some(key), Some(limiter)) = (request_log.key(), limiter(env)) else {
        return Ok(());
    };
    let asking = pin!(limiter.limit(key.to_string()));
    match select(asking, Delay::from(TIMEOUT)).await {
        Either::Left((Ok(outcome), _)) if outcome.success => Ok(()),
        // The platform does not say when its period began: after a whole one the next request surely passes.
        Either::Left((Ok(_), _)) => Err(limit.exceeded(limit.period())),
        Either::Left((Err(_), _)) | Either::Right(_) => {
            let problem = Problem::internal("The rate limit could not be asked.", "");
            log::fault(id, &problem, "");
            Ok(())
        }
    }
}

/// The binding, whatever its class is called: a service that stands in for it has another.
fn limiter(env: &Env) -> Option<RateLimiter> {
    let bound = Reflect::get(env, &BINDING.into()).ok()?;
    bound.is_object().then(|| bound.unchecked_into())
}
