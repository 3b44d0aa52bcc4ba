//! Public files from the cache, or from the origin and into the cache. What is cached, for how long, and what of it a
//! request gets, [`file_cache`](crate::core::file_cache) decides.

use super::cache::{lookup, put, remove};
use super::origin_fetch::{Forwarding, OriginAnswer};
use super::{Reply, discard, get, headers};
use crate::core::file_cache::{
    CACHED_HEADERS, CHECK_HEADER, CHECK_TIMEOUT, CachedFile, Check, Entry, FileHead, FillMode, NOT_MODIFIED_HEADERS,
    PRIVATE_MARK_LIFETIME, Purged, Revalidated, Serving, cache_keys, content_range, private_mark_key, range_header,
};
use crate::core::{Answer, BodyPlan, Gateway, IncomingRequest};
use futures_util::future::{Either, join3, select};
use shared::conditional::{self, Conditions};
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::media::{FORGET_HEADER, KeptName, project_to_forget};
use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use worker::js_sys::{Date, Reflect};
use worker::wasm_bindgen::JsValue;
use worker::web_sys::{Headers, Request, RequestInit, Response, ResponseInit};
use worker::{Context, Delay};

thread_local! {
    static DESK: RefCell<Purged> = RefCell::default();
}

/// A request for a file that the cache may answer.
struct Asked<'a> {
    gateway: &'a Rc<Gateway>,
    request: &'a Request,
    call: &'a IncomingRequest,
    context: &'a Context,
    file: CachedFile,
    /// What [`Purged`] calls the moment before the origin was asked.
    moment: u64,
    /// The second of it: what the origin says counts from then.
    asked_at: u64,
}

/// Answers a request for a file from the cache, or from the origin and into the cache.
pub(crate) async fn answer(
    gateway: &Rc<Gateway>,
    forwarding: &mut Forwarding<'_>,
    file: CachedFile,
    context: &Context,
) -> Result<Reply, Problem> {
    let asked = Asked {
        gateway,
        request: forwarding.request(),
        call: forwarding.incoming(),
        context,
        file,
        moment: DESK.with_borrow(Purged::moment),
        asked_at: now(),
    };
    if let Some(reply) = asked.find().await {
        return reply;
    }
    let answer = forwarding.send(gateway, BodyPlan::Drop).await?;
    asked.keep(&answer);
    Ok(Reply::Origin(answer))
}

