//! Forwards a request to origins that [`crate::core`] chooses one after the other, with timeouts and health checks.

mod exchange;
mod health_check;

use super::awaited::Awaited;
use super::body::{self, BodyPipe, Unread, WholeBody};
use super::timer::Timer;
use super::{discard, headers, log};
use crate::config::{AccessConfig, Config};
use crate::core::{
    self, Attempts, BodyLength, BodyPlan, Caller, CallerLocation, FailedAttempt, FailureCause, Form, Gateway,
    IncomingRequest, NoAnswer, OriginHead, Pick, ReadBody, Repeat, Slot, Timeouts, Todo,
};
use exchange::{Exchange, wait};
use futures_util::future::{Either, LocalBoxFuture, select};
use health_check::says_no_database;
use shared::error::Problem;
use shared::limits::{CHANGES_WAIT_MAX, EDGE_CHECKED_BODY_MAX_BYTES};
use shared::request_id;
use std::pin::pin;
use std::time::Duration;
use worker::js_sys::{self, Date};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{AbortController, Request, RequestInit, Response};

/// Interval of health checks while an origin receives a long body.
const SENDING_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum interval at which a waiting request polls for its slot: the platform forbids waking it from another request.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum bytes of a response that is held in memory because it came before the request's body was sent. The origin's
/// refusals are shorter. At most 500 requests with forged tokens have a slot, so their responses take at most 8 MB.
const HELD_MAX_BYTES: u64 = 16 * 1024;

pub(crate) struct OriginAnswer {
    pub(crate) response: Response,
    pub(crate) status: u16,
    pub(crate) headers: core::Headers,
}

impl OriginAnswer {
    fn read(response: Response) -> Self {
        Self { status: response.status(), headers: headers::of(&response.headers()), response }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// Returns the body's length after decoding, which is unknown if the body is compressed.
    pub(crate) fn length(&self) -> BodyLength {
        match self.header("content-encoding") {
            None => BodyLength::announced(self.header("content-length")),
            Some(_) => BodyLength::Unknown,
        }
    }

    /// Returns the body's length; `None` if the body is too long to hold in memory, compressed, or of unknown length.
    fn short_length(&self) -> Option<u64> {
        match self.length() {
            BodyLength::Known(bytes @ ..=HELD_MAX_BYTES) => Some(bytes),
            _ => None,
        }
    }

    /// Checks that the response comes from Selkie and not, for example, from a proxy. Fails as [`core::judge`] does.
    fn judge(&self, form: Form, incoming: &IncomingRequest) -> Result<(), Problem> {
        let head = OriginHead {
            status: self.status,
            content_type: self.header("content-type"),
            request_id: self.header(request_id::HEADER),
        };
        core::judge(&head, form, &incoming.request_id)
    }
}

pub(crate) struct Forwarding<'a> {
    request: &'a Request,
    incoming: &'a IncomingRequest,
    caller: Caller,
    pipe: Option<BodyPipe>,
    origin_ms: Option<f64>,
}

impl<'a> Forwarding<'a> {
    pub(crate) fn new(request: &'a Request, incoming: &'a IncomingRequest) -> Self {
        let caller = Caller::default();
        Self { request, incoming, caller, pipe: None, origin_ms: None }
    }

    /// Sets the caller for whom the request counts in [`Gateway::in_flight`].
    pub(crate) fn count_for(&mut self, caller: Caller) {
        self.caller = caller;
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the result of [`core::address_group`] for the client's address.
    pub(crate) fn address(&self, gateway: &Gateway) -> Box<str> {
        let access = &gateway.config().access;
        let seen = self.seen_address(access);
        core::address_group(core::client_address(self.incoming, access, seen.as_deref()))
    }

    /// Returns the client's address and port from the runtime; `None` if the configuration trusts a header instead.
    fn seen_address(&self, access: &AccessConfig) -> Option<String> {
        access.client_address.is_none().then(|| headers::seen_address(self.request)).flatten()
    }

    pub(crate) fn request(&self) -> &'a Request {
        self.request
    }

