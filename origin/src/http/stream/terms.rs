//! The limits of a streamed answer of records: a slot of its project, a total time, and a key that is not revoked.

use crate::app::App;
use crate::clock::now;
use crate::shares::Guard;
use shared::error::Problem;
use shared::key::Principal;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What ends a stream before its last byte.
pub(in crate::http) struct Terms {
    /// How long the client may read nothing.
    pub(super) write_timeout: Duration,
    /// Resolves when the stream must end.
    pub(super) over: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Freed with the stream.
    pub(super) _slot: Option<Guard>,
}

impl Terms {
    /// The limits of a file's stream, which holds nothing that other requests wait for.
    pub(in crate::http) fn of_file(app: &App) -> Self {
        Self { write_timeout: app.bounds.write_timeout, over: Box::pin(std::future::pending()), _slot: None }
    }

    /// The limits of a stream of records for this key, which was verified after `since`.
    ///
    /// # Errors
    /// `rate_limited` if the project has its share of streams, `overloaded` if all projects have all of them.
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