impl Asked<'_> {
    /// Returns the answer from the cache; none if this version is not cached, or is not the current one any more.
    async fn find(&self) -> Option<Result<Reply, Problem>> {
        let check_key = self.file.check_key();
        let (entry, checked, made_private) = join3(
            lookup(self.file.cache_key(), None),
            lookup(&check_key, None),
            lookup(self.file.private_mark_key(), None),
        )
        .await;
        let entry = entry?;
        let headers = entry.headers();
        let is_meant = get(&headers, "etag").as_deref() == Some(self.file.tag());
        let Some(check) = read_check(&headers).filter(|_| is_meant) else {
            discard(&entry);
            return None;
        };
        let checked = checked.map(|checked| checked.headers());
        let checked = checked.filter(|other| get(other, "etag").as_deref() == Some(self.file.tag()));
        let mut check = check.or(checked.as_ref().and_then(read_check));
        let made_private = made_private.and_then(|mark| read_check(&mark.headers()));
        let counts = check.counts_after(made_private);
        if !counts || !check.lasts(now()) {
            let (asked_at, seconds) = (now(), self.gateway.config().media_revalidate_seconds);
            check = match self.ask_whether_it_holds().await {
                Revalidated::Unchanged => Check::confirmed(asked_at, seconds),
                Revalidated::Unknown if counts => check.prolonged(now()),
                // It may be private: without the origin's word it is not given.
                Revalidated::Unknown => {
                    discard(&entry);
                    return None;
                }
                Revalidated::Changed => {
                    discard(&entry);
                    remove(&[self.file.cache_key()]).await;
                    return None;
                }
            };
            self.note(check);
        }
        self.serve(entry, check).await
    }

    /// Asks the origin, as everybody would, whether the version is what it was.
    async fn ask_whether_it_holds(&self) -> Revalidated {
        let call = self.call.for_everybody();
        let Ok(request) = self.request_for_everybody(Some(self.file.tag())) else {
            return Revalidated::Unknown;
        };
        let head = headers::of_request(&request);
        let mut forwarding = Forwarding::new(&request, &head, &call);
        let asking = pin!(forwarding.send(self.gateway, BodyPlan::Drop));
        match select(asking, Delay::from(CHECK_TIMEOUT)).await {
            Either::Left((Ok(answer), _)) => {
                discard(&answer.response);
                Revalidated::of(answer.status)
            }
            Either::Left((Err(_), _)) | Either::Right(_) => Revalidated::Unknown,
        }
    }

    /// Notes beside the entry, behind the answer, for how long it need not be asked for again.
    fn note(&self, check: Check) {
        let file = self.file.clone();
        self.context.wait_until(async move {
            note(&file, check).await;
        });
    }

    async fn serve(&self, entry: Response, check: Check) -> Option<Result<Reply, Problem>> {
        let headers = entry.headers();
        let last_modified = get(&headers, "last-modified")?;
        let size = get(&headers, "content-length")?.parse().ok()?;
        let known = Entry { tag: self.file.tag(), last_modified: &last_modified, size };
        let asked = self.request.headers();
        let range = get(&asked, "range");
        let is_head = self.call.method == "HEAD";
        let serving = known.serve(is_head, &self.conditions(&asked), range.as_deref())?;
        if serving != Serving::Whole || is_head {
            discard(&entry);
        }
        let response = match serving {
            Serving::Whole if is_head => given(&entry, check, None),
            Serving::Whole => given(&entry, check, entry.body().as_ref()),
            Serving::Part(part) => {
                let headers = Headers::new().ok()?;
                headers.set("range", &range_header(&part)).ok()?;
                let found = lookup(self.file.cache_key(), Some(&headers)).await?;
                let is_it = found.status() == 206
                    && get(&found.headers(), "content-range")? == content_range(&part, size)
                    && get(&found.headers(), "etag")? == self.file.tag();
                if !is_it {
                    discard(&found);
                    return None;
                }
                given(&found, check, found.body().as_ref())
            }
            Serving::NotModified => not_modified(&entry, check),
            Serving::Failed => return Some(Err(conditional::failed())),
            Serving::Beyond => {
                return Some(Ok(Reply::Own(Answer::beyond(size, &self.call.request_id))));
            }
        };
        Some(Ok(Reply::Cached(response.ok()?)))
    }

    fn conditions(&self, asked: &Headers) -> Conditions<'_> {
        let header = |name| get(asked, name).map(Cow::Owned);
        Conditions {
            if_match: self.call.if_match.as_deref().map(Cow::Borrowed),
            if_unmodified_since: header("if-unmodified-since"),
            if_none_match: self.call.if_none_match.as_deref().map(Cow::Borrowed),
            if_modified_since: header("if-modified-since"),
            if_range: header("if-range"),
        }
    }

    /// Caches the origin's answer, if it is cacheable. The answer goes to its caller unchanged.
    fn keep(self, answer: &OriginAnswer) {
        if self.call.method != "GET" {
            return;
        }
        match fill_mode(&self.file, answer) {
            FillMode::None => {}
            FillMode::WithAnswer => {
                let Some(entry) = answer.response.clone().ok().and_then(|copy| self.entry(&copy)) else {
                    return;
                };
                let (file, moment) = (self.file, self.moment);
                self.context.wait_until(async move { store(&file, &entry, moment).await });
            }
            FillMode::Separately => self.fill(),
        }
    }

    fn entry(&self, answer: &Response) -> Option<Response> {
        let seconds = self.gateway.config().media_revalidate_seconds;
        entry_of(answer, Check::confirmed(self.asked_at, seconds)).ok()
    }

    /// A request for the same file without what makes it one caller's, but for where that one is.
    fn request_for_everybody(&self, known_tag: Option<&str>) -> Result<Request, JsValue> {
        let (asked, headers) = (self.request.headers(), Headers::new()?);
        let client_address = self.gateway.config().access.client_address.as_deref();
        for name in client_address.into_iter().chain(["traceparent"]) {
            if let Some(value) = get(&asked, name) {
                headers.set(name, &value)?;
            }
        }
        if let Some(tag) = known_tag {
            headers.set("if-none-match", tag)?;
        }
        let init = RequestInit::new();
        init.set_headers(&headers);
        // What the platform tells of the caller: who that is, and which origin is near.
        let platform = Reflect::get(self.request, &"cf".into())?;
        Reflect::set(&init, &"cf".into(), &platform)?;
        Request::new_with_str_and_init(&self.request.url(), &init)
    }

    /// Fetches the file for the cache alone.
    fn fill(self) {
        let Some(fill) = Fill::begin(self.file.cache_key()) else {
            return;
        };
        let Ok(request) = self.request_for_everybody(None) else {
            return;
        };
        let (gateway, call) = (Rc::clone(self.gateway), self.call.for_everybody());
        let file = self.file;
        let moment = DESK.with_borrow(Purged::moment);
        self.context.wait_until(async move {
            let _fill = fill;
            // Without a working cache, a second request to the origin would be in vain.
            let check = Check::confirmed(now(), gateway.config().media_revalidate_seconds);
            note(&file, check).await;
            let Some(noted) = lookup(&file.check_key(), None).await else {
                return;
            };
            discard(&noted);
            let head = headers::of_request(&request);
            let mut forwarding = Forwarding::new(&request, &head, &call);
            let Ok(answer) = forwarding.send(&gateway, BodyPlan::Drop).await else {
                return;
            };
            let is_it = answer.status == 200 && fill_mode(&file, &answer) != FillMode::None;
            match entry_of(&answer.response, check) {
                Ok(entry) if is_it => store(&file, &entry, moment).await,
                _ => discard(&answer.response),
            }
        });
    }
}

