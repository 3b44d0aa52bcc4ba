//! Checks which installation owns the store. Two installations in one store would delete each other's files, since
//! [`Library::sweep_all`] deletes objects that the database does not refer to.

use super::{Library, SweepError};
use futures_util::TryStreamExt as _;
use shared::error::{ErrorCode, Problem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    Own,
    Unmarked,
    Another,
}

impl Library {
    pub async fn ownership(&self) -> Result<Ownership, SweepError> {
        let own = self.table.installation().await?;
        Ok(match self.store.owner().await? {
            None => Ownership::Unmarked,
            Some(mark) if mark.trim() == own => Ownership::Own,
            Some(_) => Ownership::Another,
        })
    }

    pub async fn take_over_store(&self) -> Result<(), SweepError> {
        let own = self.table.installation().await?;
        Ok(self.store.take_over(format!("{own}\n")).await?)
    }

    /// Checks that the store is this installation's. A store with objects but no mark passes, with a logged warning.
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
            Err(error) => Err(error.into()),
        }
    }

    async fn claim_if_empty(&self) -> Result<(), SweepError> {
        if self.ownership().await? == Ownership::Unmarked {
            if self.store.list().try_next().await?.is_some() {
                // A version without owner marks may have stored the objects.
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
