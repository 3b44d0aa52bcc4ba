//! Reads from the cache, or from the origin and into the cache. What is cached, for whom, how long, and which request
//! fetches it, [`crate::core`] decides.

use super::origin_fetch::{Forwarding, OriginAnswer};
use super::{Reply, body, cache, discard, get, headers as heads, log};
use crate::core::{
    self, ASKED_AT, BodyLength, CacheableRead, Freshness, Gateway, IncomingRequest, Lead, Lookup, NoAnswer, ReadCache,
    Repeat, Turn, pauses,
};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use shared::error::Problem;
use shared::security;
use std::pin::pin;
use std::rc::Rc;
use worker::js_sys::{Date, Object, Reflect};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{Headers, Request, RequestInit, Response, ResponseInit};
use worker::{Context, Delay};

/// Most lookups of one request: at first, after another request stored the answer, and once more.
const LOOKS: usize = 3;

type Outcome<T> = std::result::Result<T, Problem>;

/// What the cache holds.
struct Found {
    response: Response,
    age_ms: u64,
    suits: Freshness,
}

/// What the origin gave to who asked it for all.
enum Fetched {
    /// An answer that is being cached.
    Whole(Whole),
    /// One that is not.
    Passing(OriginAnswer),
}

/// An answer that is held whole.
struct Whole {
    bytes: Object,
    content_type: Option<String>,
    etag: Option<String>,
}

/// A fetched answer, and how long the origin took.
type Delivery = (Outcome<Fetched>, Option<f64>);

/// Answers a read whose caller accepts a cached answer.
pub(crate) async fn answer(
    gateway: &Rc<Gateway>,
    forwarding: &mut Forwarding<'_>,
    question: CacheableRead,
    context: &Context,
) -> Outcome<Reply> {
    let (call, request) = (forwarding.incoming(), forwarding.request());
    let read_cache = Rc::clone(question.cache());
    let (body, bytes) = match question.has_body() {
        true => body::whole(request).await?,
        false => (JsValue::UNDEFINED, Vec::new()),
    };
    let Some(lookup) = question.finish(&bytes)? else {
        let asking = forwarding.send_whole(gateway, body, Repeat::Always);
        return asking.await.map(Reply::Origin);
    };
    let fetch = |cache: Rc<ReadCache>| Fetch {
        gateway: Rc::clone(gateway),
        cache,
        request: Clone::clone(request),
        call: call.clone(),
        body: body.clone(),
        lookup,
    };
    let mut waited = false;
    for _ in 0..LOOKS {
        let looked = read_cache.moment();
        if let Some(found) = find(&read_cache, &lookup).await {
            if found.suits == Freshness::Stale
                && let Turn::Lead(lead) = read_cache.turn(&lookup, looked, now_ms())
            {
                let (told, _) = oneshot::channel();
                context.wait_until(fetch(Rc::clone(&read_cache)).run(lead, told));
            }
            return kept_reply(call, &lookup, &found);
        }
        if waited {
            break;
        }
        match read_cache.turn(&lookup, looked, now_ms()) {
            Turn::Lead(lead) => {
                let (told, telling) = oneshot::channel();
                // Those who wait must not suffer from a caller who leaves.
                context.wait_until(fetch(Rc::clone(&read_cache)).run(lead, told));
                let (fetched, origin_ms) =
                    telling.await.unwrap_or_else(|_| (Err(NoAnswer::Unreachable.problem()), None));
                forwarding.set_origin_ms(origin_ms);
                return fetched_reply(call, &lookup, fetched?);
            }
            Turn::Wait => {
                for pause in pauses() {
                    Delay::from(pause).await;
                    if !read_cache.is_under_way(&lookup, now_ms()) {
                        break;
                    }
                }
                waited = true;
            }
            Turn::LookAgain => {}
            Turn::Alone => break,
        }
    }
    let asked_ms = now_ms();
    let asking = forwarding.send_whole(gateway, body, Repeat::Always);
    let answer = asking.await?;
    read_cache.learn(lookup.key_id, answer.status, asked_ms);
    Ok(Reply::Origin(answer))
}

