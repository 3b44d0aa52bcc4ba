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
pub mod short_way;

use config::Config;
use forward::{Asked, Forwarding};
use futures_util::future::{Either, select};
use gateway::{
    Answer, BodyLength, Call, Changes, Decision, Ending, Gateway, Head, Pick, RequestRecord,
};
use leaving::Leaving;
use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::operation::tus;
use shared::request;
use shared::request_id::{self, RequestId};
use shared::security;
use std::cell::OnceCell;
use std::pin::pin;
use std::rc::Rc;
use worker::js_sys::{Date, Promise, Reflect};
use worker::web_sys::{Headers, Request, Response};
use worker::{Context, Env, Result};

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

/// A request about which is decided.
pub(crate) struct Begun {
    gateway: core::result::Result<Rc<Gateway>, Problem>,
    head: Head,
    call: Call,
    record: RequestRecord,
    /// In milliseconds since 1970.
    started: f64,
    decision: core::result::Result<Decision, Problem>,
    /// Who was asked on the short way.
    pick: Option<Pick>,
}

impl Begun {
    fn new(head: Head, env: &Env) -> Result<Self> {
        let started = Date::now();
        let gateway = gateway(env);
        let call = read_call(&head, gateway.as_deref().ok(), started as u64)?;
        let mut record = RequestRecord::begin(&call.method);
        let decision = match &gateway {
            Ok(gateway) => head
                .check()
                .and_then(|()| gateway.decide(&call, (started / 1000.0) as u64, &mut record)),
            Err(problem) => Err(problem.clone()),
        };
        Ok(Self {
            gateway,
            head,
            call,
            record,
            started,
            decision,
            pick: None,
        })
    }
}

/// Answers a request from wherever it is; `asked` is what the origin was asked on the short way.
///
/// # Errors
/// When the runtime refuses to build a response, which no input can cause.
async fn go_on(
    request: &Request,
    env: &Env,
    context: &Context,
    begun: Begun,
    asked: Option<Promise>,
) -> Result<Response> {
    let Begun {
        gateway,
        head,
        call,
        mut record,
        started,
        decision,
        pick,
    } = begun;
    let asked = pick.zip(asked).map(|(pick, answer)| Asked {
        pick,
        answer,
        at: started,
    });
    let mut forwarding = Forwarding::new(request, &head, &call).asked(asked);
    let reply = match (&gateway, decision) {
        (Ok(gateway), Ok(decision)) => {
            let replying = reply(gateway, env, &mut forwarding, decision, &record, context);
            match select(pin!(replying), Leaving::of(request, context)).await {
                Either::Left((reply, _)) => reply,
                // Nobody gets it. With the rest of the request, its question to the origin is dropped.
                Either::Right(_) => return Ok(Response::new()?),
            }
        }
        // Without a gateway nothing was decided either.
        (_, Err(problem)) => Err(problem),
        (Err(problem), _) => Err(problem.clone()),
    };
    let reply = reply.unwrap_or_else(|problem| {
        record.refused(&problem);
        if let Some(cause) = problem.cause() {
            report::fault(&call.request_id, &problem, cause);
        }
        Reply::Own(Answer::problem(&problem, &call.request_id))
    });
    let origin_ms = forwarding.origin_ms();
    let ending = Ending {
        status: reply.status(),
        total_ms: Date::now() - started,
        origin_ms,
    };
    let config = gateway.as_deref().ok().map(Gateway::config);
    let response = dress(&reply, &call, config.map(|config| &config.cors), &ending)?;
    let response = match forwarding.unread() {
        Some(rest) => body::answer_early(response, reply.length(), rest, context)?,
        None => response,
    };
    report::answered(config, &call.request_id, &record, &ending);
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
    match (reply, cors) {
        (Reply::Origin(response), Some(cors)) => {
            let head = headers::of_answer(response);
            let changes = gateway::origin_changes(&head, call, cors, ending);
            Ok(headers::changed_answer(response, &changes)?)
        }
        (Reply::Own(answer), _) => {
            // The origin's answers have theirs already.
            for (name, value) in answer.headers().chain(security::HEADERS) {
                changes.set(name, value);
            }
            gateway::own_changes(&mut changes, &Head::default(), call, cors, ending);
            Ok(headers::answer(answer.status(), &changes, answer.body())?)
        }
        (Reply::Ready(response) | Reply::Origin(response), _) => {
            let head = headers::of_answer(response);
            gateway::own_changes(&mut changes, &head, call, cors, ending);
            headers::change(response, &changes)?;
            // The same one: a response's own `clone` splits its body.
            Ok(Clone::clone(response))
        }
    }
}

async fn reply(
    gateway: &Rc<Gateway>,
    env: &Env,
    forwarding: &mut Forwarding<'_>,
    decision: Decision,
    record: &RequestRecord,
    context: &Context,
) -> core::result::Result<Reply, Problem> {
    let call = forwarding.call();
    if let Some(limit) = gateway.config().door.rate_limit
        && !forwarding.is_asked()
    {
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
        Problem::internal(
            "The edge is not configured. Its log names the variable.",
            format!("the worker is not configured: {error}"),
        )
    })?;
    report::bind(env);
    Ok(GATEWAY.with(|cell| Rc::clone(cell.get_or_init(|| Rc::new(Gateway::new(config))))))
}

fn read_call(head: &Head, gateway: Option<&Gateway>, now_ms: u64) -> Result<Call> {
    let (path, query) = gateway::split_url(head.url());
    let path = &*request::resolve_dot_segments(path);
    let body = if head.has_body() {
        BodyLength::announced(head.get("content-length"))
    } else {
        BodyLength::Known(0)
    };
    let incoming = head.get(request_id::HEADER);
    let request_id = match incoming.and_then(RequestId::from_incoming) {
        Some(id) => id,
        None => new_request_id(now_ms)?,
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
        tus: tus_headers(path, head),
        origin: get("origin"),
        access_control_request_method: get("access-control-request-method"),
        body,
        request_id,
    })
}

/// Reads the headers of resumable uploads, if the path is one of theirs.
fn tus_headers(path: &str, head: &Head) -> Vec<(&'static str, String)> {
    const NAMES: [&str; 8] = [
        "tus-resumable",
        "upload-checksum",
        "upload-concat",
        "upload-defer-length",
        "upload-length",
        "upload-metadata",
        "upload-offset",
        "x-http-method-override",
    ];
    let found = NAMES.map(|name| Some((name, head.get(name)?.to_owned())));
    let found = found.into_iter().flatten();
    found.filter(|_| tus::is_at(path)).collect()
}

fn new_request_id(now_ms: u64) -> Result<RequestId> {
    let mut random = [0; 10];
    getrandom::getrandom(&mut random).map_err(|error| error.to_string())?;
    Ok(RequestId::generate(now_ms, &random))
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
