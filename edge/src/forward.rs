//! A request's way to the origins: its body as planned, one origin after the other, and the waits for the head of
//! an answer.
//!
//! Knows the worker's API; must not decide what is forwarded or to whom, which is
//! [`gateway`](mod@crate::gateway)'s.

mod question;
mod sign;

use crate::body::{self, BodyPipe, Unread};
use crate::gateway::{
    self, Blame, BodyPlan, Call, Fault, Form, Gateway, Head, Miss, OriginHead, Pick, Place,
    READINESS_PATH, Repeat, Tried,
};
use crate::{discard, get, report};
use futures_util::future::{Either, LocalBoxFuture, select};
use question::Question;
use shared::error::Problem;
use shared::operation::Pending;
use shared::request_id;
use sign::Sign;
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;
use worker::Delay;
use worker::js_sys::{self, Date, Promise};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{Request, RequestInit, Response};

/// Origins to which one request is sent: a second one, if the first failed and it does no harm.
const ATTEMPTS_MAX: u32 = 2;

/// How often an origin that takes a body is asked whether it lives.
const SENDING_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// One request on its way.
pub(crate) struct Forwarding<'a> {
    request: &'a Request,
    head: &'a Head,
    call: &'a Call,
    pipe: Option<BodyPipe>,
    /// Whether the piped body was taken to its end.
    is_sent: Cell<bool>,
    origin_ms: Option<f64>,
    asked: Option<Asked>,
}

/// What an origin was asked on the short way.
pub(crate) struct Asked {
    pub(crate) pick: Pick,
    pub(crate) answer: Promise,
    /// In milliseconds since 1970.
    pub(crate) at: f64,
}

impl<'a> Forwarding<'a> {
    pub(crate) fn new(request: &'a Request, head: &'a Head, call: &'a Call) -> Self {
        Self {
            request,
            head,
            call,
            pipe: None,
            is_sent: Cell::new(false),
            origin_ms: None,
            asked: None,
        }
    }

    /// With an origin that was asked already.
    pub(crate) fn asked(mut self, asked: Option<Asked>) -> Self {
        self.asked = asked;
        self
    }

    /// Whether an origin was asked already.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    pub(crate) fn request(&self) -> &'a Request {
        self.request
    }

    pub(crate) fn call(&self) -> &'a Call {
        self.call
    }

    /// Milliseconds from the first question to the head of the answer, if an origin was asked.
    pub(crate) fn origin_ms(&self) -> Option<f64> {
        self.origin_ms
    }

    /// What the caller still sends, or may send.
    pub(crate) fn unread(self) -> Option<Unread> {
        if !self.head.has_body() || self.is_sent.get() {
            return None;
        }
        match self.pipe {
            Some(pipe) => Some(Unread::Piped(pipe)),
            None if self.request.body_used() => None,
            None => self.request.body().map(Unread::Whole),
        }
    }

    /// Sends the request and gives the head of an answer of Selkie's own.
    pub(crate) async fn send(
        &mut self,
        gateway: &Gateway,
        plan: BodyPlan,
    ) -> Result<Response, Problem> {
        let repeat = plan.repeat(self.call);
        match plan {
            BodyPlan::Drop => self.send_whole(gateway, JsValue::UNDEFINED, repeat).await,
            BodyPlan::Check(pending) => {
                let body = self.checked(pending).await?;
                self.send_whole(gateway, body, repeat).await
            }
            BodyPlan::Stream => self.pass(gateway).await,
        }
    }

    /// Sends the request with a body that was read whole before, or without one.
    pub(crate) async fn send_whole(
        &mut self,
        gateway: &Gateway,
        body: JsValue,
        repeat: Repeat,
    ) -> Result<Response, Problem> {
        // Boxed, so that it becomes part of the worker once, not with each of its callers.
        let asking: LocalBoxFuture<'_, _> = Box::pin(self.ask(gateway, body, None, repeat));
        asking.await
    }

    /// Another one asked the origin on behalf of this, and waited so long.
    pub(crate) fn asked_for_it(&mut self, origin_ms: Option<f64>) {
        self.origin_ms = origin_ms;
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
    async fn pass(&mut self, gateway: &Gateway) -> Result<Response, Problem> {
        let Some(body) = self.request.body() else {
            return self
                .send_whole(gateway, JsValue::UNDEFINED, Repeat::IfUntaken)
                .await;
        };
        let pipe = BodyPipe::start(body, self.call.body).map_err(|error| self.fault(&error))?;
        let (readable, sending) = (JsValue::from(pipe.readable()), pipe.sent());
        self.pipe = Some(pipe);
        self.ask(gateway, readable, Some(sending), Repeat::Never)
            .await
    }

    /// Asks the origins. Their time runs only once `sending` is over; if one answers before, that is the answer.
    async fn ask(
        &mut self,
        gateway: &Gateway,
        body: JsValue,
        sending: Option<JsFuture>,
        repeat: Repeat,
    ) -> Result<Response, Problem> {
        let asked = self.asked.take();
        let asked_at = asked.as_ref().map_or_else(Date::now, |asked| asked.at);
        let turn = Turn {
            gateway,
            forwarding: self,
            repeat,
        };
        let outcome = turn.run(&body, sending, asked).await;
        self.origin_ms = Some(Date::now() - asked_at);
        outcome
    }

    /// The runtime refused something that no input can make it refuse.
    fn fault(&self, error: &JsValue) -> Problem {
        let problem = Fault::Unreachable.problem();
        report::fault(&self.call.request_id, &problem, &js_message(error));
        problem
    }
}