/// A fill that is under way.
struct Fill(String);

impl Fill {
    fn begin(cache_key: &str) -> Option<Self> {
        let begun = DESK.with_borrow_mut(|desk| desk.begin(cache_key, now()));
        begun.then(|| Self(cache_key.to_owned()))
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        DESK.with_borrow_mut(|desk| desk.end(&self.0));
    }
}

/// Purges what an answer names, before the answer goes out: files, or all checks of a project's files.
pub(crate) async fn purge(answer: &OriginAnswer, installation: &str) {
    let Some(names) = answer.header(FORGET_HEADER) else {
        return;
    };
    let cache_keys: Vec<_> = KeptName::read_list(names)
        .flat_map(|name| {
            let cache_keys = cache_keys(&name, installation);
            DESK.with_borrow_mut(|desk| desk.forget(name, now()));
            cache_keys
        })
        .collect();
    let cache_keys: Vec<_> = cache_keys.iter().map(String::as_str).collect();
    remove(&cache_keys).await;
    if let Some(project) = project_to_forget(names) {
        mark_private(&project, installation).await;
    }
}

/// Has the origin asked again for all files of a project, of which a folder became private.
async fn mark_private(project: &ProjectName, installation: &str) {
    let check = Check::made_private(now());
    if let Ok(mark) = check_entry(check, PRIVATE_MARK_LIFETIME, None) {
        put(&private_mark_key(project, installation), &mark).await;
    }
}

/// Notes beside an entry when the origin spoke for it.
async fn note(file: &CachedFile, check: Check) {
    if let Ok(entry) = check_entry(check, &check.lifetime(now()), Some(file.tag())) {
        put(&file.check_key(), &entry).await;
    }
}

/// An entry that holds a check and no file.
fn check_entry(check: Check, lifetime: &str, tag: Option<&str>) -> Result<Response, JsValue> {
    let headers = Headers::new()?;
    if let Some(tag) = tag {
        headers.set("etag", tag)?;
    }
    headers.set("cache-control", lifetime)?;
    headers.set(CHECK_HEADER, &check.to_string())?;
    let init = ResponseInit::new();
    init.set_headers(&headers);
    Response::new_with_opt_str_and_init(Some(""), &init)
}

/// Stores an entry, unless its file was purged since the origin was asked.
async fn store(file: &CachedFile, entry: &Response, moment: u64) {
    let is_outdated = || DESK.with_borrow(|desk| desk.was_purged(file.name(), moment, now()));
    if is_outdated() {
        discard(entry);
        return;
    }
    if !put(file.cache_key(), entry).await {
        discard(entry);
    } else if is_outdated() {
        // While its bytes came.
        remove(&[file.cache_key()]).await;
    }
}

fn fill_mode(file: &CachedFile, answer: &OriginAnswer) -> FillMode {
    file.fill_mode(&FileHead {
        status: answer.status,
        etag: answer.header("etag"),
        last_modified: answer.header("last-modified"),
        cache_control: answer.header("cache-control"),
        content_length: answer.header("content-length"),
        content_range: answer.header("content-range"),
    })
}

/// Returns the entry of an origin's answer.
fn entry_of(answer: &Response, check: Check) -> Result<Response, JsValue> {
    let headers = chosen(&answer.headers(), &CACHED_HEADERS)?;
    headers.set(CHECK_HEADER, &check.to_string())?;
    response(200, &headers, answer.body().as_ref())
}

/// An entry as it is given.
fn given(entry: &Response, check: Check, body: Option<&worker::web_sys::ReadableStream>) -> Result<Response, JsValue> {
    let headers = chosen(&entry.headers(), &CACHED_HEADERS)?;
    if let Some(range) = get(&entry.headers(), "content-range") {
        headers.set("content-range", &range)?;
    }
    headers.set("age", &check.age(now()).to_string())?;
    response(entry.status(), &headers, body)
}

fn not_modified(entry: &Response, check: Check) -> Result<Response, JsValue> {
    let headers = chosen(&entry.headers(), &NOT_MODIFIED_HEADERS)?;
    headers.set("age", &check.age(now()).to_string())?;
    response(304, &headers, None)
}

fn chosen(from: &Headers, names: &[&str]) -> Result<Headers, JsValue> {
    let headers = Headers::new()?;
    for name in names {
        if let Some(value) = get(from, name) {
            headers.set(name, &value)?;
        }
    }
    Ok(headers)
}

fn response(
    status: u16,
    headers: &Headers,
    body: Option<&worker::web_sys::ReadableStream>,
) -> Result<Response, JsValue> {
    let init = ResponseInit::new();
    init.set_status(status);
    init.set_headers(headers);
    Response::new_with_opt_readable_stream_and_init(body, &init)
}

fn read_check(headers: &Headers) -> Option<Check> {
    Check::read(&get(headers, CHECK_HEADER)?)
}

/// Seconds since 1970.
fn now() -> u64 {
    (Date::now() / 1000.0) as u64
}
