//! A limit of slots or bytes for the whole process, with a maximum share for each project and perhaps for each caller.
//! Does not know what is limited.

use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Clones share the counts.
#[derive(Clone, Debug)]
pub struct ProjectQuota {
    inner: Arc<QuotaState>,
}

#[derive(Debug)]
struct QuotaState {
    whole: u64,
    share: u64,
    /// What a project may use beyond its share by callers that use little; 0 if callers are not distinguished.
    beyond: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    whole: u64,
    by_project: HashMap<ProjectName, OfProject>,
    queue: VecDeque<Waiter>,
    /// A number that grows with each waiter that came or was served.
    serial: u64,
}

#[derive(Debug, Default)]
struct OfProject {
    held: Held,
    by_caller: HashMap<Uuid, Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    amount: u64,
    waiting: u32,
    served: u64,
}

#[derive(Debug)]
struct Waiter {
    serial: u64,
    project: ProjectName,
    caller: Uuid,
    amount: u64,
    grant: oneshot::Sender<QuotaGuard>,
}

#[derive(Debug)]
pub struct QuotaGuard {
    inner: Arc<QuotaState>,
    project: ProjectName,
    caller: Uuid,
    amount: u64,
}

struct QueuePlace<'a> {
    inner: &'a QuotaState,
    serial: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Whole { limit: u64 },
    Share { limit: u64 },
}

impl Refused {
    /// Returns the problem response. `what` is a plural noun such as "uploads".
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

/// Returns what a project may use beyond its share by callers that use little: half of the share.
pub fn beyond(share: u64) -> u64 {
    (share / 2).max(1)
}

impl ProjectQuota {
    pub fn new(whole: u64, share: u64) -> Self {
        Self::with(whole, share, 0)
    }

    /// Limits callers too. One caller may use its project's whole share, and then other callers may use [`beyond`] it.
    /// So no caller alone can keep others of its project out, and a single caller has the whole share.
    pub fn with_callers(whole: u64, share: u64) -> Self {
        Self::with(whole, share, beyond(share))
    }

    fn with(whole: u64, share: u64, beyond: u64) -> Self {
        Self { inner: Arc::new(QuotaState { whole, share, beyond, taken: Mutex::default() }) }
    }

    pub fn whole(&self) -> u64 {
        self.inner.whole
    }

    pub fn share(&self) -> u64 {
        self.inner.share
    }

    pub fn taken(&self) -> u64 {
        self.inner.taken().whole
    }

    pub fn waiting(&self) -> usize {
        self.inner.taken().queue.len()
    }

    pub fn try_take(&self, project: &ProjectName, amount: u64) -> Result<QuotaGuard, Refused> {
        self.try_take_as(project, Uuid::nil(), amount)
    }

    pub fn try_take_as(&self, project: &ProjectName, caller: Uuid, amount: u64) -> Result<QuotaGuard, Refused> {
        self.inner.add(&mut self.inner.taken(), project, caller, amount)?;
        Ok(self.guard(project, caller, amount))
    }

    /// Returns an error if nothing more can be taken. Takes nothing itself.
    pub fn check_as(&self, project: &ProjectName, caller: Uuid) -> Result<(), Refused> {
        self.inner.check(&self.inner.taken(), project, caller, 1)
    }

    /// Takes an amount even beyond the limits: for what exists already and can't be given up.
    pub fn take_beyond(&self, project: &ProjectName, caller: Uuid, amount: u64) -> QuotaGuard {
        self.inner.count(&mut self.inner.taken(), project, caller, amount);
        self.guard(project, caller, amount)
    }

    /// Waits for an amount. Callers need a timeout, because an amount above one of the limits is never granted.
    pub async fn take(&self, project: &ProjectName, amount: u64) -> QuotaGuard {
        self.take_as(project, Uuid::nil(), amount).await
    }

    /// Waits for an amount. Projects take turns; within a project the caller that uses least is served first.
    pub async fn take_as(&self, project: &ProjectName, caller: Uuid, amount: u64) -> QuotaGuard {
        let (place, granted) = {
            let mut taken = self.inner.taken();
            if self.inner.add(&mut taken, project, caller, amount).is_ok() {
                return self.guard(project, caller, amount);
            }
            let (grant, granted) = oneshot::channel();
            let serial = self.inner.enqueue(&mut taken, (project, caller, amount), grant);
            (QueuePlace { inner: &self.inner, serial }, granted)
        };
        let granted = granted.await;
        drop(place);
        match granted {
            Ok(guard) => guard,
            // The queue drops no sender without a grant while the place is held.
            Err(_) => std::future::pending().await,
        }
    }

    fn guard(&self, project: &ProjectName, caller: Uuid, amount: u64) -> QuotaGuard {
        QuotaGuard { inner: Arc::clone(&self.inner), project: project.clone(), caller, amount }
    }
}

impl QuotaGuard {
    pub fn holder(&self) -> (&ProjectName, Uuid) {
        (&self.project, self.caller)
    }

