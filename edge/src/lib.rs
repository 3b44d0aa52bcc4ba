//! The edge: a worker that verifies, refuses, forwards, and keeps every answer in the envelope.
//!
//! Only this file, `forward`, `body`, `cache`, `cached_read` and `report` know the worker's API. This one turns requests into
//! [`gateway::Call`]s, has done what [`gateway::Gateway`] decides, and answers.

mod body;
mod cache;
mod cached_file;
mod cached_read;
pub mod config;
mod forward;
pub mod gateway;
mod report;

use config::Config;
use forward::Forwarding;
use gateway::{Answer, BodyLength, Call, Decision, Ending, Gateway, RequestRecord};
use shared::error::{ErrorCode, Problem};
use shared::media::FORGET_HEADER;
use shared::operation::tus::{self, TusHeaders};
use shared::request_id::{self, RequestId};
use std::cell::OnceCell;
use std::rc::Rc;
use worker::js_sys::{Date, Reflect, Uint8Array};
use worker::web_sys::{Headers, Request, Response, ResponseInit};
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

/// Answers one request.
///
/// # Errors
/// When the runtime refuses to build a response, which no input can cause.
#[event(fetch)]
pub async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    let started = Date::now();
    let gateway = gateway(&env);
    let call = read_call(&request, gateway.as_deref().ok())?;
    let mut record = RequestRecord::begin(&call.method);
    let mut forwarding = Forwarding::new(&request, &call);
    let (gateway, reply) = match gateway {
        Ok(gateway) => {
            let reply = reply(&gateway, &mut forwarding, &mut record, &context).await;
            (Some(gateway), reply)
        }
        Err(problem) => (None, Err(problem)),
    };
    let reply = reply.unwrap_or_else(|problem| {
        record.refused(&problem);
        Reply::Own(Answer::problem(&problem, &call.request_id))
    });
    let (response, length) = match reply {
        Reply::Own(answer) => {
            let length = BodyLength::Known(answer.body().len() as u64);
            (own_response(&answer)?, length)
        }
        Reply::Origin(response) => {
            let length = get(&response.headers(), "content-length");
            let length = BodyLength::announced(length.as_deref());
            (passed_response(&response)?, length)
        }
        Reply::Ready(response) => (response, BodyLength::Unknown),
    };
    let origin_ms = forwarding.origin_ms();
    let response = match forwarding.unread()? {
        Some(rest) => body::answer_early(response, length, rest, &context)?,
        None => response,
    };
    let ending = Ending {
        status: response.status(),
        total_ms: Date::now() - started,
        origin_ms,
    };
    let headers = response.headers();
    headers.set(request_id::HEADER, call.request_id.as_str())?;
    headers.append(
        "server-timing",
        &gateway::server_timing(ending.total_ms, origin_ms),
    )?;
    if call.may_change_media() {
        headers.delete(FORGET_HEADER)?;
    }
    for (name, value) in tus::answer_headers(&call.path, response.status()) {
        headers.set(name, value)?;
    }
    if let Some(gateway) = &gateway {
        for (name, value) in gateway.config().cors.answer_headers(call.origin.as_deref()) {
            match name {
                // The origin's answer may depend on more.
                "vary" if gateway::lists(get(&headers, name).as_deref(), value) => {}
                "vary" => headers.append(name, value)?,
                _ => headers.set(name, value)?,
            }
        }
    }
    let config = gateway.as_deref().map(Gateway::config);
    report::answered(&env, config, &call.request_id, &record, &ending);
    Ok(response)
}

async fn reply(
    gateway: &Rc<Gateway>,
    forwarding: &mut Forwarding<'_>,
    record: &mut RequestRecord,
    context: &Context,
) -> core::result::Result<Reply, Problem> {
    let call = forwarding.call();
    let now = (Date::now() / 1000.0) as u64;
    let plan = match gateway.decide(call, now, record)? {
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

fn read_call(request: &Request, gateway: Option<&Gateway>) -> Result<Call> {
    let headers = request.headers();
    let url = request.url();
    let (path, query) = gateway::split_url(&url);
    let body = match request.body() {
        None => BodyLength::Known(0),
        Some(_) => BodyLength::announced(get(&headers, "content-length").as_deref()),
    };
    let incoming = get(&headers, request_id::HEADER);
    let request_id = match incoming.as_deref().and_then(RequestId::from_incoming) {
        Some(id) => id,
        None => new_request_id()?,
    };
    Ok(Call {
        method: request.method(),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        authorization: get(&headers, "authorization"),
        content_type: get(&headers, "content-type"),
        accept: get(&headers, "accept"),
        cache_control: gateway
            .filter(|gateway| gateway.keeps_reads())
            .and_then(|_| get(&headers, "cache-control")),
        idempotency_key: get(&headers, "idempotency-key"),
        if_match: get(&headers, "if-match"),
        if_none_match: get(&headers, "if-none-match"),
        tus: TusHeaders::read(path, |name| get(&headers, name)),
        origin: get(&headers, "origin"),
        access_control_request_method: get(&headers, "access-control-request-method"),
        body,
        request_id,
    })
}

fn new_request_id() -> Result<RequestId> {
    let mut random = [0; 10];
    getrandom::getrandom(&mut random).map_err(|error| error.to_string())?;
    Ok(RequestId::generate(Date::now() as u64, &random))
}

fn own_response(answer: &Answer) -> Result<Response> {
    let headers = Headers::new()?;
    for (name, value) in answer.headers() {
        headers.set(name, value)?;
    }
    let init = ResponseInit::new();
    init.set_status(answer.status());
    init.set_headers(&headers);
    let body = (!answer.body().is_empty()).then(|| Uint8Array::from(answer.body()));
    Ok(Response::new_with_opt_js_u8_array_and_init(
        body.as_ref(),
        &init,
    )?)
}

/// The origin's answer with headers that can be added to; its body is never touched.
fn passed_response(response: &Response) -> Result<Response> {
    let init = ResponseInit::new();
    init.set_status(response.status());
    init.set_headers(&response.headers());
    let passed = Response::new_with_opt_readable_stream_and_init(response.body().as_ref(), &init)?;
    for name in gateway::NOT_ANSWERED {
        passed.headers().delete(name)?;
    }
    Ok(passed)
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
