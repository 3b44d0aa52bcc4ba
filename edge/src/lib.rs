//! The edge: a worker that verifies, refuses, forwards, and keeps every answer in the envelope.
//!
//! Only the files beside this one know the worker's API, but for `config` and `gateway`. This one turns requests
//! into [`gateway::Call`]s, has done what [`gateway::Gateway`] decides, and answers.

mod body;
mod cache;
mod cached_file;
mod cached_read;
pub mod config;
mod forward;
pub mod gateway;
mod headers;
mod leaving;
mod limit;
mod report;

use config::Config;
use forward::Forwarding;
use futures_util::future::{Either, select};
use gateway::{Answer, BodyLength, Call, Decision, Ending, Gateway, RequestRecord};
use headers::{Changes, Head};
use leaving::Leaving;
use shared::cors::CorsOrigins;
use shared::error::{ErrorCode, Problem};
use shared::media::FORGET_HEADER;
use shared::operation::tus::{self, TusHeaders};
use shared::request_id::{self, RequestId};
use shared::security;
use std::cell::OnceCell;
use std::pin::pin;
use std::rc::Rc;
use worker::js_sys::{Date, Reflect};
use worker::web_sys::{Headers, Request, Response};
use worker::{Context, Env, Result, console_error, event};

thread_local! {
    /// One an isolate: variables don't change within its life.
    static GATEWAY: OnceCell<Rc<Gateway>> = const { OnceCell::new() };
}

/// A reply, before the headers that every answer has.
enum Reply {
    Own(Answer),
    Origin(Response),
    /// One whose headers can be added to.
    Ready(Response),
}

impl Reply {
    fn status(&self) -> u16 {
        match self {
            Self::Own(answer) => answer.status(),
            Self::Origin(response) | Self::Ready(response) => response.status(),
        }
    }

    fn length(&self) -> BodyLength {
        match self {
            Self::Own(answer) => BodyLength::Known(answer.body().len() as u64),
            Self::Origin(response) => {
                let length = get(&response.headers(), "content-length");
                BodyLength::announced(length.as_deref())
            }
            Self::Ready(_) => BodyLength::Unknown,
        }
    }
}

/// Answers one request.
///
/// # Errors
/// When the runtime refuses to build a response, which no input can cause.
#[event(fetch)]
pub async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    let started = Date::now();
    let gateway = gateway(&env);
    let head = Head::read(&request);
    let call = read_call(&head, gateway.as_deref().ok())?;
    let mut record = RequestRecord::begin(&call.method);
    let mut forwarding = Forwarding::new(&request, &head, &call);
    let (gateway, reply) = match gateway {
        Ok(gateway) => {
            let reply = {
                let replying = reply(&gateway, &env, &mut forwarding, &mut record, &context);
                match select(pin!(replying), Leaving::of(&request, &context)).await {
                    Either::Left((reply, _)) => reply,
                    // Nobody gets it. With the rest of the request, its question to the origin is dropped.
                    Either::Right(_) => return Ok(Response::new()?),
                }
            };
            (Some(gateway), reply)
        }
        Err(problem) => (None, Err(problem)),
    };
    let reply = reply.unwrap_or_else(|problem| {
        record.refused(&problem);
        Reply::Own(Answer::problem(&problem, &call.request_id))
    });
    let origin_ms = forwarding.origin_ms();
    let ending = Ending {
        status: reply.status(),
        total_ms: Date::now() - started,
        origin_ms,
    };
    let cors = gateway.as_deref().map(|gateway| &gateway.config().cors);
    let response = dress(&reply, &call, cors, &ending)?;
    let response = match forwarding.unread()? {
        Some(rest) => body::answer_early(response, reply.length(), rest, &context)?,
        None => response,
    };
    let config = gateway.as_deref().map(Gateway::config);
    report::answered(&env, config, &call.request_id, &record, &ending);
    Ok(response)
}