    pub(crate) fn incoming(&self) -> &'a IncomingRequest {
        self.incoming
    }

    /// Returns the milliseconds until the head of an origin's response arrived or forwarding failed; `None` if
    /// forwarding was not tried or is not finished.
    pub(crate) fn origin_ms(&self) -> Option<f64> {
        self.origin_ms
    }

    /// Sets the result of [`Forwarding::origin_ms`] for a request on whose behalf another request asked the origin.
    pub(crate) fn set_origin_ms(&mut self, origin_ms: Option<f64>) {
        self.origin_ms = origin_ms;
    }

    /// Returns the unread rest of the request's body if it must be drained or its pipe must end. `None` if the body was
    /// piped completely, or if [`body::whole`] has begun to read it.
    pub(crate) fn unread(mut self, gateway: &Gateway) -> Option<Unread> {
        let pipe = self.pipe.take();
        if !self.incoming.head.has_body || pipe.as_ref().is_some_and(BodyPipe::is_sent) {
            return None;
        }
        let drain = gateway.drain(self.incoming.body, self.address(gateway), now());
        match pipe {
            Some(pipe) if drain.is_none() && pipe.is_aborted() => None,
            Some(pipe) => Some(Unread::Piped(pipe, drain)),
            None if self.request.body_used() => None,
            None => Some(Unread::Whole { source: self.request.body()?, _drain: drain? }),
        }
    }

    /// Sends the request to an origin, and returns the response after checking that it comes from Selkie. A body that
    /// is read as a whole is read before the request waits for a slot, so that slow bodies occupy no slot.
    pub(crate) async fn send(&mut self, gateway: &Gateway, plan: BodyPlan) -> Result<OriginAnswer, Problem> {
        let repeat = plan.repeat(self.incoming);
        let checked = match plan {
            BodyPlan::Drop => return self.send_whole(gateway, JsValue::UNDEFINED, repeat).await,
            BodyPlan::Stream => return self.stream(gateway).await,
            BodyPlan::Check(checked) => Some(checked),
            BodyPlan::Whole(_) => None,
        };
        let Some(body) = self.whole_body(gateway).await? else {
            return self.stream(gateway).await;
        };
        if let Some(checked) = checked {
            checked.check(self.incoming.header("content-type"), &body.bytes())?;
        }
        self.send_whole(gateway, body.buffer.clone(), repeat).await
    }

    /// Like [`Forwarding::send`], but with a body that was read before, or without a body if `body` is `undefined`.
    pub(crate) async fn send_whole(
        &mut self,
        gateway: &Gateway,
        body: JsValue,
        repeat: Repeat,
    ) -> Result<OriginAnswer, Problem> {
        let _slot = self.slot(gateway).await?;
        self.send_read(gateway, body, repeat).await
    }

    /// Reads the request's whole body; `None` if it must be piped instead. Fails as [`body::whole`] does.
    pub(crate) async fn whole_body<'g>(&self, gateway: &'g Gateway) -> Result<Option<WholeBody<'g>>, Problem> {
        let length = match self.incoming.body {
            BodyLength::Known(bytes) => bytes,
            BodyLength::Unknown => EDGE_CHECKED_BODY_MAX_BYTES as u64,
        };
        if !gateway.bodies().have_room(length) {
            return Ok(None);
        }
        body::whole(self.request, self.counted(gateway, length)).await.map(Some)
    }

    /// Counts the memory for reading `length` bytes of the body.
    fn counted<'g>(&self, gateway: &'g Gateway, length: u64) -> ReadBody<'g> {
        gateway.bodies().begin(&self.caller, &self.address(gateway), length, now())
    }

    /// Waits until the request may be sent to an origin. Fails as [`core::Slot::is_granted`] does.
    pub(super) async fn slot<'g>(&self, gateway: &'g Gateway) -> Result<Slot<'g>, Problem> {
        let slot = gateway.in_flight().begin(&self.caller, now());
        let mut pauses = core::cache::pauses();
        while !slot.is_granted(now())? {
            Timer::from(pauses.next().unwrap_or(QUESTION_INTERVAL)).await;
        }
        Ok(slot)
    }

    /// Like [`Forwarding::send_whole`], for a request that has its slot.
    pub(super) async fn send_read(
        &mut self,
        gateway: &Gateway,
        body: JsValue,
        repeat: Repeat,
    ) -> Result<OriginAnswer, Problem> {
        // The future is boxed, so that its state machine is compiled once and not into each caller.
        let asking: LocalBoxFuture<'_, _> = Box::pin(self.ask(gateway, body, None, repeat));
        asking.await
    }

    /// Pipes the body to an origin. Awaits the body's first bytes before the request waits for a slot.
    async fn stream(&mut self, gateway: &Gateway) -> Result<OriginAnswer, Problem> {
        let Some(body) = self.request.body() else {
            return self.send_whole(gateway, JsValue::UNDEFINED, Repeat::IfUnsent).await;
        };
        let mut pipe = BodyPipe::begin(body, &self.counted(gateway, 0)).await?;
        let slot = self.slot(gateway).await;
        let started = slot.and_then(|slot| {
            let readable = pipe.start(self.incoming.body).map_err(|error| self.refused(&error))?;
            Ok((slot, JsValue::from(readable)))
        });
        let sending = pipe.sent();
        self.pipe = Some(pipe);
        let (_slot, readable) = started?;
        let asking: LocalBoxFuture<'_, _> = Box::pin(self.ask(gateway, readable, sending, Repeat::Never));
        let answer = asking.await;
        self.end_pipe(gateway, answer).await
    }

    /// Ends a request whose response came before its body was sent: reads the response, then aborts the request to the
    /// origin. Until the body ends, the runtime keeps the connection to the origin open and does not report the
    /// response's end.
    async fn end_pipe(
        &self,
        gateway: &Gateway,
        answer: Result<OriginAnswer, Problem>,
    ) -> Result<OriginAnswer, Problem> {
        let Some(pipe) = self.pipe.as_ref().filter(|pipe| !pipe.is_sent()) else {
            return answer;
        };
        let held = match answer {
            Err(problem) => Err(problem),
            Ok(answer) => match answer.short_length() {
                None => return Ok(answer),
                Some(length) => {
                    let reading = pin!(body::held(&answer.response, length));
                    let held = match select(reading, Timer::from(gateway.config().origin_timeout)).await {
                        Either::Left((held, _)) => held.map_err(|error| self.refused(&error)),
                        Either::Right(_) => Err(NoAnswer::Timeout.problem()),
                    };
                    held.map(|response| OriginAnswer { response, ..answer })
                }
            },
        };
        pipe.abort();
        held
    }

    /// Sends the request to one origin after the other until one answers or no further attempt is allowed. `sending` is
    /// the transfer of a streamed body; with it, timeouts count from the transfer's end.
    async fn ask(
        &mut self,
        gateway: &Gateway,
        body: JsValue,
        sending: Option<Awaited>,
        repeat: Repeat,
    ) -> Result<OriginAnswer, Problem> {
        let started = Date::now();
        let Config { origin_timeout, origin_connect_timeout, .. } = gateway.config();
        let wait = if self.caller.may_wait() { CHANGES_WAIT_MAX } else { Duration::ZERO };
        let [answer_ms, silence_ms] =
            [*origin_timeout + wait, *origin_connect_timeout].map(|time| time.as_millis() as u64);
        let timeouts = Timeouts { answer_ms, silence_ms };
        let attempts = Attempts::new(repeat, self.location(gateway), timeouts, started as u64);
        let outcome = Asking { gateway, forwarding: self, attempts }.run(&body, sending).await;
        self.origin_ms = Some(Date::now() - started);
        outcome
    }

    /// Returns the client's location. If no origin has a region, the location is not needed and is returned as unknown.
    fn location(&self, gateway: &Gateway) -> CallerLocation {
        match gateway.origins().have_regions() {
            true => headers::caller_location(self.request),
            false => [None; 2],
        }
    }

    /// Logs an error of the runtime that no request can cause, and returns an `origin_unreachable` problem.
    fn refused(&self, error: &JsValue) -> Problem {
        let problem = NoAnswer::Unreachable.problem();
        log::fault(&self.incoming.request_id, &problem, &js_message(error));
        problem
    }
}

