//! The edge: a worker that authenticates, refuses or forwards requests. This file shows the flow of a request: read its
//! head, decide, answer or ask an origin, add the common headers, log the request.
//!
//! [`core`] makes the decisions and is tested natively; only this file and `host` know the worker's API.

pub mod config;
pub mod core;
mod host;

use crate::core::{
    Answer, Caller, Decision, Gateway, Headers, IncomingRequest, RequestLog, RequestOutcome, answer_changes,
};
use config::Config;
use futures_util::future::{Either, select};
use host::client_abort::ClientAbort;
use host::origin_fetch::Forwarding;
use host::{Reply, body, cached, headers, log, polls, rate_limit, signature};
use shared::error::{CODE_HEADER, ErrorCode, Problem};
use std::cell::OnceCell;
use std::pin::pin;
use std::rc::Rc;
use worker::js_sys::{Date, Reflect};
use worker::web_sys::{Request, Response};
use worker::{Context, Env, Result, event};

thread_local! {
    /// The isolate's gateway, created by the first request. Variables don't change within an isolate's life.
    static GATEWAY: OnceCell<Rc<Gateway>> = const { OnceCell::new() };
}

/// Handles a request. Fails only if the runtime has no random bytes or can't build a response; no input causes that.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    let started = Date::now();
    let incoming = IncomingRequest::read(headers::of_request(&request), started as u64, random)?;
    let request_log = RequestLog::begin(incoming.method());
    let gateway = gateway(&env);
    let mut forwarding = Forwarding::new(&request, &incoming);
    let replied = match &gateway {
        Ok(gateway) => match decide(gateway, &incoming, started, &request_log).await {
            Ok(decision) => {
                let address = || forwarding.address(gateway);
                let caller = Caller::of(&request_log, &incoming, address);
                forwarding.count_for(caller);
                let replying = reply(gateway, &env, &mut forwarding, decision, &request_log, &context);
                match select(pin!(replying), ClientAbort::of(&request, &context)).await {
                    Either::Left((replied, _)) => replied,
                    // The client has disconnected. Returning here also drops the request to the origin.
                    Either::Right(_) => return Ok(Response::new()?),
                }
            }
            Err(problem) => Err(problem),
        },
        Err(problem) => Err(problem.clone()),
    };
    let reply = replied.unwrap_or_else(|problem| {
        request_log.refused(&problem);
        if let Some(cause) = problem.cause() {
            log::fault(&incoming.request_id, &problem, cause);
        }
        Reply::Own(Answer::problem(&problem, &incoming.request_id), None)
    });
    if let Reply::Origin(answer) = &reply
        && let Some(code) = answer.header(CODE_HEADER).and_then(ErrorCode::find)
    {
        request_log.failed(code);
    }
    let outcome =
        RequestOutcome { status: reply.status(), total_ms: Date::now() - started, origin_ms: forwarding.origin_ms() };
    let gateway = gateway.as_deref().ok();
    let length = reply.length();
    let response = add_common_headers(reply, &incoming, gateway.map(Gateway::config), &outcome)?;
    let response = match gateway.and_then(|gateway| forwarding.unread(gateway)) {
        Some(rest) => body::answer_early(response, length, rest, &context)?,
        None => response,
    };
    log::answered(gateway, &incoming, &request_log, &outcome);
    Ok(response)
}

async fn decide(
    gateway: &Gateway,
    incoming: &IncomingRequest,
    started: f64,
    request_log: &RequestLog,
) -> std::result::Result<Decision, Problem> {
    incoming.head.check()?;
    gateway.decide(incoming, (started / 1000.0) as u64, request_log, signature::has_signed).await
}

async fn reply(
    gateway: &Rc<Gateway>,
    env: &Env,
    forwarding: &mut Forwarding<'_>,
    decision: Decision,
    request_log: &RequestLog,
    context: &Context,
) -> std::result::Result<Reply, Problem> {
    let incoming = forwarding.incoming();
    if let Some(limit) = gateway.config().access.rate_limit {
        rate_limit::check(env, limit, request_log, &incoming.request_id).await?;
    }
    let plan = match decision {
        Decision::Answer(answer) => return Ok(Reply::Own(answer, None)),
        Decision::Forward(plan) => plan,
        Decision::Changes(principal, pending) => {
            return polls::answer(gateway, forwarding, &principal, pending).await;
        }
        Decision::Cached(cacheable) => return cached::answer(gateway, forwarding, cacheable, context).await,
    };
    let answer = forwarding.send(gateway, plan).await?;
    if answer.status == 401 {
        gateway.cache().learn(request_log.key(), answer.status, Date::now() as u64);
    }
    if incoming.may_change_media() {
        cached::purge(&answer, gateway.cache()).await;
    }
    Ok(Reply::Origin(answer))
}

/// Builds the runtime's response, with the headers that all responses have.
fn add_common_headers(
    reply: Reply,
    incoming: &IncomingRequest,
    config: Option<&Config>,
    outcome: &RequestOutcome,
) -> Result<Response> {
    let cors = config.map(|config| &config.cors);
    let changes = |headers: &Headers| answer_changes(headers, incoming, cors, outcome);
    Ok(match reply {
        Reply::Own(mut answer, stream) => {
            answer.apply(changes(&Headers::default()));
            headers::answer(&answer, stream.as_ref())?
        }
        Reply::Origin(answer) => headers::changed(&answer.response, &changes(&answer.headers))?,
    })
}

/// Returns the isolate's gateway; the first request creates it. Fails with `internal` if a variable is missing or
/// invalid.
fn gateway(env: &Env) -> std::result::Result<Rc<Gateway>, Problem> {
    if let Some(gateway) = GATEWAY.with(|cell| cell.get().cloned()) {
        return Ok(gateway);
    }
    // Raw values are read, because under plain workerd a variable that is bound but unset is null.
    let variable = |name: &str| Reflect::get(env, &name.into()).ok()?.as_string();
    let config = Config::read(variable).map_err(|error| {
        Problem::internal(
            "The edge is not configured. Its log names the variable.",
            format!("the worker is not configured: {error}"),
        )
    })?;
    log::bind(env);
    Ok(GATEWAY.with(|cell| Rc::clone(cell.get_or_init(|| Rc::new(Gateway::new(config))))))
}

fn random() -> Result<[u8; 10]> {
    let mut random = [0; 10];
    // The error's own text would bring those of all platforms into the worker.
    getrandom::getrandom(&mut random).map_err(|error| format!("no random numbers: {}", error.code()))?;
    Ok(random)
}