/// The answer with the headers that every answer has.
fn dress(
    reply: &Reply,
    call: &Call,
    cors: Option<&CorsOrigins>,
    ending: &Ending,
) -> Result<Response> {
    let mut changes = Changes::default();
    match reply {
        Reply::Own(answer) => {
            // The origin's answers have theirs already.
            for (name, value) in answer.headers().chain(security::HEADERS) {
                changes.set(name, value);
            }
        }
        Reply::Origin(_) => {
            for name in gateway::NOT_ANSWERED {
                changes.delete(name);
            }
        }
        Reply::Ready(_) => {}
    }
    changes.set(request_id::HEADER, call.request_id.as_str());
    changes.append(
        "server-timing",
        &gateway::server_timing(ending.total_ms, ending.origin_ms),
    );
    if call.may_change_media() {
        changes.delete(FORGET_HEADER);
    }
    if call.is_https {
        let (name, value) = security::HTTPS_HEADER;
        changes.set(name, value);
    }
    for (name, value) in tus::answer_headers(&call.path, ending.status) {
        changes.set(name, value);
    }
    let cors = cors.map(|cors| cors.answer_headers(call.origin.as_deref()));
    for (name, value) in cors.into_iter().flatten() {
        match (name, reply) {
            // The origin's answer may depend on more.
            ("vary", Reply::Origin(response) | Reply::Ready(response)) => {
                let vary = get(&response.headers(), name);
                if !gateway::lists(vary.as_deref(), value) {
                    changes.append(name, value);
                }
            }
            ("vary", Reply::Own(_)) => changes.append(name, value),
            _ => changes.set(name, value),
        }
    }
    Ok(match reply {
        Reply::Own(answer) => changes.response(answer.status(), answer.body())?,
        Reply::Origin(response) => changes.of_response(response)?,
        Reply::Ready(response) => {
            changes.apply(response)?;
            // The same one: a response's own `clone` splits its body.
            Clone::clone(response)
        }
    })
}

async fn reply(
    gateway: &Rc<Gateway>,
    env: &Env,
    forwarding: &mut Forwarding<'_>,
    record: &mut RequestRecord,
    context: &Context,
) -> core::result::Result<Reply, Problem> {
    let call = forwarding.call();
    let now = (Date::now() / 1000.0) as u64;
    let decision = gateway.decide(call, now, record)?;
    if let Some(limit) = gateway.config().door.rate_limit {
        limit::check(env, limit, record, &call.request_id).await?;
    }
    let plan = match decision {
        Decision::Answer(answer) => return Ok(Reply::Own(answer)),
        Decision::Forward(plan) => plan,
        Decision::File(file) => {
            return cached_file::answer(gateway, forwarding, file, context).await;
        }
        Decision::Read(question) => {
            return cached_read::answer(gateway, forwarding, question, context).await;
        }
    };
    let response = forwarding.send(gateway, plan).await?;
    if response.status() == 401
        && let Some(key_id) = record.key()
    {
        gateway.revoked(key_id, Date::now() as u64);
    }
    if call.may_change_media() {
        cached_file::forget(&response, gateway.installation()).await;
    }
    Ok(Reply::Origin(response))
}

/// The isolate's gateway, made at its first request.
fn gateway(env: &Env) -> core::result::Result<Rc<Gateway>, Problem> {
    if let Some(gateway) = GATEWAY.with(|cell| cell.get().cloned()) {
        return Ok(gateway);
    }
    // Asked as a value: a variable that is bound but not set is null under plain workerd.
    let variable = |name: &str| Reflect::get(env, &name.into()).ok()?.as_string();
    let config = Config::read(variable).map_err(|error| {
        console_error!("the worker is not configured: {error}");
        Problem::new(
            ErrorCode::Internal,
            "The edge is not configured. Its log names the variable.",
        )
    })?;
    Ok(GATEWAY.with(|cell| Rc::clone(cell.get_or_init(|| Rc::new(Gateway::new(config))))))
}

fn read_call(head: &Head, gateway: Option<&Gateway>) -> Result<Call> {
    let (path, query) = gateway::split_url(head.url());
    let body = if head.has_body() {
        BodyLength::announced(head.get("content-length"))
    } else {
        BodyLength::Known(0)
    };
    let has_two_ends = head.has_body()
        && head.get("content-length").is_some()
        && head.get("transfer-encoding").is_some();
    let incoming = head.get(request_id::HEADER);
    let request_id = match incoming.and_then(RequestId::from_incoming) {
        Some(id) => id,
        None => new_request_id()?,
    };
    let get = |name: &str| head.get(name).map(str::to_owned);
    Ok(Call {
        method: head.method().to_owned(),
        is_https: head.url().starts_with("https:"),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        authorization: get("authorization"),
        content_type: get("content-type"),
        content_encoding: get("content-encoding"),
        accept: get("accept"),
        cache_control: gateway
            .filter(|gateway| gateway.keeps_reads())
            .and_then(|_| get("cache-control")),
        idempotency_key: get("idempotency-key"),
        if_match: get("if-match"),
        if_none_match: get("if-none-match"),
        tus: TusHeaders::read(path, get),
        origin: get("origin"),
        access_control_request_method: get("access-control-request-method"),
        body,
        has_two_ends,
        request_id,
    })
}

fn new_request_id() -> Result<RequestId> {
    let mut random = [0; 10];
    getrandom::getrandom(&mut random).map_err(|error| error.to_string())?;
    Ok(RequestId::generate(Date::now() as u64, &random))
}

/// Tells the origin's side that nobody reads on.
fn discard(response: &Response) {
    if let Some(body) = response.body() {
        // Nobody is left to tell if even that fails.
        let _ = body.cancel();
    }
}

/// A header's value; none for one that is not there.
fn get(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).ok().flatten()
}
