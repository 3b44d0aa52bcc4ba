//! Answers requests from the cache, or asks an origin and stores the response. [`crate::core`] decides which entry a
//! request accepts, what is stored, and which request asks the origin.

use super::body::{self, WholeBody};
use super::origin_fetch::{Forwarding, OriginAnswer};
use super::timer::Timer;
use super::{Reply, cache, discard, headers, log};
use crate::core::cache::{
    Cache, Cacheable, FetchOutcome, Flight, Freshness, Lead, Lookup, Moment, REVALIDATION_TIMEOUT, Served, ServedBody,
    Visit, pauses, range_header,
};
use crate::core::{BodyPlan, Caller, Gateway, Headers, IncomingRequest, NoAnswer, Repeat};
use futures_channel::oneshot;
use futures_util::future::{Either, join, select};
use shared::error::Problem;
use shared::media::{FilePathHash, PURGE_HEADER, project_to_purge};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use worker::Context;
use worker::js_sys::{Date, Object};
use worker::wasm_bindgen::JsValue;
use worker::web_sys::{self, Request, Response};

type OriginResult<T> = Result<T, Problem>;

struct Cached<'a> {
    gateway: &'a Rc<Gateway>,
    cache: &'a Cache,
    caller: Caller,
    context: &'a Context,
    request: &'a Request,
    incoming: &'a IncomingRequest,
    body: &'a JsValue,
    lookup: Lookup,
}

enum FoundEntry {
    Nothing,
    /// A cache entry that must be revalidated.
    Expired,
    Entry {
        entry: Response,
        headers: Headers,
        age_ms: u64,
        freshness: Freshness,
    },
}

/// The response that the lead of a flight got from the origin.
enum Fetched {
    /// A response that was held in memory until it was stored. Its client gets it from the cache, since a slow reader
    /// would keep the memory in use.
    Stored,
    /// A response whose body is still arriving.
    Passing(OriginAnswer),
}

/// The result of asking an origin, and the milliseconds until the head of the response arrived.
type Delivered<T> = (OriginResult<T>, Option<f64>);

pub(crate) async fn answer(
    gateway: &Rc<Gateway>,
    forwarding: &mut Forwarding<'_>,
    cacheable: Cacheable,
    context: &Context,
) -> OriginResult<Reply> {
    let cache = gateway.cache();
    let (request, incoming) = (forwarding.request(), forwarding.incoming());
    let whole = match cacheable.has_body() {
        true => match forwarding.whole_body(gateway).await? {
            Some(whole) => Some(whole),
            None => return forwarding.send(gateway, BodyPlan::Stream).await.map(Reply::Origin),
        },
        false => None,
    };
    let body = whole.as_ref().map_or(JsValue::UNDEFINED, |whole| whole.buffer.clone());
    let lookup = cacheable.finish(cache, &whole.as_ref().map_or_else(Vec::new, WholeBody::bytes))?;
    let Some(lookup) = lookup else {
        return forwarding.send_whole(gateway, body, Repeat::Always).await.map(Reply::Origin);
    };
    let caller = forwarding.caller().clone();
    let cached = Cached { gateway, cache, caller, context, request, incoming, body: &body, lookup };
    let looked = cache.moment();
    let reply = match cached.find_or_fetch(forwarding).await? {
        Some(reply) => reply,
        None => {
            let asked_ms = now_ms();
            let answer = forwarding.send_whole(gateway, body.clone(), Repeat::Always).await?;
            cache.learn(cached.lookup.key_id(), answer.status, asked_ms);
            Reply::Origin(answer)
        }
    };
    if let Reply::Origin(answer) = &reply
        && cached.lookup.file().is_some()
        && incoming.method() == "GET"
        && matches!(cached.lookup.outcome(answer.status, &answer.headers), FetchOutcome::Held | FetchOutcome::Streamed)
    {
        cached.fetch_in_background(looked);
    }
    Ok(reply)
}

