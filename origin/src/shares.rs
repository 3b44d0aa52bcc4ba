//! A limit for the whole process, of which each project has a share: slots or bytes, taken and given back.
//!
//! Knows neither what is limited nor who asks for it.

use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A limit and the share of a project. Clones count together.
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
    /// Only projects that hold something have an entry.
    by_project: HashMap<ProjectName, u64>,
}

/// What a project holds until the guard is dropped.
#[derive(Debug)]
pub struct Guard {
    inner: Arc<Inner>,
    project: ProjectName,
    amount: u64,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The limit of all projects together.
    Whole {
        /// The limit.
        limit: u64,
    },
    /// The share of one project.
    Share {
        /// The share.
        limit: u64,
    },
}

impl Refused {
    /// The answer to the caller: 429 `rate_limited` at the project's share, 503 `overloaded` at the limit of the
    /// whole. `what` is counted, in the plural: "uploads".
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
    /// At most `whole` for all projects together, and at most `share` for each.
    #[must_use]
    pub fn new(whole: u64, share: u64) -> Self {
        Self { inner: Arc::new(Inner { whole, share, taken: Mutex::default(), given_back: Notify::new() }) }
    }

    /// The limit of all projects together.
    #[must_use]
    pub fn whole(&self) -> u64 {
        self.inner.whole
    }

    /// The share of one project.
    #[must_use]
    pub fn share(&self) -> u64 {
        self.inner.share
    }

    /// Takes an amount for a project, or refuses it at once.
    ///
    /// # Errors
    /// The project's share or the whole is used up.
    pub fn try_take(&self, project: &ProjectName, amount: u64) -> Result<Guard, Refused> {
        self.inner.add(project, amount)?;
        Ok(Guard { inner: Arc::clone(&self.inner), project: project.clone(), amount })
    }

    /// Takes an amount for a project as soon as both limits allow it. Give the wait a time-out: an amount beyond
    /// the share is waited for without end.
    pub async fn take(&self, project: &ProjectName, amount: u64) -> Guard {
        loop {
            let mut given_back = pin!(self.inner.given_back.notified());
            // Registered before the attempt: what is given back in between is not missed.
            given_back.as_mut().enable();
            if let Ok(guard) = self.try_take(project, amount) {
                return guard;
            }
            given_back.await;
        }
    }
}

impl Guard {
    /// Takes more for the same project.
    ///
    /// # Errors
    /// The project's share or the whole is used up; what is held stays.
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

    /// The counts are whole at every step, so a poisoned lock still guards good data.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
