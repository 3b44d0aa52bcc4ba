//! One question to an origin, as the worker's `fetch` has it: the head that goes out, and the wait for the head
//! that comes back. Knows the worker's API; must not know which origin is asked, or whether another one will be.

use crate::config::{Door, Region};
use crate::gateway::{self, Call, Head, Place};
use crate::headers;
use shared::request_id;
use shared::security::EDGE_SECRET_HEADER;
use std::pin::Pin;
use std::task::{self, Poll};
use worker::js_sys::{self, Promise, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, AbortController, Headers, Request, RequestInit, Response};

/// A request under way, until the head of its answer is there. Dropped before that, it is broken off.
pub(super) struct Question {
    answer: JsFuture,
    /// None for one that was asked on the short way: it ends with its caller's request.
    controller: Option<AbortController>,
}

impl Question {
    /// Sends a request.
    pub(super) fn ask(url: &str, init: &RequestInit) -> Result<Self, JsValue> {
        let controller = AbortController::new()?;
        init.set_signal(Some(&controller.signal()));
        let scope: web_sys::WorkerGlobalScope = js_sys::global().unchecked_into();
        Ok(Self {
            answer: JsFuture::from(scope.fetch_with_str_and_init(url, init)),
            controller: Some(controller),
        })
    }

    /// One that was sent already.
    pub(super) fn sent(answer: Promise) -> Self {
        Self {
            answer: JsFuture::from(answer),
            controller: None,
        }
    }
}

impl Future for Question {
    type Output = Result<Response, JsValue>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| {
            self.controller = None;
            answer.and_then(JsValue::dyn_into)
        })
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(controller) = &self.controller {
            controller.abort();
        }
    }
}

/// A caller's request as it goes to whichever origin.
pub(super) fn forwarded(
    request: &Request,
    head: &Head,
    call: &Call,
    door: &Door,
    body: &JsValue,
) -> Result<RequestInit, JsValue> {
    let asks = door.client_address.is_none();
    let client = asks.then(|| headers::seen_address(request)).flatten();
    let changes = gateway::forwarded_changes(head, call, door, client.as_deref());
    let init = plain(&headers::changed(request, &changes)?);
    init.set_method(&call.method);
    if !body.is_undefined() {
        init.set_body(body);
    }
    Ok(init)
}

/// A question whether there is somebody, or somebody who can work.
pub(super) fn sign_of_life(call: &Call, door: &Door) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    headers.set(request_id::HEADER, call.request_id.as_str())?;
    if let Some(secret) = &door.edge_secret {
        headers.set(EDGE_SECRET_HEADER, secret.text())?;
    }
    Ok(plain(&headers))
}

fn plain(headers: &Headers) -> RequestInit {
    let init = RequestInit::new();
    init.set_headers(headers.as_ref());
    init.set_redirect(web_sys::RequestRedirect::Manual);
    // Cloudflare keeps what looks like a file by itself, and would give it under another request's id.
    init.set_cache(web_sys::RequestCache::NoStore);
    init
}

/// Where the caller is, as far as the platform tells.
pub(super) fn place(request: &Request) -> Place {
    let platform = platform(request);
    ["continent", "country"].map(|name| Region::parse(&property(&platform, name)?))
}

/// What the platform tells of a request: `request.cf`.
fn platform(request: &Request) -> JsValue {
    Reflect::get(request, &"cf".into()).unwrap_or(JsValue::UNDEFINED)
}

fn property(object: &JsValue, name: &str) -> Option<String> {
    Reflect::get(object, &name.into()).ok()?.as_string()
}
