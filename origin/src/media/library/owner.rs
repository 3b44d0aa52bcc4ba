//! Which installation owns the store. Its database names the objects that are needed, and a sweep deletes the others: two
//! installations in one store would delete each other's files.
//!
//! An empty store is marked with the id of the installation that first stores a file there.

use super::{Library, SweepError};
use futures_util::TryStreamExt as _;
use shared::error::{ErrorCode, Problem};

/// The owner of the store, as its owner mark names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This installation's.
    Own,
    /// Nobody's: there is no mark.
    Unmarked,
    /// Another installation's.
    Another,
}

impl Library {
    /// Returns whose the store is.
    ///
    /// # Errors
    /// The store or MariaDB failed.
    pub async fn ownership(&self) -> Result<Ownership, SweepError> {
        let own = self.table.installation().await?;
        Ok(match self.store.owner().await? {
            None => Ownership::Unmarked,
            Some(mark) if mark.trim() == own => Ownership::Own,
            Some(_) => Ownership::Another,
        })
    }

    /// Marks the store as this installation's, whatever mark was there.
    ///
    /// # Errors
    /// The store or MariaDB failed.
    pub async fn take_over_store(&self) -> Result<(), SweepError> {
        let own = self.table.installation().await?;
        Ok(self.store.take_over(format!("{own}\n")).await?)
    }

    /// Refuses to store files among those of another installation, and marks an empty store. Asks the store once in the
    /// life of a process, unless the store fails or refuses.
    pub(super) async fn check_owner(&self) -> Result<(), Problem> {
        let checked = self.owner_checked.get_or_try_init(|| self.claim_if_empty());
        match checked.await {
            Ok(()) => Ok(()),
            Err(SweepError::Another) => {
                tracing::error!("{}", SweepError::Another);
                Err(Problem::new(
                    ErrorCode::StorageUnavailable,
                    "The storage of files belongs to another installation.",
                ))
            }
            Err(error) => Err(error.into_problem()),
        }
    }

    async fn claim_if_empty(&self) -> Result<(), SweepError> {
        if self.ownership().await? == Ownership::Unmarked {
            if self.store.list().try_next().await?.is_some() {
                // From before there were marks. `selkie media claim` is for the operator to run.
                tracing::warn!("{}", SweepError::Unmarked);
                return Ok(());
            }
            let own = self.table.installation().await?;
            self.store.claim(format!("{own}\n")).await?;
        }
        match self.ownership().await? {
            Ownership::Another => Err(SweepError::Another),
            Ownership::Own | Ownership::Unmarked => Ok(()),
        }
    }
}
