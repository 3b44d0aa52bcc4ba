//! What a crash left: objects that no row names, and files that never arrived whole.
//!
//! The ledger tells of all objects that were lost on our way; only [`sweep_all`](Library::sweep_all) lists the store, for
//! what came there in any other way. Several origins may sweep at once: deleting twice is fine. Uploads that can be resumed
//! sweep for themselves.

use super::Library;
use super::publication::PUBLISH_GRACE;
use crate::clock::now;
use crate::db::media::TableError;
use crate::fault::{self, Point};
use crate::media::store::{Listed, ObjectKey, StoreError};
use futures_util::TryStreamExt as _;
use shared::error::Problem;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// How often an origin looks for what is due.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Objects that are deleted with one request, and asked for with one statement.
const SWEPT_AT_ONCE: usize = 500;

/// Batches of one sweep: the rest waits for the next.
const BATCHES_MAX_COUNT: usize = 1_000;

/// How long nobody has written to a staged file before it is one that a crash left: longer than a slow body's other files
/// may keep it waiting.
const STAGING_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// What was swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects of the ledger that were due.
    pub due: u64,
    /// Staged files.
    pub staged: u64,
    /// Objects in the store that neither a row nor the ledger names.
    pub orphans: u64,
    /// Files in the store that are none of ours. They stay.
    pub strangers: u64,
}

/// Why a sweep ended early. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tables failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl SweepError {
    /// The problem that the caller is shown. Logs the cause.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Store(error) => error.into_problem(),
            Self::Table(error) => error.into_problem(),
        }
    }
}

impl Library {
    /// Deletes what is due, again and again until `stop`; at once for the first time.
    pub async fn sweep_always(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                swept = self.sweep() => match swept {
                    Ok(swept) if swept == Swept::default() => {}
                    Ok(swept) => tracing::info!(due = swept.due, staged = swept.staged, "media were swept"),
                    Err(error) => tracing::warn!(%error, "media could not be swept"),
                }
            }
            // Origins that were started together part.
            let chance =
                getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SWEEP_INTERVAL.mul_f64(0.5 + chance)) => {}
            }
        }
    }

    /// Deletes the objects that are due, and staged files that a crash left.
    ///
    /// # Errors
    /// The store or MariaDB failed; some may have been swept.
    pub async fn sweep(&self) -> Result<Swept, SweepError> {
        Ok(Swept {
            due: self.sweep_due(now()).await?,
            staged: self.store.sweep_staging(STAGING_GRACE).await? as u64,
            ..Swept::default()
        })
    }

    /// Does the same with all that is older than `grace`, and looks through the whole store. With a short grace, uploads
    /// that are on their way may be refused for it; nothing that a row names is ever touched.
    ///
    /// # Errors
    /// The store or MariaDB failed; some may have been swept.
    pub async fn sweep_all(&self, grace: Duration) -> Result<Swept, SweepError> {
        // What was announced before the grace began.
        let due = now() + PUBLISH_GRACE.saturating_sub(grace).as_secs();
        let mut swept = Swept {
            due: self.sweep_due(due).await?,
            staged: self.store.sweep_staging(grace).await? as u64,
            ..Swept::default()
        };
        let mut old = Vec::with_capacity(SWEPT_AT_ONCE);
        let mut listing = self.store.list();
        while let Some(listed) = listing.try_next().await? {
            match listed.key {
                Some(key) if is_older(&listed, grace) => old.push(key),
                Some(_) => {}
                None => swept.strangers += 1,
            }
            if old.len() == SWEPT_AT_ONCE {
                swept.orphans += self.sweep_orphans(&old).await?;
                old.clear();
            }
        }
        swept.orphans += self.sweep_orphans(&old).await?;
        Ok(swept)
    }

    async fn sweep_due(&self, now: u64) -> Result<u64, SweepError> {
        let mut swept = 0;
        for _ in 0..BATCHES_MAX_COUNT {
            let due = self.table.due(now, SWEPT_AT_ONCE).await?;
            if due.is_empty() {
                break;
            }
            fault::reach(Point::Doomed);
            self.delete_doomed(&due).await?;
            swept += due.len() as u64;
        }
        Ok(swept)
    }

    /// What neither a row nor the ledger names can't be named later either: objects are announced before they are stored.
    async fn sweep_orphans(&self, keys: &[ObjectKey]) -> Result<u64, SweepError> {
        let named = self.table.named(keys).await?;
        let orphans: Vec<ObjectKey> = keys
            .iter()
            .copied()
            .filter(|key| !named.contains(key))
            .collect();
        self.store.delete(&orphans).await?;
        Ok(orphans.len() as u64)
    }
}

fn is_older(listed: &Listed, grace: Duration) -> bool {
    // An object from the future is not old.
    let age = SystemTime::now()
        .duration_since(listed.modified)
        .unwrap_or_default();
    age >= grace
}
