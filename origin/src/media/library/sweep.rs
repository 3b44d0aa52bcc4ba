//! Deletes objects that no row refers to, and staged files of ended processes. Regular sweeps find the objects in the
//! ledger; only [`sweep_all`](Library::sweep_all) lists the store. Several origins may sweep concurrently.

use super::Library;
use super::owner::Ownership;
use super::publication::PUBLISH_GRACE;
use crate::clock::now;
use crate::crash_points::{self, Point};
use crate::database::media::ObjectKey;
use crate::database::media::TableError;
use crate::media::store::{Effect, Listed, StoreError};
use futures_util::TryStreamExt as _;
use shared::error::{ErrorCode, Problem};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// The maximum number of objects per call of the store or MariaDB.
const SWEPT_AT_ONCE: usize = 500;

const BATCHES_MAX_COUNT: usize = 1_000;

/// The number of orphans up to which a sweep ignores their percentage: a small store may consist mostly of orphans.
const ORPHANS_ALWAYS_PLAUSIBLE: u64 = 100;

/// The numbers of what a sweep deletes or, with [`Effect::Counts`], would delete. Only `sweep_all` lists the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub due: u64,
    pub staged: u64,
    pub orphans: u64,
    /// The number of files whose path is not that of an object. Sweeps never delete such files.
    pub strangers: u64,
    pub objects: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct SweepTerms {
    pub effect: Effect,
    /// The minimum age of orphans and of unfinished publications, for which more than four hours counts as four hours.
    pub grace: Duration,
    /// The maximum percentage of orphans. A sweep that finds more, and over 100, deletes nothing, since the database
    /// may be incomplete or belong to another store.
    pub share_max: u8,
}

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the media store is marked as another installation's")]
    Another,
    #[error("the media store holds objects and no mark of the installation that owns them")]
    Unmarked,
    #[error("{orphans} of {objects} objects in the media store are named by no row of this database")]
    Implausible { orphans: u64, objects: u64 },
}

impl From<SweepError> for Problem {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Store(error) => error.into(),
            SweepError::Table(error) => error.into(),
            SweepError::Another | SweepError::Unmarked | SweepError::Implausible { .. } => {
                tracing::error!(%error, "the media store can't be used");
                Problem::new(ErrorCode::StorageUnavailable, "The storage of files can't be used at the moment.")
            }
        }
    }
}

impl Library {
    /// Sweeps every 5 to 15 minutes, until `stop` is cancelled.
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
            // Origins that were started at the same time must not sweep at the same time.
            let chance = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SWEEP_INTERVAL.mul_f64(0.5 + chance)) => {}
            }
        }
    }

    /// Deletes staged files and due objects. Objects without rows are due four hours after their publication began.
    pub async fn sweep(&self) -> Result<Swept, SweepError> {
        Ok(Swept {
            // The disk must not fill up while MariaDB is unavailable or the origin crashes repeatedly.
            staged: self.store.sweep_staging(Effect::Deletes).await? as u64,
            due: self.sweep_due(now()).await?,
            ..Swept::default()
        })
    }

    /// Deletes due objects and orphans. A short [`SweepTerms::grace`] may make uploads in progress fail, but no object
    /// that a row refers to is ever deleted.
    pub async fn sweep_all(&self, terms: SweepTerms) -> Result<Swept, SweepError> {
        let (mut swept, orphans) = self.find_orphans(terms.grace).await?;
        let due = now() + PUBLISH_GRACE.saturating_sub(terms.grace).as_secs();
        if terms.effect == Effect::Counts {
            let deletable = self.table.deletable_by(due).await?;
            swept.due = self.store.existing(&deletable).await?.len() as u64;
            swept.staged = self.store.sweep_staging(Effect::Counts).await? as u64;
            return Ok(swept);
        }
        match self.ownership().await? {
            Ownership::Own => {}
            // An empty store holds no files of another installation.
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

    /// Returns the orphans of at least this age. Each key takes 16 bytes of memory.
    async fn find_orphans(&self, grace: Duration) -> Result<(Swept, Vec<ObjectKey>), SweepError> {
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

    /// Deletes due objects, and returns how many of them were in the store. `now` is in seconds since 1970.
    async fn sweep_due(&self, now: u64) -> Result<u64, SweepError> {
        let mut swept = 0;
        for _ in 0..BATCHES_MAX_COUNT {
            let due = self.table.mark_due(now, SWEPT_AT_ONCE).await?;
            if due.is_empty() {
                break;
            }
            crash_points::reach(Point::DeletionRecorded);
            let existing = self.store.existing(&due).await?.len() as u64;
            self.delete_marked(None, &due).await?;
            swept += existing;
        }
        Ok(swept)
    }

    /// Returns the keys without row or ledger entry. No row gets them later: the ledger has a key before the store.
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
    // An object with a modification time in the future has age 0.
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
