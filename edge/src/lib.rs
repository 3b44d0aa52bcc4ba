//! The edge: a worker that verifies, refuses, forwards, and keeps every answer in the envelope.
//!
//! This file is the only one that knows the worker's API: it turns requests into [`gateway::Call`]s,
//! carries out what [`gateway::Gateway`] decides, and never looks into a body that is passed on.

pub mod config;
pub mod gateway;

use config::Config;
use futures_util::future::{Either, select};
use gateway::{Answer, BodyLength, BodyPlan, Call, Decision, Fault, Gateway, OriginHead};
use shared::error::{ErrorCode, Problem};
use shared::operation::tus::{self, TusHeaders};
use shared::request_id::{self, RequestId};
use std::cell::OnceCell;
use std::rc::Rc;
use worker::js_sys::{self, Date, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, AbortController, Headers, Request, Response, ResponseInit};
use worker::{Context, Delay, Env, Result, console_error, event};

thread_local! {
    /// One an isolate: variables don't change within its life.
    static GATEWAY: OnceCell<Rc<Gateway>> = const { OnceCell::new() };
}

/// A reply, before the headers that every answer has.
enum Reply {
    Own(Answer),
    Origin(Response),
}

/// Answers one request.
///
/// # Errors
/// When the runtime refuses to build a response, which no input can cause.
#[event(fetch)]
pub async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    let started = Date::now();
    let call = read_call(&request)?;
    let mut origin_ms = None;
    let (gateway, reply) = match gateway(&env) {
        Ok(gateway) => {
            let reply = reply(&gateway, &request, &call, &mut origin_ms).await;
            (Some(gateway), reply)
        }
        Err(problem) => (None, Err(problem)),
    };
    let reply =
        reply.unwrap_or_else(|problem| Reply::Own(Answer::problem(&problem, &call.request_id)));
    let response = match reply {
        Reply::Own(answer) => own_response(&answer)?,
        Reply::Origin(response) => passed_response(&response)?,
    };
    let headers = response.headers();
    headers.set(request_id::HEADER, call.request_id.as_str())?;
    headers.append(
        "server-timing",
        &gateway::server_timing(Date::now() - started, origin_ms),
    )?;
    for (name, value) in tus::answer_headers(&call.path, response.status()) {
        headers.set(name, value)?;
    }
    if let Some(gateway) = gateway {
        for (name, value) in gateway.config().cors.answer_headers(call.origin.as_deref()) {
            match name {
                // The origin's answer may depend on more.
                "vary" if gateway::lists(get(&headers, name).as_deref(), value) => {}
                "vary" => headers.append(name, value)?,
                _ => headers.set(name, value)?,
            }
        }
    }
    Ok(response)
}

async fn reply(
    gateway: &Gateway,
    request: &Request,
    call: &Call,
    origin_ms: &mut Option<f64>,
) -> core::result::Result<Reply, Problem> {
    let now = (Date::now() / 1000.0) as u64;
    let plan = match gateway.decide(call, now)? {
        Decision::Answer(answer) => return Ok(Reply::Own(answer)),
        Decision::Forward(plan) => plan,
    };
    let body = take_body(request, plan, call).await?;
    let asked = Date::now();
    let outcome = ask_origin(gateway.config(), request, call, &body).await;
    *origin_ms = Some(Date::now() - asked);
    let response = outcome?;
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
    match gateway::judge(&head, &call.request_id) {
        Ok(()) => Ok(Reply::Origin(response)),
        Err(problem) => {
            discard(&response);
            log(&call.request_id, &problem, "");
            Err(problem)
        }
    }
}

/// The isolate's gateway, made at its first request.
fn gateway(env: &Env) -> core::result::Result<Rc<Gateway>, Problem> {
    if let Some(gateway) = GATEWAY.with(|cell| cell.get().cloned()) {
        return Ok(gateway);
    }
    let variable = |name| env.var(name).ok().map(|value| value.to_string());
    let config = Config::read(variable).map_err(|error| {
        console_error!("the worker is not configured: {error}");
        Problem::new(
            ErrorCode::Internal,
            "The edge is not configured. Its log names the variable.",
        )
    })?;
    Ok(GATEWAY.with(|cell| Rc::clone(cell.get_or_init(|| Rc::new(Gateway::new(config))))))
}

