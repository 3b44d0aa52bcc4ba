//! A request's way to the origin: its head, its body as planned, and the wait for the head of the answer.
//!
//! Knows the worker's API; must not decide what is forwarded, which is [`gateway`](mod@crate::gateway)'s.

use crate::body::{self, Inlet, Passage, Stop};
use crate::config::Config;
use crate::gateway::{self, BodyPlan, Call, Fault, Upload};
use crate::headers::{Changes, Head};
use crate::report;
use futures_util::future::{Either, ready, select};
use shared::error::Problem;
use shared::operation::Pending;
use shared::request_id;
use std::pin::pin;
use worker::Delay;
use worker::js_sys::{self, Date};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, AbortController, Headers, Request, Response};

/// One request on its way.
pub(crate) struct Forwarding<'a> {
    request: &'a Request,
    head: &'a Head,
    call: &'a Call,
    inlet: Option<Inlet>,
    origin_ms: Option<f64>,
}

impl<'a> Forwarding<'a> {
    pub(crate) fn new(request: &'a Request, head: &'a Head, call: &'a Call) -> Self {
        Self {
            request,
            head,
            call,
            inlet: None,
            origin_ms: None,
        }
    }

    pub(crate) fn call(&self) -> &'a Call {
        self.call
    }

    /// Milliseconds from the question to the head of the answer, if the origin was asked.
    pub(crate) fn origin_ms(&self) -> Option<f64> {
        self.origin_ms
    }

    /// What the caller still sends, or may send.
    pub(crate) fn unread(self) -> Result<Option<Inlet>, JsValue> {
        if !self.head.has_body() {
            return Ok(None);
        }
        match (self.inlet, self.request.body()) {
            (Some(inlet), _) => Ok(Some(inlet).filter(Inlet::is_open)),
            (None, Some(body)) if !self.request.body_used() => Inlet::open(&body).map(Some),
            (None, _) => Ok(None),
        }
    }

    /// Sends the request and gives the head of the answer.
    pub(crate) async fn send(
        &mut self,
        config: &Config,
        plan: BodyPlan,
    ) -> Result<Response, Problem> {
        let nothing_more = ready(Ok(()));
        match plan {
            BodyPlan::Drop => self.ask(config, JsValue::UNDEFINED, nothing_more).await,
            BodyPlan::Check(pending) => {
                let body = self.checked(pending).await?;
                self.ask(config, body, nothing_more).await
            }
            BodyPlan::Stream => self.pass(config, None).await,
            BodyPlan::Upload(upload) => self.pass(config, Some(upload)).await,
        }
    }

    /// A body that was read whole and found right: the same bytes, from where the runtime holds them.
    async fn checked(&self, pending: Pending) -> Result<JsValue, Problem> {
        let (buffer, bytes) = body::whole(self.request).await?;
        gateway::check_body(pending, &bytes)?;
        Ok(if bytes.is_empty() {
            JsValue::UNDEFINED
        } else {
            buffer
        })
    }

    /// Sends the body on while it arrives.
    async fn pass(&mut self, config: &Config, upload: Option<Upload>) -> Result<Response, Problem> {
        let Some(body) = self.request.body() else {
            if let Some(upload) = upload {
                upload.finish()?;
            }
            return self.ask(config, JsValue::UNDEFINED, ready(Ok(()))).await;
        };
        let mut inlet = Inlet::open(&body).map_err(|error| self.unreachable(&error))?;
        let passage =
            Passage::new(&mut inlet, self.call.body).map_err(|error| self.unreachable(&error))?;
        let readable = JsValue::from(passage.readable());
        let outcome = self.ask(config, readable, passage.run(upload)).await;
        self.inlet = Some(inlet);
        outcome
    }

    /// Asks the origin. Its time runs only once `sending` is over; if it answers before, that is the answer.
    async fn ask(
        &mut self,
        config: &Config,
        body: JsValue,
        sending: impl Future<Output = Result<(), Stop>>,
    ) -> Result<Response, Problem> {
        let asked = Date::now();
        let outcome = self.converse(config, &body, sending).await;
        self.origin_ms = Some(Date::now() - asked);
        outcome
    }

    async fn converse(
        &self,
        config: &Config,
        body: &JsValue,
        sending: impl Future<Output = Result<(), Stop>>,
    ) -> Result<Response, Problem> {
        let unreachable = |error| self.unreachable(&error);
        let controller = AbortController::new().map_err(unreachable)?;
        let init = web_sys::RequestInit::new();
        init.set_method(&self.call.method);
        let headers = forwarded_headers(self.request, self.head, self.call).map_err(unreachable)?;
        init.set_headers(headers.as_ref());
        init.set_redirect(web_sys::RequestRedirect::Manual);
        // Cloudflare keeps what looks like a file by itself, and would give it under another request's id.
        init.set_cache(web_sys::RequestCache::NoStore);
        init.set_signal(Some(&controller.signal()));
        if !body.is_undefined() {
            init.set_body(body);
        }
        let scope: web_sys::WorkerGlobalScope = js_sys::global().unchecked_into();
        let target = self.call.target(&config.origin_url);
        let answer = JsFuture::from(scope.fetch_with_str_and_init(&target, &init));
        let stop = match select(answer, pin!(sending)).await {
            Either::Left((answer, _)) => {
                return answer.and_then(JsValue::dyn_into).map_err(unreachable);
            }
            Either::Right((Err(stop), _)) => stop,
            Either::Right((Ok(()), answer)) => {
                match select(answer, Delay::from(config.origin_timeout)).await {
                    Either::Left((answer, _)) => {
                        return answer.and_then(JsValue::dyn_into).map_err(unreachable);
                    }
                    Either::Right(_) => Stop::Stalled,
                }
            }
        };
        controller.abort();
        Err(match stop {
            Stop::Refused(problem) => problem,
            Stop::Stalled => {
                let problem = Fault::Timeout.problem();
                report::fault(&self.call.request_id, &problem, "");
                problem
            }
        })
    }

    fn unreachable(&self, error: &JsValue) -> Problem {
        let problem = Fault::Unreachable.problem();
        report::fault(&self.call.request_id, &problem, &js_message(error));
        problem
    }
}

fn forwarded_headers(request: &Request, head: &Head, call: &Call) -> Result<Headers, JsValue> {
    let mut changes = Changes::default();
    let connection = head.get("connection").unwrap_or_default();
    let named = connection.split(',').map(str::trim);
    for name in gateway::NOT_FORWARDED.into_iter().chain(named) {
        if head.has(&name.to_ascii_lowercase()) {
            changes.delete(name);
        }
    }
    changes.set(request_id::HEADER, call.request_id.as_str());
    if let Some(client) = head.get(gateway::CLIENT_ADDRESS) {
        changes.set(gateway::FORWARDED_FOR, client);
    }
    if let Some((scheme, host)) = gateway::scheme_and_host(head.url()) {
        changes.set(gateway::FORWARDED_PROTO, scheme);
        changes.set(gateway::FORWARDED_HOST, host);
    }
    changes.of_request(request)
}

fn js_message(error: &JsValue) -> String {
    error
        .dyn_ref::<js_sys::Error>()
        .map_or_else(String::new, |error| String::from(error.message()))
}
