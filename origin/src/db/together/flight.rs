//! A statement under way, and those that follow it for as long as others gather meanwhile.

use super::queue::Turn;
use super::{Caller, Kind, Told, Waiter};
use crate::db::DbError;
use crate::db::pool::{Account, Lease, Pools};
use crate::db::run::within;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a statement may take before others of its shape no longer wait for its end: a few times as
/// long as one takes when nothing is in its way.
const SLOW_AFTER: Duration = Duration::from_millis(10);

/// That a statement of a shape is under way. Dropped, in whatever way, it hands over to the next one for
/// those who have gathered.
pub(in crate::db) struct Flight<K: Kind> {
    pools: Arc<Pools>,
    account: Arc<Account>,
    shape: K::Shape,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It goes on in a task that has not begun.
    HandedOver,
    UnderWay,
    Landed,
}

/// What becomes of one that may gather.
pub(in crate::db) enum Boarded<K: Kind> {
    /// It was run with others, which took so long.
    Served(K::Gain, Duration),
    /// It is run by itself, over this connection.
    Alone(Option<Flight<K>>, Lease),
}

impl<K: Kind> Flight<K> {
    /// Finds out when one is run: now by itself, or with others of its shape, which is waited for.
    pub(in crate::db) async fn board(
        pools: &Arc<Pools>,
        account: Arc<Account>,
        shape: &K::Shape,
        part: impl FnOnce() -> K::Part,
    ) -> Result<Boarded<K>, DbError> {
        let waiter = || {
            let (caller, later) = oneshot::channel();
            let waiter = Waiter {
                part: part(),
                caller,
                _place: pools.place(&account)?,
            };
            Ok::<_, DbError>((waiter, later))
        };
        match K::of(&account).turn(shape, K::FLIGHTS_MAX, waiter)? {
            Turn::Now => {
                let flight = Self {
                    pools: Arc::clone(pools),
                    account,
                    shape: shape.clone(),
                    stage: Stage::UnderWay,
                };
                let _place = pools.place(&flight.account)?;
                let lease = flight.connection().await?;
                return Ok(Boarded::Alone(Some(flight), lease));
            }
            Turn::Apart => {}
            Turn::Later(later) => match tokio::time::timeout(pools.answer_timeout(), later).await {
                Ok(Ok(Ok(Told::Gain(gain, spent)))) => return Ok(Boarded::Served(gain, spent)),
                Ok(Ok(Ok(Told::Apart))) => {}
                Ok(Ok(Err(error))) => return Err(error),
                Ok(Err(_)) => K::untold()?,
                Err(_) => return Err(DbError::Timeout),
            },
        }
        let _place = pools.place(&account)?;
        let lease = pools.connection(&account).await?;
        Ok(Boarded::Alone(None, lease))
    }

    /// A connection for those who have places in the queue. If there is none, those who wait do not wait
    /// for another.
    async fn connection(&self) -> Result<Lease, DbError> {
        let lease = self.pools.connection(&self.account).await;
        if let Err(error) = &lease {
            for (_, caller) in self.take(|all| all) {
                // One who has left needs no answer.
                let _ = caller.send(match error {
                    DbError::Overloaded => Err(DbError::Overloaded),
                    _ => Ok(Told::Apart),
                });
            }
        }
        lease
    }

    /// Takes so many of those who wait.
    fn take(&self, share: impl FnOnce(usize) -> usize) -> Vec<(K::Part, Caller<K>)> {
        let waits = |waiter: &Waiter<K>| !waiter.caller.is_closed();
        let taken = K::of(&self.account).take(&self.shape, waits, share);
        let taken = taken.into_iter();
        taken.map(|waiter| (waiter.part, waiter.caller)).collect()
    }

    /// Waits for its statement.
    pub(in crate::db) async fn during<T>(
        self,
        limit: Duration,
        step: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        let mut step = pin!(step);
        let soon = SLOW_AFTER.min(limit);
        if let Ok(outcome) = tokio::time::timeout(soon, &mut step).await {
            return outcome;
        }
        drop(self);
        within(limit.saturating_sub(soon), step).await
    }

    /// Runs statement after statement until nobody waits, or one is slow.
    async fn go_on(mut self) {
        self.stage = Stage::UnderWay;
        loop {
            if let Ok(lease) = self.connection().await {
                // Who came before there was a connection comes along.
                let parts = self.take(|waiting| K::share(&self.shape, waiting));
                if !parts.is_empty() {
                    let limit = self.pools.query_timeout();
                    let mut step = Box::pin(K::serve(lease, self.shape.clone(), parts, limit));
                    match tokio::time::timeout(SLOW_AFTER, &mut step).await {
                        Ok(served) => K::of(&self.account).heed(&self.shape, served),
                        Err(_) => {
                            let (account, shape) = (Arc::clone(&self.account), self.shape.clone());
                            drop(self);
                            return K::of(&account).heed(&shape, step.await);
                        }
                    }
                }
            }
            if K::of(&self.account).land(&self.shape) {
                self.stage = Stage::Landed;
                return;
            }
        }
    }
}

impl<K: Kind> Drop for Flight<K> {
    fn drop(&mut self) {
        let together = K::of(&self.account);
        match (self.stage, tokio::runtime::Handle::try_current()) {
            (Stage::Landed, _) => {}
            (Stage::UnderWay, _) if together.land(&self.shape) => {}
            (Stage::UnderWay, Ok(runtime)) => {
                let next = Self {
                    pools: Arc::clone(&self.pools),
                    account: Arc::clone(&self.account),
                    shape: self.shape.clone(),
                    stage: Stage::HandedOver,
                };
                runtime.spawn(next.go_on());
            }
            // The program ends: there is nobody to go on. Who waits is told nothing.
            (Stage::UnderWay | Stage::HandedOver, _) => together.give_up(&self.shape),
        }
    }
}