/// Purges the files that the response's [`PURGE_HEADER`] names. If the header names a project, purges all its cached
/// files. Must be awaited before the response is sent.
pub(crate) async fn purge(answer: &OriginAnswer, cache: &Cache) {
    let Some(names) = answer.header(PURGE_HEADER) else {
        return;
    };
    let urls: Vec<_> = FilePathHash::read_list(names).flat_map(|name| cache.purge(name, now_ms())).collect();
    cache::remove(urls.iter().map(String::as_str)).await;
    if let Some(project) = project_to_purge(names) {
        let (url, mark) = cache.private_mark(&project, now_ms());
        if let Ok(mark) = headers::answer(&mark, None) {
            cache::put(&url, &mark, cache::PUT_TIMEOUT).await;
        }
    }
}

impl Cached<'_> {
    /// Returns the cached response or, if this request leads the flight, the origin's response; `None` if the caller
    /// must forward the request without the cache, or if the cache does not work.
    async fn find_or_fetch(&self, forwarding: &mut Forwarding<'_>) -> OriginResult<Option<Reply>> {
        if !cache::works().await {
            return Ok(None);
        }
        let mut visit = Visit::new(self.cache, &self.lookup, self.incoming);
        while let Some(looked) = visit.look_up() {
            let is_expired = match self.find().await {
                FoundEntry::Entry { entry, headers, age_ms, freshness } => {
                    if freshness == Freshness::Stale {
                        self.fetch_in_background(looked);
                    }
                    return self.serve(entry, &headers, Some(age_ms)).await.transpose();
                }
                FoundEntry::Expired => true,
                FoundEntry::Nothing => false,
            };
            match visit.missed(looked, is_expired, now_ms()) {
                Flight::Lead(lead) => {
                    let known_tag = self.lookup.file().filter(|_| is_expired).map(|file| file.tag.as_str());
                    let (sender, receiver) = oneshot::channel();
                    // The fetch continues if this client disconnects, since other requests wait for it.
                    self.context.wait_until(self.fetch(known_tag).run(lead, sender));
                    let (fetched, origin_ms) =
                        receiver.await.unwrap_or_else(|_| (Err(NoAnswer::Unreachable.problem()), None));
                    match fetched {
                        Ok(Fetched::Stored) => {
                            forwarding.set_origin_ms(origin_ms);
                            return match self.find().await {
                                FoundEntry::Entry { entry, headers, .. } => {
                                    self.serve(entry, &headers, None).await.transpose()
                                }
                                FoundEntry::Expired | FoundEntry::Nothing => Ok(None),
                            };
                        }
                        // The next lookup finds the entry confirmed or removed, or may serve it without confirmation.
                        Ok(Fetched::Passing(answer)) if is_expired => discard(&answer.response),
                        Err(_) if is_expired => {}
                        passing => {
                            forwarding.set_origin_ms(origin_ms);
                            return passing.map(|fetched| match fetched {
                                Fetched::Passing(answer) => Some(Reply::Origin(answer)),
                                Fetched::Stored => None,
                            });
                        }
                    }
                }
                Flight::Wait => {
                    for pause in pauses() {
                        Timer::from(pause).await;
                        if !self.cache.is_in_flight(&self.lookup, now_ms()) {
                            break;
                        }
                    }
                }
                Flight::LookAgain => {}
                Flight::Alone => break,
            }
        }
        Ok(None)
    }

    async fn find(&self) -> FoundEntry {
        if !self.cache.is_accepted(&self.lookup, now_ms()) {
            return FoundEntry::Nothing;
        }
        let url = self.lookup.url();
        let (entry, private_mark) = match self.lookup.file() {
            Some(file) => join(cache::lookup(&url, None), cache::lookup(&file.private_mark_url, None)).await,
            None => (cache::lookup(&url, None).await, None),
        };
        let Some(entry) = entry else {
            return FoundEntry::Nothing;
        };
        let headers = headers::of(&entry.headers());
        let private_mark = private_mark.map(|mark| headers::of(&mark.headers()));
        let judged = self.cache.judge(&self.lookup, &headers, private_mark.as_ref(), now_ms());
        match judged {
            Some((age_ms, freshness @ (Freshness::Fresh | Freshness::Stale))) => {
                FoundEntry::Entry { entry, headers, age_ms, freshness }
            }
            expired => {
                discard(&entry);
                expired.map_or(FoundEntry::Nothing, |_| FoundEntry::Expired)
            }
        }
    }

    /// Builds the response from a cache entry; `None` if it is malformed, or the requested range is no longer cached.
    async fn serve(&self, entry: Response, headers: &Headers, age_ms: Option<u64>) -> Option<OriginResult<Reply>> {
        let served = self.lookup.serve(headers, self.incoming, age_ms);
        if let Some(Ok(Served { head, body: ServedBody::Whole })) = served {
            return Some(Ok(Reply::Own(head, entry.body())));
        }
        discard(&entry);
        let served = match served? {
            Ok(served) => served,
            Err(problem) => return Some(Err(problem)),
        };
        let ServedBody::Part(part) = served.body else {
            return Some(Ok(Reply::Own(served.head, None)));
        };
        let range = web_sys::Headers::new().ok()?;
        range.set("range", &range_header(&part)).ok()?;
        let found = cache::lookup(&self.lookup.url(), Some(&range)).await?;
        let headers = headers::of(&found.headers());
        let is_same = |name| headers.get(name) == served.head.header(name);
        if found.status() != 206 || !is_same("content-range") || !is_same("etag") {
            discard(&found);
            return None;
        }
        Some(Ok(Reply::Own(served.head, found.body())))
    }

    /// Asks the origin for the entry in the background, if [`Cache::join`] lets this request lead and the cache works.
    fn fetch_in_background(&self, looked: Moment) {
        if let Flight::Lead(lead) = self.cache.join(&self.lookup, looked, now_ms()) {
            let (sender, _) = oneshot::channel();
            self.context.wait_until(self.fetch(None).run(lead, sender));
        }
    }

    fn fetch(&self, known_tag: Option<&str>) -> Fetch {
        let client_address = self.gateway.config().access.client_address.as_deref();
        let incoming = self.lookup.request(self.incoming, client_address, known_tag);
        Fetch {
            gateway: Rc::clone(self.gateway),
            caller: self.caller.clone(),
            request: Clone::clone(self.request),
            incoming,
            body: self.body.clone(),
            lookup: self.lookup.clone(),
            // For a fetch without revalidation, the timeouts of forwarding apply.
            time_limit: known_tag.map(|_| REVALIDATION_TIMEOUT),
        }
    }
}

