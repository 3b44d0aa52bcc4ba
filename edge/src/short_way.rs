//! The short way of requests that are only passed on: without a body, to the only origin, which answers soon and as it
//! should. JavaScript of a few lines (`entry.js`) asks for them, and nothing is set up to wait, to break off or to notice who leaves:
//! each of these costs the runtime more than all that is decided here. A caller who leaves takes his question along,
//! since the runtime ends with a request whatever it waits for. Every other request, and what turns out not to be so
//! simple on its way, goes on in `lib.rs`.
//!
//! Knows the worker's API; must not know what is decided about a request.

use crate::gateway::{self, Ending, Form, Head, OriginHead};
use crate::{Begun, go_on, headers, report};
use shared::request_id;
use std::cell::RefCell;
use std::fmt::Write as _;
use worker::js_sys::{Date, Promise};
use worker::wasm_bindgen::{self, JsError, JsValue, prelude::wasm_bindgen};
use worker::wasm_bindgen_futures::future_to_promise;
use worker::web_sys::Request;
use worker::{Context, Env, worker_sys};

thread_local! {
    static UNDER_WAY: RefCell<UnderWay> = RefCell::default();
}

/// Requests that go this way at once: more than Cloudflare gives an isolate, and some MB of its 128.
const UNDER_WAY_MAX: usize = 1_024;

/// Milliseconds beyond the patience of this way after which nobody comes for a request any more: its caller left, and
/// the runtime has forgotten it.
const FORGOTTEN_AFTER_MS: f64 = 30_000.0;

/// Those who wait for JavaScript, by numbers, the oldest first.
#[derive(Default)]
struct UnderWay {
    last: u32,
    list: Vec<(u32, Box<Begun>)>,
}

impl UnderWay {
    fn add(&mut self, begun: Begun) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.list.push((self.last, Box::new(begun)));
        self.last
    }

    fn at(&self, number: u32) -> Option<usize> {
        self.list.iter().position(|(here, _)| *here == number)
    }

    /// Whether there is place, once the forgotten are gone.
    fn has_place(&mut self, now: f64, patience_ms: f64) -> bool {
        let forgotten = now - patience_ms - FORGOTTEN_AFTER_MS;
        let oldest = self.list.first();
        if oldest.is_some_and(|(_, begun)| begun.started < forgotten) {
            self.list.retain(|(_, begun)| begun.started >= forgotten);
        }
        self.list.len() < UNDER_WAY_MAX
    }
}

/// Decides about a request, and tells its number; and if it is to go this way: the milliseconds for which JavaScript
/// waits, the key whose requests are counted, method, URL, and then names and values of headers. Each is a line.
///
/// # Errors
/// When the runtime has no randomness.
#[wasm_bindgen]
pub fn begin(head: String, request: &Request, env: &Env) -> Result<String, JsError> {
    let mut begun = Begun::new(Head::of_request(head), env)?;
    let plan = plan(&mut begun, request);
    let number = UNDER_WAY.with_borrow_mut(|under_way| under_way.add(begun));
    let mut text = plan.unwrap_or_default();
    text.insert_str(0, &number.to_string());
    Ok(text)
}

fn plan(begun: &mut Begun, request: &Request) -> Option<String> {
    let (gateway, decision) = (begun.gateway.as_ref().ok()?, begun.decision.as_ref().ok()?);
    let (head, call) = (&begun.head, &begun.call);
    if head.has_body() || !head.is_ascii() || !gateway.only_passes_on(call, decision) {
        return None;
    }
    let config = gateway.config();
    let patience = config.origin_connect_timeout.min(config.origin_timeout);
    let patience = patience.as_millis() as f64;
    UNDER_WAY
        .with_borrow_mut(|under_way| under_way.has_place(begun.started, patience))
        .then_some(())?;
    let pick = gateway.origins().choose_only(begun.started as u64)?;
    let target = call.target(gateway.origins().url(pick));
    let client = config.door.client_address.is_none();
    let client = client.then(|| headers::seen_address(request)).flatten();
    let changes = gateway::forwarded_changes(head, call, &config.door, client.as_deref());
    let mut text = String::with_capacity(1_024);
    // Writing to a string can't fail.
    let _ = write!(text, "\n{patience}\n");
    if config.door.rate_limit.is_some()
        && let Some(key) = begun.record.key()
    {
        let _ = write!(text, "{key}");
    }
    let _ = write!(text, "\n{}\n{target}", call.method);
    changes.write_changed(head, &mut text);
    begun.pick = Some(pick);
    Some(text)
}

/// What is changed in the origin's answer; none if it is not one to pass on.
#[wasm_bindgen]
#[must_use]
pub fn end(number: u32, head: String) -> Option<String> {
    let head = Head::of_answer(head);
    UNDER_WAY.with_borrow_mut(|under_way| {
        let at = under_way.at(number)?;
        let (_, begun) = under_way.list.get(at)?;
        let changes = ended(begun, &head)?;
        under_way.list.remove(at);
        Some(changes)
    })
}

fn ended(begun: &Begun, head: &Head) -> Option<String> {
    let (gateway, call) = (begun.gateway.as_ref().ok()?, &begun.call);
    let origin_head = OriginHead {
        status: head.status(),
        content_type: head.get("content-type"),
        request_id: head.get(request_id::HEADER),
    };
    gateway::judge(&origin_head, Form::at(&call.path), &call.request_id).ok()?;
    let now = Date::now();
    gateway.answered(begun.pick?, &begun.record, origin_head.status, now as u64);
    let waited_ms = now - begun.started;
    let ending = Ending {
        status: origin_head.status,
        total_ms: waited_ms,
        origin_ms: Some(waited_ms),
    };
    let config = gateway.config();
    let changes = gateway::origin_changes(head, call, &config.cors, &ending);
    report::answered(Some(config), &call.request_id, &begun.record, &ending);
    Some(changes.into_lines())
}

/// Goes the long way on, from wherever a request is; `asked` is what the origin was asked.
#[wasm_bindgen(js_name = goOn)]
pub fn take_over(
    number: u32,
    request: Request,
    env: Env,
    context: worker_sys::Context,
    asked: Option<Promise>,
) -> Promise {
    let begun = UNDER_WAY.with_borrow_mut(|under_way| {
        let at = under_way.at(number)?;
        Some(under_way.list.remove(at).1)
    });
    future_to_promise(async move {
        let Some(begun) = begun else {
            // The runtime forgets requests before this does.
            return Err(JsError::new("the request was forgotten").into());
        };
        let context = Context::new(context);
        let answering = go_on(&request, &env, &context, *begun, asked);
        answering.await.map(JsValue::from).map_err(JsValue::from)
    })
}
