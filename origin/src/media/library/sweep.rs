//! What a crash left: objects that no row names, and files that never arrived whole.
//!
//! The ledger tells of all objects that were lost on our way; only [`sweep_all`](Library::sweep_all) lists the store, for
//! what came there in any other way. Several origins may sweep at once: deleting twice is fine. Uploads that can be resumed
//! sweep for themselves.

use super::Library;
use super::owner::Ownership;
use super::publication::PUBLISH_GRACE;
use crate::clock::now;
use crate::database::media::ObjectKey;
use crate::database::media::TableError;
use crate::fault::{self, Point};
use crate::media::store::{Effect, Listed, StoreError};
use futures_util::TryStreamExt as _;
use shared::error::{ErrorCode, Problem};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// How often an origin looks for what is due.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Objects that are deleted with one request, and asked for with one statement.
const SWEPT_AT_ONCE: usize = 500;

/// Batches of one sweep: the rest waits for the next.
const BATCHES_MAX_COUNT: usize = 1_000;

/// Objects without a row that may be any share of a store: small stores are mostly left-overs after a test, say.
const ORPHANS_ALWAYS_PLAUSIBLE: u64 = 100;

/// What was swept, or would be.
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
    /// All objects in the store, as they were found.
    pub objects: u64,
}

/// How the whole store is swept.
#[derive(Clone, Copy, Debug)]
pub struct SweepTerms {
    /// Whether anything is deleted.
    pub effect: Effect,
    /// Objects younger than this are kept.
    pub grace: Duration,
    /// Percent of all objects that may be deleted as named by no row. More means that this is not the database of the
    /// store, or not all of it.
    pub share_max: u8,
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
    /// The store is another installation's. Nothing was deleted.
    #[error("the media store is marked as another installation's")]
    Another,
    /// The store has objects and no mark. Nothing was deleted.
    #[error("the media store holds objects and no mark of the installation that owns them")]
    Unmarked,
    /// More objects than is plausible are named by no row. Nothing was deleted.
    #[error("{orphans} of {objects} objects in the media store are named by no row of this database")]
    Implausible {
        /// Objects without a row.
        orphans: u64,
        /// All objects.
        objects: u64,
    },
}

