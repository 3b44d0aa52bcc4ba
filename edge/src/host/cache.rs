//! The platform's Cache API, with time-outs. Keys are URLs.
//!
//! Must not decide what is kept, under which key or for how long, which is [`crate::core`]'s. There may be no cache at all (plain workerd without `cacheApiOutbound`) or one
//! that fails: then nothing is found or stored, and no request fails because of it.

use super::headers;
use crate::core::Answer;
use futures_util::future::{Either, select};
use std::cell::Cell;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Delay;
use worker::js_sys::{Array, Promise};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{Headers, Request, RequestInit, Response};

/// How long a look-up or a removal may take. The cache is of the machine's own data centre and answers within a few
/// milliseconds; asking the origin is better than to wait longer.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);

/// How long storing an answer may take while its body arrives. Longer than any head may be waited for by
/// default; Cloudflare ends what goes on 30 s behind an answer by itself.
const PUT_TIMEOUT: Duration = Duration::from_secs(120);

thread_local! {
    /// Whether a stored answer was found once: the cache does not go away within an isolate's life.
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

// By hand, since web-sys takes what these throw for impossible, and would end the worker with it.
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "match", catch)]
    fn cache_match(request: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "put", catch)]
    fn cache_put(key: &str, response: &Response) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["caches", "default"], js_name = "delete", catch)]
    fn cache_delete(key: &str) -> Result<Promise, JsValue>;
}

/// Returns the answer that is stored under a URL. `Range` and conditions among `headers` are answered by the cache itself, with 206, 416 or 304.
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

/// Stores an answer under a URL, for as long as its `Cache-Control` says, and takes its body for that. Only a 200 can be
/// stored. Returns whether it is stored now: not without a cache, or if the body broke off.
pub(crate) async fn put(key: &str, response: &Response) -> bool {
    settled(cache_put(key, response), PUT_TIMEOUT).await.is_some()
}

/// Removes what is stored under these URLs, in this location.
pub(crate) async fn remove(keys: impl IntoIterator<Item = &'_ str>) {
    let removals: Array = keys.into_iter().filter_map(|key| cache_delete(key).ok()).collect();
    settled(Ok(Promise::all_settled(&removals)), LOOKUP_TIMEOUT).await;
}

/// Whether there is a cache that finds what was stored in it.
pub(crate) async fn works() -> bool {
    const PROBE: &str = "https://selkie-cache.invalid/probe";
    if WORKS.get() {
        return true;
    }
    let probe = Answer::bare(200).with("cache-control", "max-age=60");
    let works = match headers::answer(&probe, None) {
        Ok(probe) => put(PROBE, &probe).await && lookup(PROBE, None).await.is_some(),
        Err(_) => false,
    };
    WORKS.set(works);
    works
}

/// What a promise came to; none if it failed, or not in time.
async fn settled(promise: Result<Promise, JsValue>, within: Duration) -> Option<JsValue> {
    match select(JsFuture::from(promise.ok()?), Delay::from(within)).await {
        Either::Left((outcome, _)) => outcome.ok(),
        Either::Right(_) => None,
    }
}
