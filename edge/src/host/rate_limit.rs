//! The platform's rate limiter. If a limit is configured, it is called once for each request that the edge does not
//! refuse and that has a key or token. Each location of the platform counts separately.

use super::log;
use super::timer::Timer;
use crate::core::RequestLog;
use futures_util::future::{Either, select};
use shared::error::Problem;
use shared::rate::RateLimit;
use shared::request_id::RequestId;
use std::pin::pin;
use std::time::Duration;
use worker::js_sys::Reflect;
use worker::wasm_bindgen::JsCast;
use worker::{Env, RateLimiter};

/// The name of the rate limiter's binding, which may be missing under plain workerd.
const BINDING: &str = "RATE_LIMITER";

/// Timeout of the rate limiter, which usually answers within a millisecond.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Refuses a request if its API key, or the user of its token, has exceeded the rate limit. Allows a request without
/// key or token, and all requests if the rate limiter is missing, fails or takes longer than [`TIMEOUT`].
pub(crate) async fn check(
    env: &Env,
    limit: RateLimit,
    request_log: &RequestLog,
    id: &RequestId,
) -> Result<(), Problem> {
    let (Some(key), Some(limiter)) = (request_log.rate_limited_as(), limiter(env)) else {
        return Ok(());
    };
    let asking = pin!(limiter.limit(key));
    match select(asking, Timer::from(TIMEOUT)).await {
        Either::Left((Ok(outcome), _)) if outcome.success => Ok(()),
        // `Retry-After` is a whole period, since the platform does not say when the current period began.
        Either::Left((Ok(_), _)) => Err(limit.exceeded(limit.period())),
        Either::Left((Err(_), _)) | Either::Right(_) => {
            let problem = Problem::internal("The rate limit could not be asked.", "");
            log::fault(id, &problem, "");
            Ok(())
        }
    }
}

/// Returns the rate limiter's binding; `None` if nothing is bound. Doesn't check the object's class, since tests bind
/// another.
fn limiter(env: &Env) -> Option<RateLimiter> {
    let bound = Reflect::get(env, &BINDING.into()).ok()?;
    bound.is_object().then(|| bound.unchecked_into())
}