fn read_call(request: &Request) -> Result<Call> {
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

/// The body to forward: nothing, the caller's own stream, or the bytes that were checked.
async fn take_body(
    request: &Request,
    plan: BodyPlan,
    call: &Call,
) -> core::result::Result<JsValue, Problem> {
    let pending = match plan {
        BodyPlan::Drop => return Ok(JsValue::UNDEFINED),
        BodyPlan::Stream => return Ok(request.body().map_or(JsValue::UNDEFINED, JsValue::from)),
        BodyPlan::Check(pending) => pending,
    };
    let broken = |error: JsValue| {
        let problem = Problem::new(ErrorCode::InvalidBody, "The request's body broke off.");
        log(&call.request_id, &problem, &js_message(&error));
        problem
    };
    let buffer = JsFuture::from(request.array_buffer().map_err(broken)?)
        .await
        .map_err(broken)?;
    let bytes = Uint8Array::new(&buffer).to_vec();
    gateway::check_body(pending, &bytes)?;
    // The same bytes go on, from where the runtime holds them.
    Ok(if bytes.is_empty() {
        JsValue::UNDEFINED
    } else {
        buffer
    })
}

/// Sends the request on and waits for the head of the answer.
async fn ask_origin(
    config: &Config,
    request: &Request,
    call: &Call,
    body: &JsValue,
) -> core::result::Result<Response, Problem> {
    let unreachable = |error: JsValue| {
        let problem = Fault::Unreachable.problem();
        log(&call.request_id, &problem, &js_message(&error));
        problem
    };
    let controller = AbortController::new().map_err(unreachable)?;
    let init = web_sys::RequestInit::new();
    init.set_method(&call.method);
    let headers = forwarded_headers(request, call).map_err(unreachable)?;
    init.set_headers(headers.as_ref());
    init.set_redirect(web_sys::RequestRedirect::Manual);
    init.set_signal(Some(&controller.signal()));
    if !body.is_undefined() {
        init.set_body(body);
    }
    let scope: web_sys::WorkerGlobalScope = js_sys::global().unchecked_into();
    let answer =
        JsFuture::from(scope.fetch_with_str_and_init(&call.target(&config.origin_url), &init));
    match select(answer, Delay::from(config.origin_timeout)).await {
        Either::Left((answer, _)) => answer.and_then(JsValue::dyn_into).map_err(unreachable),
        Either::Right(((), _)) => {
            controller.abort();
            let problem = Fault::Timeout.problem();
            log(&call.request_id, &problem, "");
            Err(problem)
        }
    }
}

fn forwarded_headers(request: &Request, call: &Call) -> core::result::Result<Headers, JsValue> {
    let headers = Headers::new_with_headers(&request.headers())?;
    let client = get(&headers, gateway::CLIENT_ADDRESS);
    let connection = get(&headers, "connection").unwrap_or_default();
    let named = connection
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    for name in gateway::NOT_FORWARDED.into_iter().chain(named) {
        // A name that no header can have names none.
        let _ = headers.delete(name);
    }
    headers.set(request_id::HEADER, call.request_id.as_str())?;
    if let Some(client) = client {
        headers.set(gateway::FORWARDED_FOR, &client)?;
    }
    Ok(headers)
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
    Ok(Response::new_with_opt_readable_stream_and_init(
        response.body().as_ref(),
        &init,
    )?)
}

/// Tells the origin's side that nobody reads on.
fn discard(response: &Response) {
    if let Some(body) = response.body() {
        // Nobody is left to tell if even that fails.
        let _ = body.cancel();
    }
}

/// One line of the worker's log. `cause` is the runtime's own message: it holds no key and no value.
fn log(request_id: &RequestId, problem: &Problem, cause: &str) {
    console_error!("requestId={request_id} {problem} {cause}");
}

fn js_message(error: &JsValue) -> String {
    error
        .dyn_ref::<js_sys::Error>()
        .map_or_else(String::new, |error| String::from(error.message()))
}

/// A header's value; none for one that is not there.
fn get(headers: &Headers, name: &str) -> Option<String> {
    headers.get(name).ok().flatten()
}
