//! Limits of a streamed response: the time to wait for the client and, for records, also a stream slot of the project,
//! a total time, and the validity of the key or token.

use crate::clock::now;
use crate::http::request_context::RequestContext;
use crate::project_quota::QuotaGuard;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use shared::error::Problem;
use shared::request_id::RequestId;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(in crate::http) struct StreamLimits {
    pub(super) write_timeout: Duration,
    pub(super) over: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(super) _slot: Option<QuotaGuard>,
    pub(super) request_id: RequestId,
}

impl StreamLimits {
    /// The limits of a media stream: only `write_timeout`, since the stream holds no database connection.
    pub(in crate::http) fn of_file(app: &ServiceState, request_id: RequestId) -> Self {
        let over = Box::pin(std::future::pending());
        Self { write_timeout: app.bounds.write_timeout, over, _slot: None, request_id }
    }

    /// The limits of a stream of records. `since` is a time before the caller was verified: a change of the key, issuer
    /// or role after that time ends the stream.
    pub(in crate::http) fn of_records(
        app: &ServiceState,
        caller: &Caller,
        since: Instant,
        request_id: RequestId,
    ) -> Result<Self, Problem> {
        let shares = app.streams.of(caller.account());
        let slot = shares.try_take_as(caller.project(), caller.key_id(), 1);
        let slot = slot.map_err(|refused| refused.into_problem("streamed answers"))?;
        let lifetime = caller.expires_at().map_or(Duration::MAX, |end| Duration::from_secs(end.saturating_sub(now())));
        let total = tokio::time::sleep(app.streams.timeout().min(lifetime));
        let revoked = Arc::clone(&app.keys).ended(caller.clone(), since);
        Ok(Self {
            write_timeout: app.bounds.write_timeout,
            over: Box::pin(async {
                tokio::select! {
                    () = total => {}
                    () = revoked => {}
                }
            }),
            _slot: Some(slot),
            request_id,
        })
    }

    /// The limits of a stream of changes, which holds no connection while it waits: it may last as long as its caller's key,
    /// token and role are valid.
    pub(in crate::http) fn of_changes(context: &RequestContext, slot: QuotaGuard) -> Self {
        let (app, caller) = (context.app(), context.caller());
        let lifetime = caller.expires_at().map(|end| Duration::from_secs(end.saturating_sub(now())));
        let expired = async move {
            match lifetime {
                Some(lifetime) => tokio::time::sleep(lifetime).await,
                None => std::future::pending().await,
            }
        };
        let revoked = Arc::clone(&app.keys).ended(caller.clone(), context.started());
        Self {
            write_timeout: app.bounds.write_timeout,
            over: Box::pin(async {
                tokio::select! {
                    () = expired => {}
                    () = revoked => {}
                }
            }),
            _slot: Some(slot),
            request_id: context.request_id().clone(),
        }
    }

    /// Ends the stream after `total`. The slot is released when the stream has ended.
    pub(in crate::http) fn within(self, total: Duration, slot: QuotaGuard) -> Self {
        Self { over: Box::pin(tokio::time::sleep(total)), _slot: Some(slot), ..self }
    }
}
