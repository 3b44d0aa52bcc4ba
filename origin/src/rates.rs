//! Rate limits: counts the requests of each key or user in a token bucket that holds one period's requests. Knows no
//! HTTP.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::limits::RATED_KEYS_MAX_COUNT;
use shared::rate::{Allowance, RateLimit};
use uuid::Uuid;

/// The period for comparing limits: the limit that allows fewer requests per day is stricter.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum number of limits of a caller. A user has several if its tokens have roles with different limits.
const LIMITS_PER_CALLER: usize = 8;

/// A key or a user of a project: projects that trust one issuer have users of the same id.
pub type RatedCaller = (ProjectName, Uuid);

/// Counts of requests by caller. A caller whose counts were evicted begins anew.
#[derive(Debug)]
pub struct Rates {
    limit: Option<RateLimit>,
    callers: Cache<RatedCaller, Arc<Mutex<Buckets>>>,
}

/// The buckets of one caller, one per limit. Each request counts in all, so past use remains if the limit changes.
#[derive(Debug, Default)]
struct Buckets(Vec<Bucket>);

#[derive(Debug)]
struct Bucket {
    limit: RateLimit,
    full_at: Instant,
}

impl Rates {
    pub fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, callers: Cache::new(RATED_KEYS_MAX_COUNT) }
    }

    /// Counts a request. The stricter of the configured limit and of `of_role` applies.
    pub fn count(&self, caller: &RatedCaller, of_role: Option<RateLimit>) -> Result<Option<Allowance>, Problem> {
        let counted = self.with_buckets(caller, of_role, |buckets, limit| buckets.count(limit, Instant::now()));
        counted.transpose()
    }

    /// Counts more requests, which a counted request stands for. Their time must pass before the next request.
    pub fn count_more(&self, caller: &RatedCaller, of_role: Option<RateLimit>, requests: u32) {
        self.with_buckets(caller, of_role, |buckets, limit| buckets.count_more(limit, requests, Instant::now()));
    }

    fn with_buckets<T>(
        &self,
        caller: &RatedCaller,
        of_role: Option<RateLimit>,
        count: impl FnOnce(&mut Buckets, RateLimit) -> T,
    ) -> Option<T> {
        let limits = self.limit.into_iter().chain(of_role);
        let limit =
            limits.min_by_key(|limit| u128::from(limit.requests()) * DAY.as_nanos() / limit.period().as_nanos())?;
        let buckets = self.callers.get_or_insert_with(caller, || Ok::<_, std::convert::Infallible>(Arc::default()));
        let buckets = buckets.unwrap_or_else(|never| match never {});
        // The buckets are valid after every step, so a poisoned lock can be used.
        let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
        Some(count(&mut buckets, limit))
    }
}

impl Buckets {
    fn count(&mut self, limit: RateLimit, now: Instant) -> Result<Allowance, Problem> {
        let at = self.0.iter().position(|bucket| bucket.limit == limit).unwrap_or_else(|| self.add(limit, now));
        let full_at = self.0[at].with_one_less(now);
        if let Some(wait) = full_at.checked_duration_since(now + self.0[at].size())
            && !wait.is_zero()
        {
            return Err(limit.exceeded(wait));
        }
        for bucket in &mut self.0 {
            bucket.full_at = bucket.with_one_less(now).min(now + bucket.size());
        }
        Ok(limit.left(limit.requests() - self.0[at].used(now), full_at - now))
    }

    fn count_more(&mut self, limit: RateLimit, requests: u32, now: Instant) {
        for bucket in &mut self.0 {
            let later = bucket.full_at.max(now) + bucket.interval() * requests;
            bucket.full_at = if bucket.limit == limit { later } else { later.min(now + bucket.size()) };
        }
    }

    /// Returns the index of the bucket of `limit`. A new bucket also counts the requests under other limits.
    fn add(&mut self, limit: RateLimit, now: Instant) -> usize {
        let most = self.0.iter().map(|bucket| bucket.used(now)).max().unwrap_or(0);
        if self.0.len() >= LIMITS_PER_CALLER
            && let Some((at, _)) =
                self.0.iter().enumerate().min_by_key(|(_, bucket)| (bucket.used(now) == most, bucket.full_at))
        {
            self.0.swap_remove(at);
        }
        let mut bucket = Bucket { limit, full_at: now };
        bucket.full_at += bucket.interval() * most.min(limit.requests());
        self.0.push(bucket);
        self.0.len() - 1
    }
}

impl Bucket {
    fn interval(&self) -> Duration {
        self.limit.period() / self.limit.requests()
    }

