//! Limits of a streamed response of records: a slot of its project, a total time, a key that is not revoked.

use crate::app::App;
use crate::clock::now;
use crate::shares::Guard;
use shared::error::Problem;
use shared::key::Principal;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(in crate::http) struct StreamLimits {
    /// Longest wait for the client to read.
    pub(super) write_timeout: Duration,
    pub(super) over: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Released with the stream.
    pub(super) _slot: Option<Guard>,
}

impl StreamLimits {
    /// Returns the limits of a media stream, which holds no database connection: only `write_timeout`.
    pub(in crate::http) fn of_file(app: &App) -> Self {
        Self { write_timeout: app.bounds.write_timeout, over: Box::pin(std::future::pending()), _slot: None }
    }

    /// Returns the limits of a stream of records for this key, and takes a slot. `since` is a time before the key was
    /// verified, from which revocations count.
    ///
    /// # Errors
    /// `rate_limited` if the project uses its share of streams, `overloaded` if all projects together use all.
    pub(in crate::http) fn of_records(app: &App, principal: &Principal, since: Instant) -> Result<Self, Problem> {
        let shares = app.streams.of(principal.access());
        let slot = shares.try_take(principal.project(), 1);
        let slot = slot.map_err(|refused| refused.into_problem("streamed answers"))?;
        let lifetime =
            principal.expires_at().map_or(Duration::MAX, |end| Duration::from_secs(end.saturating_sub(now())));
        let total = tokio::time::sleep(app.streams.timeout().min(lifetime));
        let revoked = Arc::clone(&app.keys).ended(principal.key_id(), since);
        Ok(Self {
            write_timeout: app.bounds.write_timeout,
            over: Box::pin(async {
                tokio::select! {
                    () = total => {}
                    () = revoked => {}
                }
            }),
            _slot: Some(slot),
        })
    }
}
