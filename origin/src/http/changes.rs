//! Answers requests for changes: pages, long polls, server-sent events, and snapshots with the token after them.

mod errors;
mod events;
mod for_webhooks;
mod snapshot;

use super::held;
use super::records::Tables;
use super::request_context::RequestContext;
use super::respond;
use super::stream::{self, StreamLimits};
use crate::changes::{
    ChangesError, Followed, PAGE_BYTES, Page, PageLimits, Pager, Place, Subscriptions, Token, TokenFault,
};
use crate::database::ReadFrom;
use crate::database::log_reader::{ResyncReason, TableFacts};
use crate::database::position::WAIT_TIMEOUT;
use crate::database::run::snapshot::log_facts;
use crate::database::schema_cache::SchemaAge;
use crate::project_quota::QuotaGuard;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use async_stream::try_stream;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use errors::{error_event, revoked, token_error};
use events::write_event;
pub(super) use for_webhooks::FeedOfWebhooks;
use futures_util::{Stream, StreamExt as _};
use shared::envelope::write_string;
use shared::error::{ErrorCode, Problem};
use shared::format::Format;
use shared::limits::UNCOUNTED_ANSWER_MAX_BYTES;
use shared::operation::TablePath;
use shared::operation::changes::{ChangesCall, ChangesForm};
use snapshot::SnapshotOfEvents;
use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which an event stream without changes sends a heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// Maximum time for which a request waits until the feed has read the transactions that were committed before the
/// request.
const LAG_MAX: Duration = Duration::from_secs(2);
const REACHED_POLL: Duration = Duration::from_millis(50);
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// What a request for changes needs. Owns everything, since an event stream outlives the handler of its request.
struct Reader {
    app: Arc<ServiceState>,
    caller: Caller,
    subscriptions: Subscriptions,
    tables: Vec<(TablePath, TableFacts)>,
    limits: PageLimits,
    form: ChangesForm,
}

/// What follows the changes of a page or transaction, or the records of a snapshot.
struct Trailer<'a> {
    next: &'a Place,
    up_to_date: bool,
    /// Whether a snapshot lacks records, because the role or the service allow no more.
    limited: bool,
}

impl<'a> Trailer<'a> {
    fn of(page: &'a Page) -> Self {
        Self { next: &page.next, up_to_date: page.up_to_date, limited: false }
    }