/// What the cache holds for a key that the origin took lately.
async fn find(read_cache: &ReadCache, lookup: &Lookup) -> Option<Found> {
    if !read_cache.is_accepted(lookup.key_id, now_ms()) {
        return None;
    }
    let response = cache::lookup(&lookup.url(), None).await?;
    let asked_at = get(&response.headers(), ASKED_AT);
    let age_ms = core::age_ms(asked_at.as_deref(), now_ms());
    match age_ms.map(|age_ms| (age_ms, lookup.accepted_age.judge(age_ms))) {
        Some((age_ms, suits @ (Freshness::Fresh | Freshness::Stale))) => Some(Found { response, age_ms, suits }),
        Some((_, Freshness::Expired)) | None => {
            discard(&response);
            None
        }
    }
}

/// A read that is asked of the origin for all who look for it. Owns what it needs: it may outlive its caller.
struct Fetch {
    gateway: Rc<Gateway>,
    cache: Rc<ReadCache>,
    request: Request,
    call: IncomingRequest,
    body: JsValue,
    lookup: Lookup,
}

impl Fetch {
    /// Asks the origin, hands the answer over, and ends the lead when the answer is cached.
    async fn run(self, lead: Lead, told: oneshot::Sender<Delivery>) {
        let asked_ms = now_ms();
        let mut origin_ms = None;
        let outcome = self.ask(&mut origin_ms).await;
        let answer = match outcome {
            Ok(answer) => answer,
            Err(problem) => {
                // Nobody may listen.
                let _ = told.send((Err(problem), origin_ms));
                return;
            }
        };
        self.cache.learn(self.lookup.key_id, answer.status, asked_ms);
        let length = match BodyLength::announced(answer.header("content-length")) {
            BodyLength::Known(bytes) => Some(bytes),
            BodyLength::Unknown => None,
        };
        if !core::is_kept(answer.status, length, answer.header("content-encoding")) {
            lead.not_kept(now_ms());
            let _ = told.send((Ok(Fetched::Passing(answer)), origin_ms));
            return;
        }
        let whole = self.whole(&answer).await;
        let kept = whole.as_ref().ok().and_then(|whole| {
            let headers = self.cache.kept_headers(asked_ms);
            whole.response(headers.iter().map(|(name, value)| (*name, value.as_str()))).ok()
        });
        let _ = told.send((whole.map(Fetched::Whole), origin_ms));
        let Some(kept) = kept else { return };
        match cache::put(&self.lookup.url(), &kept).await {
            true => lead.kept(),
            false => lead.not_kept(now_ms()),
        }
    }

    async fn ask(&self, origin_ms: &mut Option<f64>) -> Outcome<OriginAnswer> {
        let request = self.unconditional().map_err(|_| NoAnswer::Unreachable.problem())?;
        let head = heads::of_request(&request);
        let mut forwarding = Forwarding::new(&request, &head, &self.call);
        let asking = forwarding.send_whole(&self.gateway, self.body.clone(), Repeat::Always);
        let answer = asking.await;
        *origin_ms = forwarding.origin_ms();
        answer
    }

    /// The caller's request without what the caller alone has: an answer that it holds already.
    fn unconditional(&self) -> Result<Request, JsValue> {
        let headers = Headers::new_with_headers(&self.request.headers())?;
        headers.delete("if-none-match")?;
        let init = RequestInit::new();
        init.set_headers(headers.as_ref());
        // Tells where the caller is, and so which origin is near.
        let cache_key = Reflect::get(&self.request, &"cf".into())?;
        if cache_key.is_object() {
            Reflect::set(&init, &"cf".into(), &cache_key)?;
        }
        Request::new_with_str_and_init(&self.request.url(), &init)
    }