    pub fn grow(&mut self, amount: u64) -> Result<(), Refused> {
        self.inner.add(&mut self.inner.taken(), &self.project, self.caller, amount)?;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        let mut taken = self.inner.taken();
        taken.whole -= self.amount;
        taken.change(&self.project, self.inner.distinguished(self.caller), |held| held.amount -= self.amount);
        let refused = QuotaState::serve(&self.inner, &mut taken);
        drop(taken);
        drop(refused);
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut taken = self.inner.taken();
        if let Some(at) = taken.queue.iter().position(|waiter| waiter.serial == self.serial) {
            taken.dequeue(self.inner, at);
        }
    }
}

impl Taken {
    fn change(&mut self, project: &ProjectName, caller: Option<Uuid>, change: impl Fn(&mut Held)) {
        if !self.by_project.contains_key(project) {
            self.by_project.insert(project.clone(), OfProject::default());
        }
        let Some(of) = self.by_project.get_mut(project) else {
            return;
        };
        change(&mut of.held);
        if let Some(caller) = caller {
            let held = of.by_caller.entry(caller).or_default();
            change(held);
            if held.is_idle() {
                of.by_caller.remove(&caller);
            }
        }
        if of.held.is_idle() {
            self.by_project.remove(project);
        }
    }

    fn dequeue(&mut self, inner: &QuotaState, at: usize) -> Option<Waiter> {
        let waiter = self.queue.remove(at)?;
        self.change(&waiter.project, inner.distinguished(waiter.caller), |held| held.waiting -= 1);
        Some(waiter)
    }
}

impl Held {
    fn is_idle(self) -> bool {
        self.amount == 0 && self.waiting == 0
    }
}

impl QuotaState {
    fn distinguished(&self, caller: Uuid) -> Option<Uuid> {
        (self.beyond > 0).then_some(caller)
    }

    fn held(taken: &Taken, project: &ProjectName, caller: Uuid) -> (Held, Held) {
        let Some(of) = taken.by_project.get(project) else {
            return Default::default();
        };
        (of.held, of.by_caller.get(&caller).copied().unwrap_or_default())
    }

    fn check(&self, taken: &Taken, project: &ProjectName, caller: Uuid, amount: u64) -> Result<(), Refused> {
        let (of_project, of_caller) = Self::held(taken, project, caller);
        let is_in_share = of_project.amount.saturating_add(amount) <= self.share;
        let left = (self.share + self.beyond).saturating_sub(of_project.amount);
        if !is_in_share && (self.beyond == 0 || of_caller.amount.saturating_add(amount) > left) {
            return Err(Refused::Share { limit: self.share });
        }
        if taken.whole.saturating_add(amount) > self.whole {
            return Err(Refused::Whole { limit: self.whole });
        }
        Ok(())
    }

    fn add(&self, taken: &mut Taken, project: &ProjectName, caller: Uuid, amount: u64) -> Result<(), Refused> {
        self.check(taken, project, caller, amount)?;
        self.count(taken, project, caller, amount);
        Ok(())
    }

    fn count(&self, taken: &mut Taken, project: &ProjectName, caller: Uuid, amount: u64) {
        taken.whole += amount;
        taken.change(project, self.distinguished(caller), |held| held.amount += amount);
    }

    fn enqueue(
        &self,
        taken: &mut Taken,
        (project, caller, amount): (&ProjectName, Uuid, u64),
        grant: oneshot::Sender<QuotaGuard>,
    ) -> u64 {
        taken.serial += 1;
        let serial = taken.serial;
        taken.change(project, self.distinguished(caller), |held| held.waiting += 1);
        taken.queue.push_back(Waiter { serial, project: project.clone(), caller, amount, grant });
        serial
    }

    fn serve(inner: &Arc<Self>, taken: &mut Taken) -> Vec<QuotaGuard> {
        let mut refused = Vec::new();
        loop {
            let allowed = taken
                .queue
                .iter()
                .enumerate()
                .filter(|(_, waiter)| inner.check(taken, &waiter.project, waiter.caller, waiter.amount).is_ok());
            let next = allowed.min_by_key(|(at, waiter)| {
                let (of_project, of_caller) = Self::held(taken, &waiter.project, waiter.caller);
                (of_project.served, of_caller.amount, of_caller.served, *at)
            });
            let Some(at) = next.map(|(at, _)| at) else {
                return refused;
            };
            taken.serial += 1;
            let (serial, waiter) = (taken.serial, &taken.queue[at]);
            let (project, caller, amount) = (waiter.project.clone(), waiter.caller, waiter.amount);
            taken.whole += amount;
            taken.change(&project, inner.distinguished(caller), |held| {
                held.amount += amount;
                held.served = serial;
            });
            if let Some(waiter) = taken.dequeue(inner, at) {
                let guard = QuotaGuard { inner: Arc::clone(inner), project, caller, amount };
                refused.extend(waiter.grant.send(guard).err());
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