/// A request to the origin on behalf of all requests that wait for the entry. Owns its data, since it may outlive its
/// client.
struct Fetch {
    gateway: Rc<Gateway>,
    caller: Caller,
    /// The client's request. Its location decides which origin is near.
    request: Request,
    incoming: IncomingRequest,
    body: JsValue,
    lookup: Lookup,
    /// Timeout for the head of the response; `None` to use only the timeout of forwarding, which is longer by default.
    time_limit: Option<Duration>,
}

impl Fetch {
    /// Asks the origin, stores the response if it is cacheable, sends it to `sender`, and ends the flight.
    /// Only ends the flight if the receiver was dropped and the cache doesn't work.
    async fn run(self, lead: Lead, sender: oneshot::Sender<Delivered<Fetched>>) {
        // Nobody waits for a background fetch, so it is useless without a working cache.
        if sender.is_canceled() && !cache::works().await {
            return;
        }
        let (asked_ms, cache) = (now_ms(), self.gateway.cache());
        let (answer, origin_ms) = self.ask().await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                if self.time_limit.is_some() {
                    lead.unanswered(now_ms());
                }
                // An error is ignored: the client may have disconnected meanwhile.
                let _ = sender.send((Err(problem), origin_ms));
                return;
            }
        };
        cache.learn(self.lookup.key_id(), answer.status, asked_ms);
        let entry = self.lookup.entry(&answer.headers, asked_ms);
        match self.lookup.outcome(answer.status, &answer.headers) {
            FetchOutcome::Held => {
                let held = self.hold(&answer).await;
                let of_bytes = |bytes: Object| {
                    let body = Response::new_with_opt_buffer_source(Some(&bytes))?;
                    headers::answer(&entry, body.body().as_ref())
                };
                let entry = held.and_then(|bytes| of_bytes(bytes).map_err(|_| NoAnswer::Unreachable.problem()));
                let stored = match entry {
                    Ok(entry) => {
                        self.store(&entry, asked_ms, lead, cache::HELD_PUT_TIMEOUT).await;
                        Ok(Fetched::Stored)
                    }
                    Err(problem) => Err(problem),
                };
                let _ = sender.send((stored, origin_ms));
                return;
            }
            FetchOutcome::Streamed if sender.is_canceled() && answer.status == 200 => {
                lead.release_waiting(now_ms());
                if let Ok(entry) = headers::answer(&entry, answer.response.body().as_ref()) {
                    self.store(&entry, asked_ms, lead, cache::PUT_TIMEOUT).await;
                }
                return;
            }
            // The body goes to this client. A background fetch will store the file.
            FetchOutcome::Streamed => drop(lead),
            FetchOutcome::Confirmed => {
                cache.confirm(&self.lookup, asked_ms);
                lead.stored();
            }
            FetchOutcome::Unanswered => lead.unanswered(now_ms()),
            FetchOutcome::OtherVersion if self.incoming.header("if-none-match").is_none() => lead.not_stored(now_ms()),
            FetchOutcome::NotStored | FetchOutcome::OtherVersion => {
                if self.lookup.file().is_some() {
                    cache::remove([self.lookup.url().as_str()]).await;
                }
                lead.not_stored(now_ms());
            }
        }
        let _ = sender.send((Ok(Fetched::Passing(answer)), origin_ms));
    }

    /// Stores a response in the cache within a time and ends the flight. Does not store a purged file (see
    /// [`Cache::is_purged`]).
    async fn store(&self, entry: &Response, asked_ms: u64, lead: Lead, within: Duration) {
        let is_purged = || self.gateway.cache().is_purged(&self.lookup, asked_ms);
        let url = self.lookup.url();
        if is_purged() {
            discard(entry);
        } else if !cache::put(&url, entry, within).await {
            discard(entry);
            lead.not_stored(now_ms());
        } else if is_purged() {
            // The file was purged while the body arrived.
            cache::remove([url.as_str()]).await;
        } else {
            lead.stored();
        }
    }

    /// Returns the origin's response, and the milliseconds until its head arrived; `None` as milliseconds if no origin
    /// was asked or `time_limit` passed.
    async fn ask(&self) -> Delivered<OriginAnswer> {
        let mut forwarding = Forwarding::new(&self.request, &self.incoming);
        forwarding.count_for(self.caller.clone());
        let asking = forwarding.send_whole(&self.gateway, self.body.clone(), Repeat::Always);
        let answer = match self.time_limit {
            None => asking.await,
            Some(limit) => match select(pin!(asking), Timer::from(limit)).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(NoAnswer::Timeout.problem()),
            },
        };
        (answer, forwarding.origin_ms())
    }

    /// Reads the whole body of the origin's response into memory.
    async fn hold(&self, answer: &OriginAnswer) -> OriginResult<Object> {
        let held = body::buffer(&answer.response, self.gateway.config().origin_timeout).await;
        held.inspect_err(|problem| log::fault(&self.incoming.request_id, problem, ""))
    }
}

fn now_ms() -> u64 {
    Date::now() as u64
}
