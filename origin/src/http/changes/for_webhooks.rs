//! Reads changes for webhooks, by the same steps as for a request of a full key.

use super::{Reader, check_databases, token_error};
use crate::changes::{ChangesError, Meaning, Place, Token, TokenFault};
use crate::database::log_reader::ResyncReason;
use crate::database::schema_cache::SchemaAge;
use crate::http::request_context::RequestContext;
use crate::http::request_metrics::RequestMetrics;
use crate::project_quota::ProjectQuota;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use crate::webhooks::{Asked, ChangePage, ChangeSource, SourceError};
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use shared::error::Problem;
use shared::limits::CHANGES_WAIT_MAX;
use shared::operation::changes::{ChangesCall, ChangesForm};
use std::sync::Arc;
use std::time::Instant;

/// Maximum changes of one delivery.
const DELIVERY_MAX_CHANGES: usize = 100;
/// Bytes of changes at which a delivery ends. Its last change may go beyond.
const DELIVERY_BYTES: usize = 256 * 1024;
/// A webhook's position is one in the log only: a changed definition goes on from there.
const ANY: Meaning = Meaning { asked: [0; 16], schema: [0; 16], seen: [0; 16] };

/// The changes of the origin's feed.
pub(in crate::http) struct FeedOfWebhooks(pub Arc<ServiceState>);

impl ChangeSource for FeedOfWebhooks {
    fn changes(
        &self,
        asked: Asked,
        since: String,
        slots: ProjectQuota,
    ) -> BoxFuture<'static, Result<ChangePage, SourceError>> {
        let app = Arc::clone(&self.0);
        async move { changes(&app, &asked, &since, &slots).await.map_err(|error| source_error(&app, error)) }.boxed()
    }

    fn check(&self, asked: Asked) -> BoxFuture<'static, Result<(), Problem>> {
        let app = Arc::clone(&self.0);
        async move {
            let caller = caller(&asked);
            let tables = asked.subscriptions.iter().map(|of| &of.subscription.read.table);
            check_databases(&app, &caller, tables, SchemaAge::Fresh).await
        }
        .boxed()
    }

    fn position(&self, asked: Asked) -> BoxFuture<'static, Result<String, SourceError>> {
        let app = Arc::clone(&self.0);
        async move { position(&app, &asked).await.map_err(|error| source_error(&app, error)) }.boxed()
    }
}

fn source_error(app: &ServiceState, error: ChangesError) -> SourceError {
    app.changes.failed(&error);
    match error.resync_reason() {
        Some(reason) => SourceError::Resync(reason.as_str()),
        None => SourceError::Problem(error.into_problem()),
    }
}

async fn changes(
    app: &Arc<ServiceState>,
    asked: &Asked,
    since: &str,
    slots: &ProjectQuota,
) -> Result<ChangePage, ChangesError> {
    let (context, call) = request(app, asked)?;
    let mut place = Token::read(since, &app.cursors, &asked.project, &ANY).map_err(|fault| match fault {
        TokenFault::Foreign => ChangesError::Resync(ResyncReason::UnknownPosition),
        fault => token_error(fault),
    })?;
    let mut follower = app.changes.slot(context.caller(), &call.subscriptions)?;
    let mut reader = Reader::open(&context, &call, SchemaAge::Cached).await?;
    reader.weigh(&mut follower)?;
    reader.limits.bytes = DELIVERY_BYTES;
    for (followed, of) in reader.subscriptions.all.iter_mut().zip(&*asked.subscriptions) {
        followed.types.clone_from(&of.types);
    }
    if !app.changes.feed.has_reached(&place.position) {
        reader.reached(&context, &place).await?;
    }
    let until = Instant::now() + call.wait;
    loop {
        let waiter = app.changes.feed.waiter(reader.subscriptions.waited_for());
        let slot = slots.take_as(&asked.project, asked.webhook, 1).await;
        let page = reader.page(&place).await?;
        app.changes.sent(&page);
        let changes: Vec<_> = page.changes.into_iter().map(|change| change.json).collect();
        let left = until.saturating_duration_since(Instant::now());
        if !changes.is_empty() || left.is_zero() {
            return Ok(ChangePage { changes, next: token(app, asked, page.next), slot: Some(slot) });
        }
        drop(slot);
        place = page.next;
        if page.up_to_date {
            tokio::select! {
                _ = waiter.wait(left) => reader.follow().await?,
                () = app.changes.feed.stopped() => {
                    return Ok(ChangePage { changes, next: token(app, asked, place), slot: None });
                }
            }
        }
    }
}

async fn position(app: &Arc<ServiceState>, asked: &Asked) -> Result<String, ChangesError> {
    let (context, call) = request(app, asked)?;
    super::check_is_on(app)?;
    let reader = Reader::open(&context, &call, SchemaAge::Fresh).await?;
    Ok(token(app, asked, reader.now(&context).await?))
}

fn token(app: &ServiceState, asked: &Asked, place: Place) -> String {
    Token { place, meaning: ANY }.write(&app.cursors, &asked.project)
}

fn caller(asked: &Asked) -> Caller {
    Caller::of_webhook(asked.project.clone(), asked.webhook)
}

fn request(app: &Arc<ServiceState>, asked: &Asked) -> Result<(RequestContext, ChangesCall), ChangesError> {
    let metrics = Arc::new(RequestMetrics::begin(Arc::clone(app), &Request::new(Body::empty())));
    let context = RequestContext::new(&metrics, caller(asked), &HeaderMap::new())?;
    let call = ChangesCall {
        subscriptions: asked.subscriptions.iter().map(|of| of.subscription.clone()).collect(),
        since: None,
        wait: CHANGES_WAIT_MAX,
        limit: DELIVERY_MAX_CHANGES,
        snapshot: false,
        form: ChangesForm::Page,
    };
    Ok((context, call))
}
