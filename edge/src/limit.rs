//! The platform's rate-limiting binding, asked once a request for the key that it carries, where a limit is set.
//!
//! Knows the worker's API. How many requests pass, the binding counts, in each of the platform's places for itself;
//! this knows only what to tell of it.

use crate::gateway::RequestRecord;
use crate::report;
use futures_util::future::{Either, select};
use shared::error::Problem;
use shared::rate::RateLimit;
use shared::request_id::RequestId;
use std::time::Duration;
use worker::js_sys::{Object, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::worker_sys::RateLimiter;
use worker::{Delay, Env};

/// The binding, if there is one: plain workerd has none.
const BINDING: &str = "RATE_LIMITER";

/// How long it may take; it asks a counter nearby, within a millisecond or so.
const PATIENCE: Duration = Duration::from_millis(250);

/// Lets a request pass, or refuses it because its key made too many. A binding that fails refuses nobody.
///
/// # Errors
/// `rate_limited`.
pub(crate) async fn check(
    env: &Env,
    limit: RateLimit,
    record: &RequestRecord,
    id: &RequestId,
) -> Result<(), Problem> {
    let (Some(key), Some(limiter)) = (record.key(), binding(env)) else {
        return Ok(());
    };
    match ask(&limiter, &key.to_string()).await {
        Ok(true) => Ok(()),
        // Nobody tells when the binding's time began: after all of it the next request surely passes.
        Ok(false) => Err(limit.exceeded(limit.period())),
        Err(_) => {
            let problem = Problem::internal("The rate limit could not be asked.", "");
            report::fault(id, &problem, "");
            Ok(())
        }
    }
}

fn binding(env: &Env) -> Option<RateLimiter> {
    let bound = Reflect::get(env, &BINDING.into()).ok()?;
    bound.is_object().then(|| bound.unchecked_into())
}

async fn ask(limiter: &RateLimiter, key: &str) -> Result<bool, JsValue> {
    let options = Object::new();
    Reflect::set(&options, &"key".into(), &key.into())?;
    let answer = JsFuture::from(limiter.limit(options)?);
    match select(answer, Delay::from(PATIENCE)).await {
        Either::Left((outcome, _)) => {
            Reflect::get(&outcome?, &"success".into()).map(|passes| passes.is_truthy())
        }
        Either::Right(_) => Err(JsValue::UNDEFINED),
    }
}
