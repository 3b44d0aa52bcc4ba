//! Rate limits: counts the requests of each key or user in a token bucket. A bucket holds one period's requests, and is
//! refilled evenly over the period. Knows no HTTP.

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

/// The time for which limits with different periods are compared: the limit that allows fewer requests per day is
/// stricter.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

type Bucket = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// The token buckets of callers, at most [`RATED_KEYS_MAX_COUNT`]. A caller whose bucket was evicted gets a full one.
#[derive(Debug)]
pub struct Rates {
    /// The configured limit of each caller; `None` if there is none.
    limit: Option<RateLimit>,
    clock: DefaultClock,
    buckets: Cache<Uuid, Arc<Counted>>,
}

/// The token bucket of one caller.
#[derive(Debug)]
struct Counted {
    limit: RateLimit,
    quota: Quota,
    bucket: Bucket,
}

impl Rates {
    #[must_use]
    pub fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, clock: DefaultClock::default(), buckets: Cache::new(RATED_KEYS_MAX_COUNT) }
    }

    /// Takes a token from a caller's bucket, and returns the remaining allowance; `None` if no rate limit applies.
    /// `of_role` is the limit of the caller's role. Of this limit and the configured one, the stricter applies.
    ///
    /// # Errors
    /// `rate_limited` if the caller's bucket is empty.
    pub fn count(&self, caller: Uuid, of_role: Option<RateLimit>) -> Result<Option<Allowance>, Problem> {
        let limits = self.limit.into_iter().chain(of_role);
        let Some(limit) =
            limits.min_by_key(|limit| u128::from(limit.requests()) * DAY.as_nanos() / limit.period().as_nanos())
        else {
            return Ok(None);
        };
        let known = self.buckets.get(&caller).filter(|counted| counted.limit == limit);
        match known.or_else(|| self.new_bucket(caller, limit)) {
            Some(counted) => counted.count(&self.clock).map(Some),
            None => Ok(None),
        }
    }

    /// Returns a new bucket for a caller that has none for this limit. Concurrent first requests of a caller share one
    /// bucket. `None` if the limit is no valid quota.
    fn new_bucket(&self, caller: Uuid, limit: RateLimit) -> Option<Arc<Counted>> {
        let full = Arc::new(Counted::new(limit)?);
        let begun = self.buckets.get_or_insert_with(&caller, || Ok::<_, std::convert::Infallible>(Arc::clone(&full)));
        let begun = begun.unwrap_or_else(|never| match never {});
        if begun.limit == limit {
            return Some(begun);
        }
        // The caller's bucket is for another limit, because the caller's role or that role's limit has changed.
        self.buckets.insert(caller, Arc::clone(&full));
        Some(full)
    }
}

impl Counted {
    fn new(limit: RateLimit) -> Option<Self> {
        let requests = NonZeroU32::new(limit.requests())?;
        let quota = Quota::with_period(limit.period() / requests.get())?.allow_burst(requests);
        Some(Self { limit, quota, bucket: RateLimiter::direct(quota).with_middleware() })
    }

    fn count(&self, clock: &DefaultClock) -> Result<Allowance, Problem> {
        match self.bucket.check() {
            Ok(state) => {
                let left = state.remaining_burst_capacity();
                let used = self.limit.requests().saturating_sub(left);
                let restored = self.quota.replenish_interval().saturating_mul(used);
                Ok(self.limit.left(left, restored))
            }
            Err(refused) => {
                let wait: Duration = refused.wait_time_from(clock.now());
                Err(self.limit.exceeded(wait))
            }
        }
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
            let allowance = rates.count(one, None).unwrap().unwrap();
            assert!(allowance.headers()[1].1.contains(left), "{allowance:?}");
        }
        assert_eq!(rates.count(one, None).unwrap_err().code(), ErrorCode::RateLimited);
        assert!(rates.count(other, None).is_ok());
    }

    #[test]
    fn who_is_refused_learns_when_the_next_request_will_pass() {
        let rates = Rates::new(RateLimit::parse("2/1h"));
        let key = key();
        let refused = std::iter::repeat_with(|| rates.count(key, None)).find_map(Result::err).unwrap();
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
                (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| rates.count(key, None).is_ok()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn the_stricter_limit_counts_and_a_role_may_change_its_own() {
        let rates = Rates::new(RateLimit::parse("100/1s"));
        let key = key();
        let role = |limit| RateLimit::parse(limit);
        assert!(rates.count(key, role("1/1h")).is_ok());
        assert_eq!(rates.count(key, role("1/1h")).unwrap_err().code(), ErrorCode::RateLimited);
        assert!(rates.count(key, role("2/1h")).is_ok());
        assert!((0..50).all(|_| rates.count(key, role("1000/1s")).is_ok()));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(None);
        let key = key();
        assert!((0..10_000).all(|_| rates.count(key, None) == Ok(None)));
    }

    #[test]
    fn more_keys_than_are_counted_take_no_more_room() {
        let rates = Rates::new(RateLimit::parse("1/1h"));
        for _ in 0..RATED_KEYS_MAX_COUNT * 2 {
            rates.count(key(), None).unwrap();
        }
        assert!(rates.buckets.len() <= RATED_KEYS_MAX_COUNT);
    }
}