/// Sends the requests and health checks that [`core::Attempts`] decides on.
struct Asking<'a> {
    gateway: &'a Gateway,
    forwarding: &'a Forwarding<'a>,
    attempts: Attempts,
}

impl Asking<'_> {
    async fn run(&mut self, body: &JsValue, mut sending: Option<Awaited>) -> Result<OriginAnswer, Problem> {
        let init = self.init(body)?;
        let gateway = self.gateway;
        let mut kept = None;
        loop {
            let todo = self.attempts.next(&mut gateway.origins(), now());
            let (pick, failed) = match todo {
                Todo::Check { pick, path, until } => {
                    let health = self.check(pick, path, until).await;
                    (pick, self.attempts.checked(&mut gateway.origins(), health, now()))
                }
                Todo::Send(pick) => match self.attempt(pick, &init, sending.take()).await {
                    Ok(answer) => {
                        let lacks_database = says_no_database(&answer);
                        let (is_kept, failed) =
                            self.attempts.answered(&mut gateway.origins(), pick, lacks_database, now());
                        match is_kept {
                            true => kept = Some(answer),
                            false => discard(&answer.response),
                        }
                        (pick, failed)
                    }
                    Err(failed) => (pick, Some(failed)),
                },
                Todo::Answer => return kept.ok_or_else(|| NoAnswer::Unreachable.problem()),
                Todo::Fail(problem) => return Err(problem),
            };
            if let Some(failed) = failed {
                if failed.cause != FailureCause::Client {
                    let cause = format!("origin={} {}", pick.number(), failed.runtime_message);
                    log::fault(&self.forwarding.incoming.request_id, &failed.problem, &cause);
                }
                self.attempts.failed(&mut gateway.origins(), pick, failed, now());
            }
        }
    }

    /// Builds method, headers and body of the request, which are the same for all origins.
    fn init(&self, body: &JsValue) -> Result<RequestInit, Problem> {
        let Forwarding { request, incoming, .. } = self.forwarding;
        let access = &self.gateway.config().access;
        let seen = self.forwarding.seen_address(access);
        let accepted = headers::accepted_codings(request, &incoming.head);
        let mut sent = core::forwarded(incoming, access, seen.as_deref());
        sent.push(("accept-encoding", &accepted));
        let init = headers::request_init(incoming.method(), &sent).map_err(|error| self.forwarding.refused(&error))?;
        if !body.is_undefined() {
            init.set_body(body);
        }
        Ok(init)
    }

    /// Sends the request to one origin and waits for the response's head. If the origin is silent for too long, checks
    /// the origin's health.
    async fn attempt(
        &mut self,
        pick: Pick,
        init: &RequestInit,
        sending: Option<Awaited>,
    ) -> Result<OriginAnswer, FailedAttempt> {
        let exchange = {
            let origins = self.gateway.origins();
            let url = self.forwarding.incoming.target(origins.url(pick));
            // The runtime aborts requests in flight when the client's request ends. A separate abort is only needed if
            // a second origin may be tried, to abort the first attempt, or if the client may break off a streamed body.
            match self.forwarding.pipe.as_ref().and_then(BodyPipe::request) {
                Some(piped) => Exchange::start_abortable(&url, init, piped.clone()),
                None if origins.is_one() => Exchange::start(&url, init),
                None => AbortController::new().and_then(|alone| Exchange::start_abortable(&url, init, alone)),
            }
        };
        let exchange = exchange.map_err(|error| self.broken(&error))?;
        let exchange = match sending {
            None => exchange,
            Some(sending) => match self.send_body(pick, exchange, sending).await? {
                Either::Left(answer) => return self.judged(answer),
                Either::Right(exchange) => exchange,
            },
        };
        self.attempts.arrived(now());
        let (is_silent, exchange) = match wait(exchange, self.attempts.silence_max(now())).await {
            Either::Left(answer) => return self.judged(answer),
            Either::Right(silent) => silent,
        };
        let until = self.attempts.doubts(&self.gateway.origins(), pick, now()).filter(|_| is_silent);
        let exchange = match until {
            None => exchange,
            Some(until) => match select(exchange, pin!(self.check_alive(pick, until))).await {
                Either::Left((answer, _)) => return self.judged(answer),
                Either::Right((Ok(()), exchange)) => exchange,
                Either::Right((Err(failed), _)) => return Err(failed),
            },
        };
        match select(exchange, Timer::from(self.attempts.left(now()))).await {
            Either::Left((answer, _)) => self.judged(answer),
            Either::Right(_) => Err(FailedAttempt::slow()),
        }
    }

    /// Waits until the body is sent, the origin stops reading, or the origin answers. Fails if the client breaks off
    /// the body or the origin fails a health check. Has no deadline as long as the origin passes health checks.
    async fn send_body(
        &self,
        pick: Pick,
        mut exchange: Exchange,
        mut sending: Awaited,
    ) -> Result<Either<Result<Response, JsValue>, Exchange>, FailedAttempt> {
        loop {
            let sent_or_late = select(sending, Timer::from(SENDING_CHECK_INTERVAL));
            match select(exchange, sent_or_late).await {
                Either::Left((answer, _)) => return Ok(Either::Left(answer)),
                Either::Right((Either::Left((sent, _)), exchange)) => {
                    match (sent, &self.forwarding.pipe) {
                        (Ok(_), Some(pipe)) => pipe.complete(),
                        (Err(_), Some(pipe)) if pipe.is_broken().await => {
                            return Err(FailedAttempt::broken_off(body::broken_off()));
                        }
                        _ => {}
                    }
                    return Ok(Either::Right(exchange));
                }
                Either::Right((Either::Right((_, rest)), waiting)) => {
                    let until = now() + self.gateway.config().origin_connect_timeout.as_millis() as u64;
                    self.check_alive(pick, until).await?;
                    (exchange, sending) = (waiting, rest);
                }
            }
        }
    }

    /// Returns an origin's response if it comes from Selkie; otherwise discards it and fails.
    fn judged(&self, answer: Result<Response, JsValue>) -> Result<OriginAnswer, FailedAttempt> {
        let response = answer.map_err(|error| self.broken(&error))?;
        let (answer, incoming) = (OriginAnswer::read(response), self.forwarding.incoming);
        answer.judge(Form::at(&incoming.path), incoming).map_err(|problem| {
            discard(&answer.response);
            FailedAttempt::foreign(answer.status, problem)
        })?;
        Ok(answer)
    }

    fn broken(&self, error: &JsValue) -> FailedAttempt {
        self.attempts.broken(&self.gateway.origins(), js_message(error))
    }
}

fn now() -> u64 {
    Date::now() as u64
}

fn js_message(error: &JsValue) -> String {
    error.dyn_ref::<js_sys::Error>().map_or_else(String::new, |error| String::from(error.message()))
}