impl SweepError {
    /// The problem that the caller is shown. Logs the cause.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Store(error) => error.into_problem(),
            Self::Table(error) => error.into_problem(),
            Self::Another | Self::Unmarked | Self::Implausible { .. } => {
                tracing::error!(error = %self, "the media store can't be used");
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be used at the moment.")
            }
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
            let chance = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SWEEP_INTERVAL.mul_f64(0.5 + chance)) => {}
            }
        }
    }

    /// Deletes staged files that ended processes left, and the objects that are due.
    ///
    /// # Errors
    /// The store or MariaDB failed; some may have been swept.
    pub async fn sweep(&self) -> Result<Swept, SweepError> {
        Ok(Swept {
            // First: a crash loop, or a database that is away, must not fill the disk.
            staged: self.store.sweep_staging(Effect::Deletes).await? as u64,
            due: self.sweep_due(now()).await?,
            ..Swept::default()
        })
    }

    /// Does the same with all that is older than the grace, and looks through the whole store. With a short grace, uploads
    /// that are on their way may be refused for it; nothing that a row names is ever touched.
    ///
    /// # Errors
    /// The store is not this installation's, or an implausible share of it has no row: then nothing was deleted. The store
    /// or MariaDB failed; some may have been swept.
    pub async fn sweep_all(&self, terms: SweepTerms) -> Result<Swept, SweepError> {
        let (mut swept, orphans) = self.look_through(terms.grace).await?;
        // What was announced before the grace began.
        let due = now() + PUBLISH_GRACE.saturating_sub(terms.grace).as_secs();
        if terms.effect == Effect::Counts {
            let left_over = self.table.deletable_by(due).await?;
            swept.due = self.store.existing(&left_over).await?.len() as u64;
            swept.staged = self.store.sweep_staging(Effect::Counts).await? as u64;
            return Ok(swept);
        }
        match self.ownership().await? {
            Ownership::Own => {}
            // Nothing can be mistaken for another's.
            Ownership::Unmarked if swept.objects == 0 => {}
            Ownership::Unmarked => return Err(SweepError::Unmarked),
            Ownership::Another => return Err(SweepError::Another),
        }
        check_share(&swept, terms.share_max)?;
        swept.staged = self.store.sweep_staging(Effect::Deletes).await? as u64;
        swept.due = self.sweep_due(due).await?;
        swept.orphans = 0;
        for orphans in orphans.chunks(SWEPT_AT_ONCE) {
            swept.orphans += self.sweep_orphans(orphans).await?;
        }
        Ok(swept)
    }

    /// Lists the store, and finds the objects in it that nothing names: 16 bytes of memory each.
    async fn look_through(&self, grace: Duration) -> Result<(Swept, Vec<ObjectKey>), SweepError> {
        let (mut found, mut orphans) = (Swept::default(), Vec::new());
        let mut old = Vec::with_capacity(SWEPT_AT_ONCE);
        let mut listing = self.store.list();
        while let Some(listed) = listing.try_next().await? {
            match listed.key {
                Some(key) => {
                    found.objects += 1;
                    if is_older(&listed, grace) {
                        old.push(key);
                    }
                }
                None => found.strangers += 1,
            }
            if old.len() == SWEPT_AT_ONCE {
                orphans.extend(self.unnamed(&old).await?);
                old.clear();
            }
        }
        orphans.extend(self.unnamed(&old).await?);
        found.orphans = orphans.len() as u64;
        Ok((found, orphans))
    }

    /// Returns how many objects were there to be deleted.
    async fn sweep_due(&self, now: u64) -> Result<u64, SweepError> {
        let mut swept = 0;
        for _ in 0..BATCHES_MAX_COUNT {
            let due = self.table.mark_due(now, SWEPT_AT_ONCE).await?;
            if due.is_empty() {
                break;
            }
            fault::reach(Point::Doomed);
            // Some were announced and never stored.
            let existing = self.store.existing(&due).await?.len() as u64;
            self.delete_doomed(&due).await?;
            swept += existing;
        }
        Ok(swept)
    }

    /// Which of these neither a row nor the ledger names. They can't be named later either: objects are announced before
    /// they are stored.
    async fn unnamed(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, SweepError> {
        let named = self.table.known(keys).await?;
        let unnamed = keys.iter().copied().filter(|key| !named.contains(key));
        Ok(unnamed.collect())
    }

    async fn sweep_orphans(&self, keys: &[ObjectKey]) -> Result<u64, SweepError> {
        let orphans = self.unnamed(keys).await?;
        self.store.delete(&orphans).await?;
        Ok(orphans.len() as u64)
    }
}

fn check_share(found: &Swept, share_max: u8) -> Result<(), SweepError> {
    let (orphans, objects) = (found.orphans, found.objects);
    let is_plausible =
        orphans <= ORPHANS_ALWAYS_PLAUSIBLE || orphans.saturating_mul(100) <= objects.saturating_mul(share_max.into());
    if is_plausible {
        return Ok(());
    }
    Err(SweepError::Implausible { orphans, objects })
}

fn is_older(listed: &Listed, grace: Duration) -> bool {
    // An object from the future is not old.
    let age = SystemTime::now().duration_since(listed.modified).unwrap_or_default();
    age >= grace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_share_of_a_store_is_not_swept() {
        for (orphans, objects, share_max, is_swept) in [
            (0, 0, 50, true),
            (100, 100, 0, true),
            (101, 202, 50, true),
            (101, 201, 50, false),
            (500, 1_000_000, 50, true),
            (1_000_000, 1_000_000, 99, false),
            (1_000_000, 1_000_000, 100, true),
        ] {
            let found = Swept { orphans, objects, ..Swept::default() };
            let checked = check_share(&found, share_max);
            assert_eq!(checked.is_ok(), is_swept, "{orphans} of {objects}");
        }
    }
}
