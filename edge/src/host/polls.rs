//! Answers requests for changes. [`crate::core::polls`] decides which long polls share one request to an origin.
//!
//! The platform forbids that requests share streams or wake each other's futures. So the shared answer is a buffer, and
//! each waiting request awaits a promise of its own: the platform continues it in the request that created it.

use super::Reply;
use super::awaited::Awaited;
use super::body::{self, WholeBody};
use super::origin_fetch::{Forwarding, OriginAnswer};
use super::timer::Timer;
use crate::core::polls::{Ended, Lead, PollKey, Polls, Turn, Waiting, shareable_bytes};
use crate::core::{Answer, BodyPlan, Gateway, Headers, NoAnswer, Repeat};
use futures_util::future::{Either, select};
use shared::error::Problem;
use shared::key::Principal;
use shared::operation::{BodyUse, Pending};
use std::rc::Rc;
use std::time::Duration;
use worker::js_sys::{Date, Object, Promise};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{Response, ResponseInit};

/// How often a waiting request looks whether the lead still waits: the platform cancels requests without notice.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

thread_local! {
    static POLLS: Rc<Polls<Shared>> = Rc::default();
}

/// An origin's answer that several callers get.
#[derive(Clone)]
struct Shared {
    headers: Rc<Headers>,
    body: Object,
}

impl Shared {
    /// The origin's headers that are true for all callers.
    const HEADERS: [&'static str; 2] = ["content-length", "content-type"];

    fn reply(&self) -> Option<Reply> {
        let body = Response::new_with_opt_buffer_source(Some(&self.body)).ok()?.body();
        Some(Reply::Own(Answer::new(200).with_those(&self.headers, &Self::HEADERS), body))
    }
}

struct Poll<'a> {
    gateway: &'a Gateway,
    principal: &'a Principal,
    body: JsValue,
}

pub(crate) async fn answer(
    gateway: &Gateway,
    forwarding: &mut Forwarding<'_>,
    principal: &Principal,
    pending: Pending,
) -> Result<Reply, Problem> {
    let whole = match pending.body() {
        BodyUse::None => None,
        _ => match forwarding.whole_body(gateway).await? {
            Some(whole) => Some(whole),
            None => return forwarding.send(gateway, BodyPlan::Stream).await.map(Reply::Origin),
        },
    };
    let operation = pending.finish(&whole.as_ref().map_or_else(Vec::new, WholeBody::bytes))?;
    let body = whole.as_ref().map_or(JsValue::UNDEFINED, |whole| whole.buffer.clone());
    let _slot = forwarding.slot(gateway).await?;
    let poll = Poll { gateway, principal, body };
    match PollKey::of(principal, &operation) {
        Some(key) => poll.share(forwarding, key).await,
        None => poll.ask(forwarding).await.map(Reply::Origin),
    }
}

impl Poll<'_> {
    async fn share(&self, forwarding: &mut Forwarding<'_>, key: PollKey) -> Result<Reply, Problem> {
        loop {
            match POLLS.with(|polls| Polls::join(polls, key, now_ms())) {
                Turn::Lead(lead) => return self.lead(forwarding, lead).await.map(Reply::Origin),
                Turn::Alone => break,
                Turn::Wait(waiting) => match ended(&waiting).await {
                    Ended::Abandoned => {}
                    Ended::Answered(shared) => match shared.reply() {
                        Some(reply) => return Ok(reply),
                        None => break,
                    },
                    Ended::Unshared => break,
                },
            }
        }
        self.ask(forwarding).await.map(Reply::Origin)
    }

    async fn ask(&self, forwarding: &mut Forwarding<'_>) -> Result<OriginAnswer, Problem> {
        let asked_ms = now_ms();
        let answer = forwarding.send_read(self.gateway, self.body.clone(), Repeat::Always).await?;
        self.gateway.cache().learn(Some(self.principal.key_id()), answer.status, asked_ms);
        Ok(answer)
    }

    /// Asks an origin on behalf of all who wait. If this request's client disconnects, another one leads.
    async fn lead(&self, forwarding: &mut Forwarding<'_>, lead: Lead<Shared>) -> Result<OriginAnswer, Problem> {
        // Others may not accept a content coding (compression).
        let incoming = forwarding.incoming().without("accept-encoding");
        let mut asking = Forwarding::new(forwarding.request(), &incoming);
        asking.count_for(forwarding.caller().clone());
        let answer = self.ask(&mut asking).await;
        forwarding.set_origin_ms(asking.origin_ms());
        let bytes = answer.as_ref().ok().and_then(|answer| shareable_bytes(answer.status, &answer.headers));
        let (answer, bytes) = match (answer, bytes) {
            (Ok(answer), Some(bytes)) => (answer, bytes),
            (answer, _) => {
                lead.unshared();
                return answer;
            }
        };
        let body = match body::buffer(&answer.response, self.gateway.config().origin_timeout).await {
            Ok(body) => body,
            Err(problem) => {
                lead.unshared();
                return Err(problem);
            }
        };
        let init: &ResponseInit = answer.response.unchecked_ref();
        let copy = Response::new_with_opt_buffer_source_and_init(Some(&body), init);
        lead.answered(Shared { headers: Rc::new(answer.headers.clone()), body }, bytes);
        copy.map(|response| OriginAnswer { response, ..answer }).map_err(|_| NoAnswer::Unreachable.problem())
    }
}

/// Waits until the flight ends.
async fn ended(waiting: &Waiting<Shared>) -> Ended<Shared> {
    let mut woken = Awaited::from(Promise::new(&mut |resolve, _| {
        waiting.wake_by(Box::new(move || {
            // An error is ignored: the promise's request may have ended.
            let _ = resolve.call0(&JsValue::UNDEFINED);
        }));
    }));
    loop {
        if let Some(ended) = waiting.ended(now_ms()) {
            return ended;
        }
        woken = match select(woken, Timer::from(LOOK_INTERVAL)).await {
            Either::Left((_, _)) => return waiting.ended(now_ms()).unwrap_or(Ended::Abandoned),
            Either::Right((_, woken)) => woken,
        };
    }
}

fn now_ms() -> u64 {
    Date::now() as u64
}
