//! The platform's Cache API, with timeouts. Keys are URLs. Must not decide what is stored, under which key or for how
//! long.
//!
//! The cache may be missing (plain workerd without `cacheApiOutbound`) or may fail. In both cases nothing is found or
//! stored, but no request fails because of it.

use super::awaited::Awaited;
use super::headers;
use super::timer::Timer;
use crate::core::Answer;
use futures_util::future::{Either, select};
use std::cell::Cell;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::js_sys::{Array, Date, Promise};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{Headers, Request, RequestInit, Response};

/// Timeout of look-ups, removals and tests. The cache is in the same data centre and usually answers within milliseconds; if
/// it takes longer than this, asking the origin is faster.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);

/// Timeout for storing a response, including the arrival of its body. Longer than the default timeout for a head.
/// Cloudflare ends such work 30 s after the response anyway.
pub(crate) const PUT_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout for storing a response that is in memory, for which clients wait.
pub(crate) const HELD_PUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Milliseconds after a failed test of the cache until the next test.
const TEST_INTERVAL_MS: f64 = 60_000.0;

thread_local! {
    /// Whether the last test of the cache succeeded, and until when that counts, in ms since 1970.
    static WORKS: Cell<(bool, f64)> = const { Cell::new((false, 0.0)) };
}

// Declared by hand, because web-sys declares these functions as infallible, and an exception would end the worker.
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "match", catch)]
    fn cache_match(request: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "put", catch)]
    fn cache_put(key: &str, response: &Response) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "delete", catch)]
    fn cache_delete(key: &str) -> Result<Promise, JsValue>;
}

/// Returns the cache entry of a URL; `None` if there is no entry, or if the cache fails or takes longer than
/// [`LOOKUP_TIMEOUT`]. The cache itself evaluates `Range` and the conditions in `headers`, and may return a 206, 416 or
/// 304.
pub(crate) async fn lookup(key: &str, headers: Option<&Headers>) -> Option<Response> {
    let request = match headers {
        None => JsValue::from_str(key),
        Some(headers) => {
            let init = RequestInit::new();
            init.set_headers(headers);
            Request::new_with_str_and_init(key, &init).ok()?.into()
        }
    };
    settled(cache_match(&request), LOOKUP_TIMEOUT).await?.dyn_into().ok()
}

/// Stores a response, which must be a 200, under a URL for as long as its `Cache-Control` says, and consumes its body.
/// Returns `false` if the cache fails, for example because the body ended early, or if it takes longer than `within`.
pub(crate) async fn put(key: &str, response: &Response, within: Duration) -> bool {
    settled(cache_put(key, response), within).await.is_some()
}

/// Removes the cache entries of these URLs in this data centre.
pub(crate) async fn remove(keys: impl IntoIterator<Item = &'_ str>) {
    let removals: Array = keys.into_iter().filter_map(|key| cache_delete(key).ok()).collect();
    settled(Ok(Promise::all_settled(&removals)), LOOKUP_TIMEOUT).await;
}

/// Tests whether a stored entry can be found again. A success counts for the isolate's life.
pub(crate) async fn works() -> bool {
    const PROBE: &str = "https://selkie-cache.invalid/probe";
    let (works, until) = WORKS.get();
    if Date::now() < until {
        return works;
    }
    let probe = Answer::bare(200).with("cache-control", "max-age=60");
    let works = match headers::answer(&probe, None) {
        Ok(probe) => put(PROBE, &probe, LOOKUP_TIMEOUT).await && lookup(PROBE, None).await.is_some(),
        Err(_) => false,
    };
    WORKS.set((works, if works { f64::INFINITY } else { Date::now() + TEST_INTERVAL_MS }));
    works
}

/// Returns the promise's value; `None` if it failed or timed out.
async fn settled(promise: Result<Promise, JsValue>, within: Duration) -> Option<JsValue> {
    match select(Awaited::from(promise.ok()?), Timer::from(within)).await {
        Either::Left((outcome, _)) => outcome.ok(),
        Either::Right(_) => None,
    }
}
