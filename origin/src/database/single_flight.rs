//! Single-flight: requests that need the same value at the same time share one load. Knows nothing of the values.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Running<K, V, E> = HashMap<K, Shared<BoxFuture<'static, Result<V, E>>>>;

/// The loads in progress. Their number is not limited here: loads wait for a pooled connection for a limited time.
pub(crate) struct SingleFlight<K, V, E> {
    running: Arc<Mutex<Running<K, V, E>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadAborted;

impl<K, V, E> Default for SingleFlight<K, V, E> {
    fn default() -> Self {
        Self { running: Arc::default() }
    }
}

impl<K, V, E> fmt::Debug for SingleFlight<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").finish_non_exhaustive()
    }
}

impl<K, V, E> SingleFlight<K, V, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
    E: Clone + From<LoadAborted> + Send + Sync + 'static,
{
    pub(crate) async fn run(&self, key: K, load: impl Future<Output = Result<V, E>> + Send + 'static) -> Result<V, E> {
        let outcome = {
            let mut running = lock(&self.running);
            match running.get(&key) {
                Some(outcome) => outcome.clone(),
                None => {
                    let ended = Ended { running: Arc::clone(&self.running), key: key.clone() };
                    let task = tokio::spawn(async move {
                        let _ended = ended;
                        load.await
                    });
                    let outcome = async { task.await.unwrap_or_else(|_| Err(LoadAborted.into())) };
                    let outcome = outcome.boxed().shared();
                    running.insert(key, outcome.clone());
                    outcome
                }
            }
        };
        outcome.await
    }
}

/// Removes the load from the map on drop, even if the load panics. A load runs in a task of its own, and so continues
/// if its caller is cancelled.
struct Ended<K: Eq + Hash, V, E> {
    running: Arc<Mutex<Running<K, V, E>>>,
    key: K,
}

impl<K: Eq + Hash, V, E> Drop for Ended<K, V, E> {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.key);
    }
}

fn lock<K, V, E>(running: &Mutex<Running<K, V, E>>) -> MutexGuard<'_, Running<K, V, E>> {
    // The map is valid after every step, so a poisoned lock can be used.
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::error::DbError;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::sync::{Notify, Semaphore};

    #[tokio::test]
    async fn callers_with_one_key_share_a_load_and_the_next_one_loads_again() {
        let flights = SingleFlight::<&str, usize, DbError>::default();
        let (count, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let load = || {
            let (count, open) = (Arc::clone(&count), Arc::clone(&open));
            async move {
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let _permit = open.acquire().await;
                Ok(number)
            }
        };
        let all_wait = async {
            tokio::task::yield_now().await;
            open.add_permits(1);
        };
        let (first, second, other, ()) =
            tokio::join!(flights.run("a", load()), flights.run("a", load()), flights.run("b", load()), all_wait);
        assert_eq!(first.unwrap(), second.unwrap());
        assert!(other.is_ok());
        assert_eq!(flights.run("a", load()).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_load_goes_on_when_the_caller_that_started_it_leaves() {
        let flights = SingleFlight::<(), u8, DbError>::default();
        let open = Arc::new(Notify::new());
        let wait = Arc::clone(&open);
        let load = async move {
            wait.notified().await;
            Ok(1)
        };
        let left = tokio::time::timeout(Duration::ZERO, flights.run((), load)).await;
        assert!(left.is_err());
        open.notify_one();
        assert_eq!(flights.run((), async { Ok(2) }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_load_that_panics_fails_its_callers_and_is_off_the_list() {
        let flights = SingleFlight::<(), u8, DbError>::default();
        let load: BoxFuture<'static, Result<u8, DbError>> = async { panic!("no description") }.boxed();
        assert!(flights.run((), load).await.is_err());
        assert_eq!(flights.run((), async { Ok(2) }).await.unwrap(), 2);
    }
}