    async fn whole(&self, answer: &OriginAnswer) -> Outcome<Whole> {
        let reading = async { JsFuture::from(answer.response.array_buffer()?).await };
        let limit = self.gateway.config().origin_timeout;
        let problem = match select(pin!(reading), Delay::from(limit)).await {
            Either::Left((Ok(buffer), _)) => {
                return Ok(Whole {
                    bytes: buffer.unchecked_into(),
                    content_type: answer.header("content-type").map(str::to_owned),
                    etag: answer.header("etag").map(str::to_owned),
                });
            }
            Either::Left((Err(_), _)) => NoAnswer::Unreachable.problem(),
            Either::Right(_) => NoAnswer::Timeout.problem(),
        };
        log::fault(&self.call.request_id, &problem, "");
        Err(problem)
    }
}

impl Whole {
    /// The answer with its own headers and these.
    fn response<'a>(&self, more: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Response, JsValue> {
        let headers = headers(self.content_type.as_deref(), self.etag.as_deref(), more)?;
        let init = ResponseInit::new();
        init.set_headers(&headers);
        Response::new_with_opt_buffer_source_and_init(Some(&self.bytes), &init)
    }
}

/// The answer to who asked the origin for all.
fn fetched_reply(call: &IncomingRequest, lookup: &Lookup, fetched: Fetched) -> Outcome<Reply> {
    let whole = match fetched {
        Fetched::Whole(whole) => whole,
        Fetched::Passing(answer) => return Ok(Reply::Origin(answer)),
    };
    let told = lookup.accepted_age.headers(0);
    let more = told.iter().map(|(name, value)| (*name, value.as_ref()));
    let response = match has_it(call, whole.etag.as_deref()) {
        true => not_modified(whole.etag.as_deref(), more),
        false => whole.response(more),
    };
    response.map(Reply::Cached).map_err(|_| NoAnswer::Unreachable.problem())
}

/// Returns the cached answer.
fn kept_reply(call: &IncomingRequest, lookup: &Lookup, found: &Found) -> Outcome<Reply> {
    let kept = found.response.headers();
    let (content_type, etag) = (get(&kept, "content-type"), get(&kept, "etag"));
    let told = lookup.accepted_age.headers(found.age_ms);
    let more = told.iter().map(|(name, value)| (*name, value.as_ref()));
    let response = match has_it(call, etag.as_deref()) {
        true => {
            discard(&found.response);
            not_modified(etag.as_deref(), more)
        }
        false => headers(content_type.as_deref(), etag.as_deref(), more).and_then(|headers| {
            let init = ResponseInit::new();
            init.set_headers(&headers);
            let body = found.response.body();
            Response::new_with_opt_readable_stream_and_init(body.as_ref(), &init)
        }),
    };
    response.map(Reply::Cached).map_err(|_| NoAnswer::Unreachable.problem())
}

/// Whether the caller holds the answer of this tag already.
fn has_it(call: &IncomingRequest, etag: Option<&str>) -> bool {
    let listed = call.if_none_match.as_deref().zip(etag);
    listed.is_some_and(|(listed, etag)| shared::conditional::names(listed, etag))
}

fn not_modified<'a>(etag: Option<&str>, more: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Response, JsValue> {
    let init = ResponseInit::new();
    init.set_status(304);
    let headers = headers(None, etag, more)?;
    init.set_headers(&headers);
    Response::new_with_opt_str_and_init(None, &init)
}

fn headers<'a>(
    content_type: Option<&str>,
    etag: Option<&str>,
    more: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Headers, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in security::HEADERS {
        headers.set(name, value)?;
    }
    for (name, value) in [("content-type", content_type), ("etag", etag)] {
        if let Some(value) = value {
            headers.set(name, value)?;
        }
    }
    for (name, value) in more {
        headers.set(name, value)?;
    }
    Ok(headers)
}

fn now_ms() -> u64 {
    Date::now() as u64
}
