//! A guard that counts a statement as in flight. When the statement ends, the guard runs shared statements for as long
//! as requests of the same shape wait.

use super::queue::RunOutcome;
use super::{AnswerSender, CoalescedStatement, Coalescer, Key, RequestQueue, SharedResult, Waiter, run_several};
use crate::database::DbError;
use crate::database::deadline::Limit;
use crate::database::pool::Lease;
use crate::database::run::within;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The time after which a statement of the same shape may start beside a slow one. A usual statement takes far less.
const SLOW_AFTER: Duration = Duration::from_millis(10);

/// Counts a statement as in flight. On drop, the count ends, or a task runs shared statements for waiting requests.
pub(super) struct InFlight<K: CoalescedStatement> {
    coalescer: Arc<Coalescer>,
    key: Key<K::Shape>,
    state: RunState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunState {
    Spawned,
    Running,
    Finished,
}

impl<K: CoalescedStatement> InFlight<K> {
    pub(super) fn new(coalescer: &Arc<Coalescer>, key: &Key<K::Shape>) -> Self {
        Self { coalescer: Arc::clone(coalescer), key: key.clone(), state: RunState::Running }
    }

    /// Leases a connection. `caller` is nil for a statement of several callers.
    pub(super) async fn connection(&self, caller: Uuid) -> Result<Lease, DbError> {
        let lease = self.coalescer.pools.connection(&self.key.account, caller).await;
        if let Err(error) = &lease {
            for (_, caller) in self.take(|waiting| waiting) {
                let _ = caller.send(match error {
                    DbError::Overloaded => Err(DbError::Overloaded),
                    _ => Ok(SharedResult::RunAlone),
                });
            }
        }
        lease
    }

    fn take(&self, share: impl FnOnce(usize) -> usize) -> Vec<(K::Item, AnswerSender<K>)> {
        let waits = |waiter: &Waiter<K>| !waiter.caller.is_closed();
        let waiters = self.queue().take(&self.key, waits, share).into_iter();
        waiters.map(|waiter| (waiter.item, waiter.caller)).collect()
    }

    /// Awaits the statement. After [`SLOW_AFTER`] the statement no longer counts as in flight, but runs on.
    pub(super) async fn during<T>(
        self,
        limit: Limit,
        statement: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        let mut statement = pin!(statement);
        let soon = SLOW_AFTER.min(limit.time);
        if let Ok(outcome) = tokio::time::timeout(soon, &mut statement).await {
            return outcome;
        }
        drop(self);
        within(Limit { time: limit.time.saturating_sub(soon), ..limit }, statement).await
    }

    /// Runs shared statements while requests wait. If one takes longer than [`SLOW_AFTER`], another task runs the next.
    async fn run_shared(mut self) {
        self.state = RunState::Running;
        loop {
            if let Ok(lease) = self.connection(Uuid::nil()).await {
                let waiting = self.take(|waiting| K::share(&self.key.shape, waiting));
                if !waiting.is_empty() {
                    self.coalescer.count(waiting.len());
                    let limit = self.key.limit;
                    let mut statement = Box::pin(share::<K>(lease, Arc::clone(&self.key.shape), waiting, limit));
                    match tokio::time::timeout(SLOW_AFTER, &mut statement).await {
                        Ok(outcome) => self.queue().record(&self.key, outcome),
                        Err(_) => {
                            let (coalescer, key) = (Arc::clone(&self.coalescer), self.key.clone());
                            drop(self);
                            let outcome = statement.await;
                            return K::queue(&coalescer).record(&key, outcome);
                        }
                    }
                }
            }
            if self.queue().finish(&self.key) {
                self.state = RunState::Finished;
                return;
            }
        }
    }

    fn queue(&self) -> &RequestQueue<K> {
        K::queue(&self.coalescer)
    }
}

impl<K: CoalescedStatement> Drop for InFlight<K> {
    fn drop(&mut self) {
        match (self.state, tokio::runtime::Handle::try_current()) {
            (RunState::Finished, _) => {}
            (RunState::Running, _) if self.queue().finish(&self.key) => {}
            (RunState::Running, Ok(runtime)) => {
                let mut next = Self::new(&self.coalescer, &self.key);
                next.state = RunState::Spawned;
                runtime.spawn(next.run_shared());
            }
            // The runtime shuts down, so no further task can run: waiting requests get no answer.
            (RunState::Running | RunState::Spawned, _) => self.queue().abandon(&self.key),
        }
    }
}

/// Runs one shared statement, which is killed once none of its requests waits any longer.
async fn share<K: CoalescedStatement>(
    mut lease: Lease,
    shape: Arc<K::Shape>,
    waiting: Vec<(K::Item, AnswerSender<K>)>,
    limit: Duration,
) -> RunOutcome {
    let (items, mut callers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
    let (started, limit) = (Instant::now(), lease.limit(limit));
    let outputs = tokio::select! {
        biased;
        outputs = within(limit, run_several::<K>(&mut lease, &shape, items)) => outputs,
        // The statement still runs: dropping the lease kills it.
        () = all_left::<K>(&mut callers) => return RunOutcome::Shared,
    };
    let spent = started.elapsed();
    match outputs {
        Ok(mut outputs) => {
            K::note_position(&mut lease, &mut outputs).await;
            for (caller, output) in callers.into_iter().zip(outputs) {
                let _ = caller.send(Ok(SharedResult::Output(output, spent)));
            }
            RunOutcome::Shared
        }
        Err(error) if K::may_run_alone(&error, spent) => {
            for caller in callers {
                let _ = caller.send(Ok(SharedResult::RunAlone));
            }
            RunOutcome::Refused
        }
        Err(error) => {
            for caller in callers {
                let _ = caller.send(Err(error.clone()));
            }
            RunOutcome::Shared
        }
    }
}

async fn all_left<K: CoalescedStatement>(callers: &mut [AnswerSender<K>]) {
    for caller in callers {
        caller.closed().await;
    }
}
