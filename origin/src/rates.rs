//! Rate limits: counts the requests of each key in a token bucket, which holds one period's requests and refills evenly
//! over the period. Knows no HTTP.

use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use quick_cache::sync::Cache;
use shared::error::Problem;
use shared::limits::RATED_KEYS_MAX_COUNT;
use shared::rate::{Allowance, RateLimit};
use std::num::NonZeroU32;
use uuid::Uuid;

type Bucket = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// The token buckets of all keys; `None` if the configuration sets no rate limit.
#[derive(Debug)]
pub struct Rates(Option<Counted>);

#[derive(Debug)]
struct Counted {
    limit: RateLimit,
    quota: Quota,
    clock: DefaultClock,
    buckets: Cache<Uuid, Arc<Bucket>>,
}

impl Rates {
    #[must_use]
    pub fn new(limit: Option<RateLimit>) -> Self {
        Self(limit.and_then(Counted::new))
    }

    /// Takes a token from a verified key's bucket and returns the remaining allowance; `None` without a rate limit.
    ///
    /// # Errors
    /// `rate_limited`: the key's bucket is empty.
    pub fn count(&self, key: Uuid) -> Result<Option<Allowance>, Problem> {
        self.0.as_ref().map(|counted| counted.count(key)).transpose()
    }
}

impl Counted {
    fn new(limit: RateLimit) -> Option<Self> {
        let requests = NonZeroU32::new(limit.requests())?;
        Some(Self {
            limit,
            quota: Quota::with_period(limit.period() / requests.get())?.allow_burst(requests),
            clock: DefaultClock::default(),
            buckets: Cache::new(RATED_KEYS_MAX_COUNT),
        })
    }

    fn count(&self, key: Uuid) -> Result<Allowance, Problem> {
        let bucket = match self.buckets.get(&key) {
            Some(bucket) => bucket,
            None => self.new_bucket(key),
        };
        match bucket.check() {
            Ok(state) => {
                let left = state.remaining_burst_capacity();
                let used = self.limit.requests().saturating_sub(left);
                let restored = self.quota.replenish_interval().saturating_mul(used);
                Ok(self.limit.left(left, restored))
            }
            Err(refused) => {
                let wait: Duration = refused.wait_time_from(self.clock.now());
                Err(self.limit.exceeded(wait))
            }
        }
    }

    /// Creates the bucket of a key. Concurrent first requests of the key share one bucket.
    fn new_bucket(&self, key: Uuid) -> Arc<Bucket> {
        let full = || Arc::new(RateLimiter::direct(self.quota).with_middleware());
        let begun = self.buckets.get_or_insert_with(&key, || Ok::<_, std::convert::Infallible>(full()));
        begun.unwrap_or_else(|never| match never {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::error::ErrorCode;

    fn key() -> Uuid {
        Uuid::now_v7()
    }

    #[test]
    fn a_key_may_call_as_often_as_the_limit_says_and_not_once_more() {
        let rates = Rates::new(RateLimit::parse("3/1h"));
        let (one, other) = (key(), key());
        for left in ["r=2;", "r=1;", "r=0;"] {
            let allowance = rates.count(one).unwrap().unwrap();
            assert!(allowance.headers()[1].1.contains(left), "{allowance:?}");
        }
        assert_eq!(rates.count(one).unwrap_err().code(), ErrorCode::RateLimited);
        assert!(rates.count(other).is_ok());
    }

    #[test]
    fn who_is_refused_learns_when_the_next_request_will_pass() {
        let rates = Rates::new(RateLimit::parse("2/1h"));
        let key = key();
        let refused = std::iter::repeat_with(|| rates.count(key)).find_map(Result::err).unwrap();
        let wait =
            refused.headers().find_map(|(name, value)| (name == "retry-after").then(|| value.parse::<u64>().unwrap()));
        assert!(wait.is_some_and(|seconds| (1_700..=1_800).contains(&seconds)), "{wait:?}");
    }

    #[test]
    fn threads_that_begin_at_once_share_one_bucket() {
        let rates = Rates::new(RateLimit::parse("100/1h"));
        let key = key();
        let passed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| rates.count(key).is_ok()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(None);
        let key = key();
        assert!((0..10_000).all(|_| rates.count(key) == Ok(None)));
    }

    #[test]
    fn more_keys_than_are_counted_take_no_more_room() {
        let rates = Rates::new(RateLimit::parse("1/1h"));
        for _ in 0..RATED_KEYS_MAX_COUNT * 2 {
            rates.count(key()).unwrap();
        }
        assert!(rates.0.unwrap().buckets.len() <= RATED_KEYS_MAX_COUNT);
    }
}