    fn size(&self) -> Duration {
        self.interval() * self.limit.requests()
    }

    fn with_one_less(&self, now: Instant) -> Instant {
        self.full_at.max(now) + self.interval()
    }

    fn used(&self, now: Instant) -> u32 {
        let missing =
            self.full_at.saturating_duration_since(now).as_nanos().div_ceil(self.interval().as_nanos().max(1));
        u32::try_from(missing).unwrap_or(u32::MAX).min(self.limit.requests())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::error::ErrorCode;

    fn key() -> RatedCaller {
        (ProjectName::parse("shop").unwrap(), Uuid::now_v7())
    }

    #[test]
    fn a_key_may_call_as_often_as_the_limit_says_and_not_once_more() {
        let rates = Rates::new(RateLimit::parse("3/1h"));
        let (one, other) = (key(), key());
        for left in ["r=2;", "r=1;", "r=0;"] {
            let allowance = rates.count(&one, None).unwrap().unwrap();
            assert!(allowance.headers()[1].1.contains(left), "{allowance:?}");
        }
        assert_eq!(rates.count(&one, None).unwrap_err().code(), ErrorCode::RateLimited);
        assert!(rates.count(&other, None).is_ok());
    }

    #[test]
    fn a_user_of_two_projects_has_a_bucket_in_each() {
        let rates = Rates::new(RateLimit::parse("1/1h"));
        let shop = key();
        let blog = (ProjectName::parse("blog").unwrap(), shop.1);
        let passed = [&shop, &shop, &blog, &blog].map(|user| rates.count(user, None).is_ok());
        assert_eq!(passed, [true, false, true, false]);
    }

    #[test]
    fn who_is_refused_learns_when_the_next_request_will_pass() {
        let rates = Rates::new(RateLimit::parse("2/1h"));
        let key = key();
        let refused = std::iter::repeat_with(|| rates.count(&key, None)).find_map(Result::err).unwrap();
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
                (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| rates.count(&key, None).is_ok()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn the_stricter_limit_counts_and_a_role_may_change_its_own() {
        let rates = Rates::new(RateLimit::parse("100/1s"));
        let key = key();
        let role = |limit| RateLimit::parse(limit);
        assert!(rates.count(&key, role("1/1h")).is_ok());
        assert_eq!(rates.count(&key, role("1/1h")).unwrap_err().code(), ErrorCode::RateLimited);
        assert!(rates.count(&key, role("2/1h")).is_ok());
        assert!((0..50).all(|_| rates.count(&key, role("1000/1s")).is_ok()));
    }

    #[test]
    fn a_caller_that_alternates_between_limits_keeps_what_it_has_used() {
        let limits = ["2/1m", "3/1m", "1/1h"].map(RateLimit::parse);
        for limits in [&limits[..2], &limits[1..], &[limits[2], limits[0]]] {
            let (rates, key) = (Rates::new(None), key());
            let passed = (0..20).filter(|n| rates.count(&key, limits[n % limits.len()]).is_ok()).count();
            let most = limits.iter().flatten().map(|limit| limit.requests() as usize).max();
            assert_eq!(Some(passed), most, "{limits:?}");
        }
    }

    #[test]
    fn more_limits_than_are_counted_give_no_full_bucket() {
        let (rates, key) = (Rates::new(None), key());
        let passed = |n: usize| rates.count(&key, RateLimit::parse(&format!("{}/1h", 2 + n % 20))).is_ok();
        assert!((0..1_000).filter(|n| passed(*n)).count() <= 21);
    }

    #[test]
    fn a_bucket_is_refilled_evenly() {
        let limit = RateLimit::parse("4/1m").unwrap();
        let (mut buckets, start) = (Buckets::default(), Instant::now());
        let mut passed = |second| {
            let now = start + Duration::from_secs(second);
            std::iter::from_fn(|| buckets.count(limit, now).ok()).count()
        };
        assert_eq!([0, 14, 15, 29, 45, 200].map(&mut passed), [4, 0, 1, 0, 2, 4]);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(None);
        let key = key();
        assert!((0..10_000).all(|_| rates.count(&key, None) == Ok(None)));
    }

    #[test]
    fn more_keys_than_are_counted_take_no_more_room() {
        let rates = Rates::new(RateLimit::parse("1/1h"));
        for _ in 0..RATED_KEYS_MAX_COUNT * 2 {
            rates.count(&key(), None).unwrap();
        }
        assert!(rates.callers.len() <= RATED_KEYS_MAX_COUNT);
    }
}