    /// `token` is that of `next`.
    fn write(&self, token: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"next":"#);
        write_string(out, token);
        out.extend_from_slice(if self.up_to_date { br#","upToDate":true"# } else { br#","upToDate":false"# });
        out.extend_from_slice(if self.limited { br#","limited":true"# } else { b"" });
        out.extend_from_slice(br#","position":"#);
        write_string(out, &format!("gtid:{}", self.next.position));
        out.push(b'}');
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct StreamError(String);

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, StreamError>> + Send>>;

pub(super) async fn run(context: &RequestContext, call: ChangesCall) -> Result<Response, Problem> {
    check_is_on(context.app())?;
    answer(context, &call).await.map_err(|error| {
        context.app().changes.failed(&error);
        error.into_problem()
    })
}

fn check_is_on(app: &ServiceState) -> Result<(), Problem> {
    let off = || Problem::new(ErrorCode::ChangesUnavailable, "The feed of changes is switched off.");
    match app.changes.is_on() {
        true => Ok(()),
        false => Err(off().with_hint("Set changes = \"on\", or SELKIE_CHANGES=on, at the origin.")),
    }
}

async fn answer(context: &RequestContext, call: &ChangesCall) -> Result<Response, ChangesError> {
    let mut slot = context.app().changes.slot(context.caller(), &call.subscriptions)?;
    let age = if call.since.is_none() { SchemaAge::Fresh } else { SchemaAge::Cached };
    let mut reader = Reader::open(context, call, age).await?;
    let place = match &call.since {
        None => None,
        Some(token) => Some(match reader.place(token) {
            // The cached schema may be older than the token.
            Err(TokenFault::SchemaChanged) => {
                reader = Reader::open(context, call, SchemaAge::Fresh).await?;
                reader.place(token).map_err(token_error)?
            }
            place => place.map_err(token_error)?,
        }),
    };
    reader.weigh(&mut slot)?;
    let answered = reader.answer(context, call, place, slot).await;
    if matches!(answered, Err(ChangesError::Resync(ResyncReason::SchemaChanged))) {
        reload_schema(context, call);
    }
    answered
}

/// Fails if the project may not read the databases of the tables now: the admin account reads the log, and the rows in it
/// are no longer of these tables. Of a table that was dropped, the log may have earlier changes.
async fn check_databases<'a>(
    app: &Arc<ServiceState>,
    caller: &Caller,
    tables: impl Iterator<Item = &'a TablePath>,
    age: SchemaAge,
) -> Result<(), Problem> {
    let mut checked = HashSet::new();
    for table in tables.filter(|table| checked.insert(&table.database)) {
        match Tables::one(app, caller, table, age).await {
            Err(problem) if problem.code() != ErrorCode::TableNotFound => return Err(problem),
            _ => {}
        }
    }
    Ok(())
}

/// Reloads the cached schema of the call's tables, so that the caller's next request sees them as they are now.
fn reload_schema(context: &RequestContext, call: &ChangesCall) {
    let (app, caller) = (Arc::clone(context.app()), context.caller().clone());
    let tables: Vec<TablePath> = call.subscriptions.iter().map(|one| one.read.table.clone()).collect();
    tokio::spawn(async move {
        for table in tables {
            let _ = Tables::one(&app, &caller, &table, SchemaAge::Fresh).await;
        }
    });
}

impl Reader {
    async fn open(context: &RequestContext, call: &ChangesCall, age: SchemaAge) -> Result<Self, ChangesError> {
        let (app, caller) = (context.app(), context.caller());
        let max_rows = context.plan_limits().read_max_rows;
        let mut all: Vec<Followed> = Vec::with_capacity(call.subscriptions.len());
        for subscription in &call.subscriptions {
            let path = &subscription.read.table;
            // A fresh description of a table is not shared with other requests.
            let access = match all.iter().find(|known| known.path() == path) {
                Some(known) => known.access().clone(),
                None => Tables::one(app, caller, path, age).await?,
            };
            all.push(Followed::new(subscription, access, max_rows)?);
        }
        let subscriptions = Subscriptions::new(&call.subscriptions, all);
        let limits = PageLimits { rows: call.limit, bytes: PAGE_BYTES, statement: context.limit() };
        let mut reader = Self {
            app: Arc::clone(app),
            caller: caller.clone(),
            subscriptions,
            tables: Vec::new(),
            limits,
            form: call.form,
        };
        reader.follow().await?;
        Ok(reader)
    }

    fn weigh(&self, slot: &mut QuotaGuard) -> Result<(), Problem> {
        self.app.changes.weigh(slot, &self.subscriptions)
    }

    fn pager(&self) -> Pager<'_> {
        Pager {
            feed: &self.app.changes.feed,
            catch_ups: &self.app.changes.catch_ups,
            reads: &self.app.changes.reads,
            pools: &self.app.pools,
            lessee: self.caller.lessee(),
            memory: &self.app.answers,
            subscriptions: &self.subscriptions,
            limits: self.limits,
        }
    }

    async fn follow(&mut self) -> Result<(), ChangesError> {
        let tables = self.pager().follow().await?;
        self.subscriptions.set_facts(&tables);
        self.tables = tables;
        Ok(())
    }

    fn place(&self, token: &str) -> Result<Place, TokenFault> {
        Token::read(token, &self.app.cursors, self.caller.project(), &self.subscriptions.meaning)
    }

    fn token(&self, place: &Place) -> String {
        let token = Token { place: place.clone(), meaning: self.subscriptions.meaning };
        token.write(&self.app.cursors, self.caller.project())
    }

    async fn answer(
        mut self,
        context: &RequestContext,
        call: &ChangesCall,
        place: Option<Place>,
        slot: QuotaGuard,
    ) -> Result<Response, ChangesError> {
        match (place, call.snapshot, self.form) {
            (None, true, _) => Box::pin(self.snapshot(context, slot)).await,
            (Some(place), _, ChangesForm::Events) => {
                self.reached(context, &place).await?;
                let page = self.page(&place).await?;
                Ok(self.events(context, None, page, slot))
            }
            (Some(place), _, _) => {
                let page = self.poll(context, place, call.wait).await?;
                let mut response = self.whole(&page);
                if page.held.is_some() {
                    response.extensions_mut().insert(held::Admitted);
                }
                Ok(response)
            }
            (None, false, form) => {
                let page = Page { next: Box::pin(self.now(context)).await?, up_to_date: true, ..Page::default() };
                match form {
                    ChangesForm::Events => Ok(self.events(context, None, page, slot)),
                    ChangesForm::Page | ChangesForm::Lines => Ok(self.whole(&page)),
                }
            }
        }
    }

    /// Returns the place after all transactions that are committed now.
    async fn now(&self, context: &RequestContext) -> Result<Place, ChangesError> {
        let mut lease = context.lease(ReadFrom::Primary).await?;
        let facts = log_facts(&mut lease, context.limit()).await??;
        Ok(Place { position: facts.position, within: None })
    }

    /// Waits until the log has reached `place`, and returns the place that it has reached: a node of a cluster may be
    /// behind the node on which the token was made. Fails after [`WAIT_TIMEOUT`], as if the log never had the place.
    async fn reached(&self, context: &RequestContext, place: &Place) -> Result<Place, ChangesError> {
        let until = Instant::now() + WAIT_TIMEOUT;
        loop {
            // Boxed, as below: the future of a waiting request or stream would have the size of its largest part.
            let now = Box::pin(self.now(context)).await?;
            match place.check(&now) {
                Err(_) if Instant::now() < until => tokio::time::sleep(REACHED_POLL).await,
                checked => return checked.map(|()| now),
            }
        }
    }

    async fn page(&self, place: &Place) -> Result<Page, ChangesError> {
        let page = Box::pin(self.pager().page(place.clone(), &self.tables)).await?;
        if !page.changes.is_empty() {
            let tables = self.tables.iter().map(|(table, _)| table);
            Box::pin(check_databases(&self.app, &self.caller, tables, SchemaAge::Cached)).await?;
        }
        Ok(page)
    }

    /// Returns the page after `place`. If it has no changes, waits up to `wait` for the first one. Changes that were
    /// committed before the request are in this page or the next ones.
    async fn poll(&mut self, context: &RequestContext, mut place: Place, wait: Duration) -> Result<Page, ChangesError> {
        let until = Instant::now() + wait;
        let now = self.reached(context, &place).await?;
        self.app.changes.feed.wait_for(&now.position, LAG_MAX).await;
        let ended = Arc::clone(&self.app.keys).ended(self.caller.clone(), context.started());
        let mut ended = pin!(ended);
        // The feed may still be behind.
        let told = |page: Page| {
            let has_all = page.next.position.is_at_or_after(&now.position);
            Page { up_to_date: page.up_to_date && has_all, ..page }
        };
        loop {
            let waiter = self.app.changes.feed.waiter(self.subscriptions.waited_for());
            let page = self.page(&place).await?;
            let left = until.saturating_duration_since(Instant::now());
            if !page.changes.is_empty() || left.is_zero() {
                return Ok(told(page));
            }
            place = page.next.clone();
            if !page.up_to_date {
                continue;
            }
            let head = tokio::select! {
                head = waiter.wait(left) => head,
                () = self.app.changes.feed.stopped() => return Ok(told(page)),
                () = &mut ended => return Err(revoked().into()),
            };
            if let Some(head) = head {
                let is_later = head.is_at_or_after(&place.position) && place.within.is_none();
                let next = if is_later { Place { position: head, within: None } } else { place };
                return Ok(told(Page { next, ..page }));
            }
            self.follow().await?;
        }
    }

    /// Counts the memory of a page's events, as long as the client has not read them.
    fn held(&self, page: Page, bytes: usize) -> Result<Option<QuotaGuard>, Problem> {
        if page.held.is_some() {
            return Ok(page.held);
        }
        let bytes = (bytes as u64).min(self.app.answers.share());
        (bytes > UNCOUNTED_ANSWER_MAX_BYTES).then(|| held::take(&self.app, &self.caller, bytes)).transpose()
    }

    /// Writes a page as a whole: the envelope, or a line for each message.
    fn whole(&self, page: &Page) -> Response {
        self.app.changes.sent(page);
        let mut out = Vec::new();
        if self.form == ChangesForm::Lines {
            for change in &page.changes {
                out.extend_from_slice(&change.json);
                out.push(b'\n');
            }
            self.write_trailer(&Trailer::of(page), &mut out);
            out.push(b'\n');
            return respond::with_type(out.into(), Format::NdJson.content_type());
        }
        out.extend_from_slice(br#"{"success":true,"payload":["#);
        for (at, change) in page.changes.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"" } else { b"," });
            out.extend_from_slice(&change.json);
        }
        out.extend_from_slice(b"],");
        let start = out.len();
        self.write_trailer(&Trailer::of(page), &mut out);
        // Without its opening brace, the trailer continues the envelope.
        out.remove(start);
        respond::json(out)
    }

    fn write_trailer(&self, trailer: &Trailer<'_>, out: &mut Vec<u8>) {
        trailer.write(&self.token(trailer.next), out);
    }

    fn events(
        mut self,
        context: &RequestContext,
        records: Option<SnapshotOfEvents>,
        first: Page,
        slot: QuotaGuard,
    ) -> Response {
        let limits = StreamLimits::of_changes(context, slot);
        let guard = context.app().metrics.stream();
        let limit = context.limit();
        let chunks: Chunks = Box::pin(try_stream! {
            let mut is_cut = false;
            if let Some(SnapshotOfEvents { lease, lists, connection, time }) = records {
                let _connection = connection;
                let until = Instant::now() + time;
                let mut parts = pin!(self.records(lease, lists, limit));
                while let Some(part) = parts.next().await {
                    let (chunk, is_cut_here) = part?;
                    is_cut |= is_cut_here;
                    yield chunk;
                    if Instant::now() > until {
                        Err(StreamError("the snapshot took too long".to_owned()))?;
                    }
                }
            }
            let mut place = first.next.clone();
            let mut told = place.clone();
            let mut told_at = Instant::now();
            let events = self.write_events(&first, Some(is_cut));
            match self.held(first, events.len()) {
                Ok(_held) => yield events,
                Err(problem) => {
                    yield self.last_event(problem.into());
                    return;
                }
            }
            loop {
                let waiter = self.app.changes.feed.waiter(self.subscriptions.waited_for());
                let page = match self.page(&place).await {
                    Ok(page) => page,
                    Err(error) => {
                        yield self.last_event(error);
                        return;
                    }
                };
                place = page.next.clone();
                let up_to_date = page.up_to_date;
                if let Some(last) = page.changes.last() {
                    told.clone_from(&last.after);
                    told_at = Instant::now();
                    let events = self.write_events(&page, None);
                    match self.held(page, events.len()) {
                        Ok(_held) => yield events,
                        Err(problem) => {
                            yield self.last_event(problem.into());
                            return;
                        }
                    }
                } else if told_at.elapsed() >= HEARTBEAT_EVERY {
                    told_at = Instant::now();
                    yield self.heartbeat(&place, &mut told, up_to_date);
                }
                if !up_to_date {
                    continue;
                }
                let head = tokio::select! {
                    head = waiter.wait(HEARTBEAT_EVERY.saturating_sub(told_at.elapsed())) => head,
                    () = self.app.changes.feed.stopped() => return,
                };
                if let Some(head) = head {
                    if place.within.is_none() && head.is_at_or_after(&place.position) {
                        place.position = head;
                    }
                    continue;
                }
                if let Err(error) = self.follow().await {
                    yield self.last_event(error);
                    return;
                }
            }
        });
        let mut response = respond::with_type(stream::body([], chunks, "", limits, guard), EVENT_STREAM);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Without this header, proxies such as nginx buffer events.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        response
    }

    /// Writes the changes of a page as events `change`, and an event `transaction` after the last change of each
    /// transaction: a client may apply the transaction then. If the page is the first one, it gets an event
    /// `transaction` even without changes, which tells the client the token from which the stream goes on, and whether
    /// the snapshot before it is cut (`first`).
    fn write_events(&self, page: &Page, first: Option<bool>) -> Bytes {
        self.app.changes.sent(page);
        let mut out = Vec::new();
        for change in &page.changes {
            let token = self.token(&change.after);
            write_event("change", Some(&token), &change.json, &mut out);
            if change.ends_transaction {
                let up_to_date = page.up_to_date && std::ptr::eq(change, page.changes.last().unwrap_or(change));
                write_transaction_event(&Trailer { next: &change.after, up_to_date, limited: false }, &token, &mut out);
            }
        }
        if let Some(limited) = first.filter(|_| page.changes.is_empty()) {
            let trailer = Trailer { next: &page.next, up_to_date: true, limited };
            write_transaction_event(&trailer, &self.token(&page.next), &mut out);
        }
        Bytes::from(out)
    }

    /// Tells a client without changes the token of the present: MariaDB may delete the log from the last one on.
    fn heartbeat(&self, place: &Place, told: &mut Place, up_to_date: bool) -> Bytes {
        if place == told || place.within.is_some() {
            return Bytes::from_static(b": nothing changed\n\n");
        }
        told.clone_from(place);
        let mut out = Vec::new();
        let trailer = Trailer { next: place, up_to_date, limited: false };
        write_transaction_event(&trailer, &self.token(place), &mut out);
        Bytes::from(out)
    }

    fn last_event(&self, error: ChangesError) -> Bytes {
        self.app.changes.failed(&error);
        error_event(error)
    }
}

fn write_transaction_event(trailer: &Trailer<'_>, token: &str, out: &mut Vec<u8>) {
    let mut json = Vec::new();
    trailer.write(token, &mut json);
    write_event("transaction", Some(token), &json, out);
}
