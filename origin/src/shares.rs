//! A limit of slots or bytes for the whole process, with a maximum share for each project. Does not know what is
//! limited, or who uses it.

use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A limit for the whole process, with a share for each project. Clones share the counts.
#[derive(Clone, Debug)]
pub struct Shares {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    whole: u64,
    share: u64,
    taken: Mutex<Taken>,
    given_back: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    whole: u64,
    /// The amount in use by each project. Projects that use nothing have no entry.
    by_project: HashMap<ProjectName, u64>,
}

/// An amount that a project uses. Dropping the guard gives the amount back.
#[derive(Debug)]
pub struct Guard {
    inner: Arc<Inner>,
    project: ProjectName,
    amount: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Whole { limit: u64 },
    Share { limit: u64 },
}

impl Refused {
    /// Returns the problem for the caller: 429 `rate_limited` if the project would exceed its share, 503 `overloaded`
    /// if all projects together would exceed the whole limit. `what` is the plural noun of the counted things, such as
    /// "uploads".
    #[must_use]
    pub fn into_problem(self, what: &str) -> Problem {
        match self {
            Self::Whole { limit } => Problem::new(
                ErrorCode::Overloaded,
                format!(
                    "The request goes beyond {limit} {what}, the most that all projects together may have at once."
                ),
            ),
            Self::Share { limit } => Problem::new(
                ErrorCode::RateLimited,
                format!("The request goes beyond {limit} {what}, the most that one project may have at once."),
            )
            .with_hint("Retry when another request of the project has ended."),
        }
    }
}

impl Shares {
    /// Creates a limit of `whole` for all projects together and `share` for each project.
    #[must_use]
    pub fn new(whole: u64, share: u64) -> Self {
        Self { inner: Arc::new(Inner { whole, share, taken: Mutex::default(), given_back: Notify::new() }) }
    }

    #[must_use]
    pub fn whole(&self) -> u64 {
        self.inner.whole
    }

    #[must_use]
    pub fn share(&self) -> u64 {
        self.inner.share
    }

    /// Takes `amount` for a project, without waiting for other amounts to be given back.
    ///
    /// # Errors
    /// The amount would exceed the project's share or the whole limit.
    pub fn try_take(&self, project: &ProjectName, amount: u64) -> Result<Guard, Refused> {
        self.inner.add(project, amount)?;
        Ok(Guard { inner: Arc::clone(&self.inner), project: project.clone(), amount })
    }

    /// Waits until both limits allow `amount`, then takes it for the project. Callers need a timeout, because an amount
    /// above one of the limits is never granted.
    pub async fn take(&self, project: &ProjectName, amount: u64) -> Guard {
        loop {
            let mut given_back = pin!(self.inner.given_back.notified());
            // The waiter is registered before the attempt, so that no amount given back in between is missed.
            given_back.as_mut().enable();
            if let Ok(guard) = self.try_take(project, amount) {
                return guard;
            }
            given_back.await;
        }
    }
}

impl Guard {
    /// Takes another `amount` for the guard's project.
    ///
    /// # Errors
    /// The amount would exceed the project's share or the whole limit. The guard is unchanged.
    pub fn grow(&mut self, amount: u64) -> Result<(), Refused> {
        self.inner.add(&self.project, amount)?;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.inner.give_back(&self.project, self.amount);
    }
}

impl Inner {
    fn add(&self, project: &ProjectName, amount: u64) -> Result<(), Refused> {
        let mut taken = self.taken();
        let held = taken.by_project.get(project).copied().unwrap_or_default();
        if held.saturating_add(amount) > self.share {
            return Err(Refused::Share { limit: self.share });
        }
        if taken.whole.saturating_add(amount) > self.whole {
            return Err(Refused::Whole { limit: self.whole });
        }
        taken.whole += amount;
        match taken.by_project.get_mut(project) {
            Some(held) => *held += amount,
            None => drop(taken.by_project.insert(project.clone(), amount)),
        }
        Ok(())
    }

    fn give_back(&self, project: &ProjectName, amount: u64) {
        let mut taken = self.taken();
        taken.whole -= amount;
        match taken.by_project.get_mut(project) {
            Some(held) if *held > amount => *held -= amount,
            _ => drop(taken.by_project.remove(project)),
        }
        drop(taken);
        self.given_back.notify_waiters();
    }

    /// Locks the counts. They are consistent even if a thread panicked with the lock, so poisoning is ignored.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