/// One request, and the origins in turn.
struct Turn<'a> {
    gateway: &'a Gateway,
    forwarding: &'a Forwarding<'a>,
    repeat: Repeat,
}

impl Turn<'_> {
    async fn run(
        &self,
        body: &JsValue,
        mut sending: Option<JsFuture>,
        mut asked: Option<Asked>,
    ) -> Result<Response, Problem> {
        let init = self.init(body)?;
        let place = self.place();
        let mut until = self.time_out(asked.as_ref().map_or_else(Date::now, |asked| asked.at));
        let mut tried = Tried::default();
        let mut attempts = 0;
        let mut refusal = None;
        loop {
            let asked = asked.take();
            let pick = match &asked {
                Some(asked) => Some(asked.pick),
                None => self.gateway.origins().choose(tried, place, now()),
            };
            let Some(pick) = pick else {
                return Err(refusal.unwrap_or_else(|| self.gateway.origins().unavailable(now())));
            };
            tried.add(pick);
            let sign = match asked {
                None if self.wants_sign(pick) => {
                    let path = self.gateway.origins().sign_path(pick);
                    self.sign(pick, path, until).await
                }
                _ => Sign::Well,
            };
            let miss = if sign == Sign::NoDatabase {
                self.gateway.origins().lost_database(pick, now());
                continue;
            } else if sign == Sign::None {
                Miss::untaken()
            } else {
                attempts += 1;
                let question = match asked {
                    Some(asked) => Ok((Question::sent(asked.answer), asked.at)),
                    None => self
                        .question(pick, &init)
                        .map(|question| (question, Date::now())),
                };
                let sending = sending.take();
                match self.attempt(pick, question, sending, &mut until).await {
                    Ok(response) if self.lacks_database(&response) => {
                        let miss = Miss::without_database();
                        if !miss.may_be_repeated(self.repeat) {
                            self.note(pick, &miss).await;
                            return Ok(response);
                        }
                        discard(&response);
                        // It answered at once: there is time for all of the others.
                        attempts -= 1;
                        miss
                    }
                    Ok(response) => {
                        self.gateway.origins().answered(pick, now());
                        return Ok(response);
                    }
                    Err(miss) => miss,
                }
            };
            self.note(pick, &miss).await;
            let may_be_repeated = attempts == 0 || miss.may_be_repeated(self.repeat);
            if self.gateway.origins().is_one() || !may_be_repeated {
                return Err(miss.problem(self.repeat));
            }
            if miss.is_of_caller() {
                refusal = Some(miss.problem);
            }
            if attempts == ATTEMPTS_MAX || left(until).is_zero() {
                return Err(refusal.unwrap_or_else(|| self.gateway.origins().unavailable(now())));
            }
        }
    }

    /// Builds the request that is sent to an origin; it is the same for each of them.
    fn init(&self, body: &JsValue) -> Result<RequestInit, Problem> {
        let forwarding = self.forwarding;
        let door = &self.gateway.config().door;
        let (request, head, call) = (forwarding.request, forwarding.head, forwarding.call);
        question::forwarded(request, head, call, door, body)
            .map_err(|error| forwarding.fault(&error))
    }

    /// Where the caller is, if any origin has a region.
    fn place(&self) -> Place {
        match self.gateway.origins().have_regions() {
            true => question::place(self.forwarding.request),
            false => [None; 2],
        }
    }

    /// Sends the request to one origin.
    fn question(&self, pick: Pick, init: &RequestInit) -> Result<Question, Miss> {
        let call = self.forwarding.call;
        let target = call.target(self.gateway.origins().url(pick));
        Question::ask(&target, init).map_err(|error| self.broken(&error))
    }

    /// Waits for the answer of one origin, which was asked then.
    async fn attempt(
        &self,
        pick: Pick,
        question: Result<(Question, f64), Miss>,
        sending: Option<JsFuture>,
        until: &mut f64,
    ) -> Result<Response, Miss> {
        let (question, mut asked_at) = question?;
        let question = match sending {
            None => question,
            Some(sending) => match self.send_body(pick, question, sending).await? {
                Either::Left(answer) => return self.judged(answer),
                Either::Right(question) => question,
            },
        };
        if self.repeat == Repeat::Never {
            // All of the body is out only now.
            asked_at = Date::now();
            *until = self.time_out(asked_at);
        }
        let patience = self.patience(*until, asked_at);
        let question = match select(question, Delay::from(patience)).await {
            Either::Left((answer, _)) => return self.judged(answer),
            Either::Right((_, question)) => question,
        };
        let is_seen = self.gateway.origins().is_seen_since(pick);
        // What is left must do for a sign, or a slow statement would pass for a dead origin.
        let is_late = left(*until) < self.gateway.config().origin_connect_timeout;
        let question = if is_seen || is_late {
            question
        } else {
            match select(question, pin!(self.gives_sign(pick, *until))).await {
                Either::Left((answer, _)) => return self.judged(answer),
                Either::Right((true, question)) => question,
                Either::Right((false, _)) => return Err(Miss::silent()),
            }
        };
        match select(question, Delay::from(left(*until))).await {
            Either::Left((answer, _)) => self.judged(answer),
            Either::Right(_) => Err(Miss::slow()),
        }
    }

    /// Waits until the body is sent, or the origin answers before. Time does not count while an origin that lives takes
    /// a body; whether it lives is asked now and then.
    async fn send_body(
        &self,
        pick: Pick,
        mut question: Question,
        mut sending: JsFuture,
    ) -> Result<Either<Result<Response, JsValue>, Question>, Miss> {
        loop {
            let sent_or_late = select(sending, Delay::from(SENDING_CHECK_INTERVAL));
            match select(question, sent_or_late).await {
                Either::Left((answer, _)) => return Ok(Either::Left(answer)),
                Either::Right((Either::Left((sent, _)), question)) => {
                    self.forwarding.is_sent.set(sent.is_ok());
                    return Ok(Either::Right(question));
                }
                Either::Right((Either::Right((_, rest)), waiting)) => {
                    let patience = self.gateway.config().origin_connect_timeout;
                    let until = Date::now() + patience.as_millis() as f64;
                    if !self.gives_sign(pick, until).await {
                        return Err(Miss::silent());
                    }
                    (question, sending) = (waiting, rest);
                }
            }
        }
    }

    /// Lets an answer of Selkie's own pass.
    fn judged(&self, answer: Result<Response, JsValue>) -> Result<Response, Miss> {
        let response = answer.map_err(|error| self.broken(&error))?;
        let call = self.forwarding.call;
        judge(&response, Form::at(&call.path), call).map_err(|problem| {
            discard(&response);
            Miss::foreign(response.status(), problem)
        })?;
        Ok(response)
    }

    fn broken(&self, error: &JsValue) -> Miss {
        // Who refuses a body before its end, and closes, breaks the connection too. And the only origin is not
        // shut to everybody for a connection that both sides happened to use and to close at one time.
        let is_unsure = self.repeat == Repeat::Never || self.gateway.origins().is_one();
        let blame = if is_unsure {
            Blame::Unsure
        } else {
            Blame::Origin
        };
        Miss::broken(blame, js_message(error))
    }

    /// Remembers and logs a failed attempt.
    async fn note(&self, pick: Pick, miss: &Miss) {
        // However little of the request's own time is left: others are to go there.
        let patience = self.gateway.config().origin_connect_timeout;
        let until = Date::now() + patience.as_millis() as f64;
        match miss.blame {
            Blame::Origin => self.gateway.origins().failed(pick, now()),
            Blame::Unsure => {
                if !self.gives_sign(pick, until).await {
                    self.gateway.origins().failed(pick, now());
                }
            }
            // One caller's statement may have lost its own connection only.
            Blame::Database => match self.sign(pick, READINESS_PATH, until).await {
                Sign::Well => self.gateway.origins().answered(pick, now()),
                Sign::NoDatabase | Sign::None => {
                    self.gateway.origins().lost_database(pick, now());
                }
            },
            Blame::Nobody => {}
        }
        let cause = format!("origin={} {}", pick.number(), miss.cause);
        report::fault(&self.forwarding.call.request_id, &miss.problem, &cause);
    }

    /// When the head of an answer to a question of that time must be there, in milliseconds since 1970.
    fn time_out(&self, asked_at: f64) -> f64 {
        asked_at + self.gateway.config().origin_timeout.as_millis() as f64
    }

    /// How long an origin that was asked then may give no sign of life.
    fn patience(&self, until: f64, asked_at: f64) -> Duration {
        let silence_max = self.gateway.config().origin_connect_timeout;
        left(until.min(asked_at + silence_max.as_millis() as f64))
    }
}

fn judge(response: &Response, form: Form, call: &Call) -> Result<(), Problem> {
    let headers = response.headers();
    let (content_type, request_id) = (
        get(&headers, "content-type"),
        get(&headers, request_id::HEADER),
    );
    let head = OriginHead {
        status: response.status(),
        content_type: content_type.as_deref(),
        request_id: request_id.as_deref(),
    };
    gateway::judge(&head, form, &call.request_id)
}

fn now() -> u64 {
    Date::now() as u64
}

fn left(until: f64) -> Duration {
    Duration::from_millis((until - Date::now()).max(0.0) as u64)
}

fn js_message(error: &JsValue) -> String {
    error
        .dyn_ref::<js_sys::Error>()
        .map_or_else(String::new, |error| String::from(error.message()))
}
