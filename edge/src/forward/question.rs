//! One question to an origin, as the worker's `fetch` has it: the head that goes out, and the wait for the head
//! that comes back. Knows the worker's API; must not know which origin is asked, or whether another one will be.

use crate::config::{Door, Region};
use crate::gateway::{self, Call, Place};
use crate::headers::{Changes, Head};
use shared::media::FORGETS_HEADER;
use shared::request_id;
use shared::security::EDGE_SECRET_HEADER;
use std::borrow::Cow;
use std::pin::Pin;
use std::task::{self, Poll};
use worker::js_sys::{self, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, AbortController, Headers, Request, RequestInit, Response};

/// A request under way, until the head of its answer is there. Dropped before that, it is broken off.
pub(super) struct Question {
    answer: JsFuture,
    controller: AbortController,
    is_open: bool,
}

impl Question {
    /// Sends a request.
    pub(super) fn ask(url: &str, init: &RequestInit) -> Result<Self, JsValue> {
        let controller = AbortController::new()?;
        init.set_signal(Some(&controller.signal()));
        let scope: web_sys::WorkerGlobalScope = js_sys::global().unchecked_into();
        Ok(Self {
            answer: JsFuture::from(scope.fetch_with_str_and_init(url, init)),
            controller,
            is_open: true,
        })
    }
}

impl Future for Question {
    type Output = Result<Response, JsValue>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| {
            self.is_open = false;
            answer.and_then(JsValue::dyn_into)
        })
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if self.is_open {
            self.controller.abort();
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
    let init = plain(&forwarded_headers(request, head, call, door)?);
    init.set_method(&call.method);
    if !body.is_undefined() {
        init.set_body(body);
    }
    Ok(init)
}

/// A question whether there is somebody.
pub(super) fn sign_of_life(call: &Call) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    headers.set(request_id::HEADER, call.request_id.as_str())?;
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

fn forwarded_headers(
    request: &Request,
    head: &Head,
    call: &Call,
    door: &Door,
) -> Result<Headers, JsValue> {
    let mut changes = Changes::default();
    let connection = head.get("connection").unwrap_or_default();
    let named = connection.split(',').map(str::trim);
    let named = named.filter(|name| gateway::may_be_of_connection(name));
    for name in gateway::NOT_FORWARDED.into_iter().chain(named) {
        // What is not there, or can't be, needs no deleting.
        if head.get(&name.to_ascii_lowercase()).is_some() {
            changes.delete(name);
        }
    }
    changes.set(request_id::HEADER, call.request_id.as_str());
    if let Some(client) = client_address(request, head, door) {
        changes.set(gateway::FORWARDED_FOR, &client);
    }
    if let Some(secret) = &door.edge_secret {
        changes.set(EDGE_SECRET_HEADER, secret.text());
    }
    if let Some((scheme, host)) = gateway::scheme_and_host(head.url()) {
        changes.set(gateway::FORWARDED_PROTO, scheme);
        changes.set(gateway::FORWARDED_HOST, host);
    }
    if call.may_change_media() {
        changes.set(FORGETS_HEADER, "1");
    }
    changes.of_request(request)
}

/// The caller's address: as the header says whom the configuration believes, else as plain workerd saw it.
fn client_address<'a>(request: &Request, head: &'a Head, door: &Door) -> Option<Cow<'a, str>> {
    if let Some(name) = &door.client_address {
        return head.get(name).map(Cow::Borrowed);
    }
    let address = property(&platform(request), "clientIp")?;
    Some(gateway::without_port(&address).to_owned().into())
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
