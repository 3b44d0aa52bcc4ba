//! Rate limits by API key or user: their setting and their response headers (draft-ietf-httpapi-ratelimit-headers, 10
//! and 11). Edge and origin count the requests, each in its own way.

use crate::error::{ErrorCode, Problem};
use crate::limits::{RATE_PERIOD_MAX_SECONDS, RATE_REQUESTS_MAX_COUNT};
use std::fmt;
use std::time::Duration;

const POLICY: &str = "key";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    requests: u32,
    seconds: u32,
}

impl RateLimit {
    /// The expected form, for error messages. [`RateLimit::parse`] leaves `off` to its caller.
    pub const EXPECTED: &'static str = "requests/time, such as 100/1s or 6000/1m, with a time of at most 1h; or off";

    /// Parses `100/1s`, `6000/1m` or `50000/1h`.
    pub fn parse(text: &str) -> Option<Self> {
        let (requests, time) = text.split_once('/')?;
        let unit = match time.as_bytes().last()? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            _ => return None,
        };
        let seconds = digits(&time[..time.len() - 1])?.checked_mul(unit)?;
        let requests = digits(requests)?;
        let fits =
            (1..=RATE_REQUESTS_MAX_COUNT).contains(&requests) && (1..=RATE_PERIOD_MAX_SECONDS).contains(&seconds);
        fits.then_some(Self { requests, seconds })
    }

    pub fn requests(&self) -> u32 {
        self.requests
    }

    pub fn period(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// Returns the state of a limit with `requests` left. The full limit is restored after `restored`.
    pub fn left(self, requests: u32, restored: Duration) -> Allowance {
        Allowance { limit: self, remaining: requests, seconds: whole_seconds(restored) }
    }

    pub fn exceeded(self, wait: Duration) -> Problem {
        let message = format!("This key has used up its limit of {self}.");
        let allowance = Allowance { limit: self, remaining: 0, seconds: whole_seconds(wait).max(1) };
        Problem::new(ErrorCode::RateLimited, message)
            .with_hint(
                "Wait for as many seconds as Retry-After says. To write many records, send them in one request, with batchData or /batch.",
            )
            .with_allowance(allowance)
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let (requests, seconds) = (self.requests, self.seconds);
        write!(f, "{requests} request{} in {seconds} second{}", plural(requests), plural(seconds))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    limit: RateLimit,
    remaining: u32,
    seconds: u32,
}

impl Allowance {
    pub fn headers(&self) -> [(&'static str, String); 2] {
        let RateLimit { requests, seconds } = self.limit;
        let (remaining, wait) = (self.remaining, self.seconds);
        [
            ("ratelimit-policy", format!("\"{POLICY}\";q={requests};w={seconds}")),
            ("ratelimit", format!("\"{POLICY}\";r={remaining};t={wait}")),
        ]
    }

    /// Returns the seconds until the full limit is restored or, for an exceeded limit, until the caller may retry.
    pub fn seconds(&self) -> u32 {
        self.seconds
    }
}

fn digits(text: &str) -> Option<u32> {
    // `parse` would accept a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    text.parse().ok()
}

/// Rounds up, so that a caller that waits for this time is not refused again.
fn whole_seconds(time: Duration) -> u32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_as_it_is_written() {
        for (text, requests, seconds) in
            [("100/1s", 100, 1), ("6000/1m", 6_000, 60), ("1/1h", 1, 3_600), ("10000/10s", 10_000, 10)]
        {
            let limit = RateLimit::parse(text).unwrap();
            assert_eq!((limit.requests(), limit.period()), (requests, Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(RateLimit::parse("1/1s").unwrap().to_string(), "1 request in 1 second");
    }

    #[test]
    fn what_is_no_limit_is_not_read() {
        for text in [
            "",
            "off",
            "100",
            "100/",
            "/1s",
            "100/s",
            "0/1s",
            "1/0s",
            "+1/1s",
            "1/+1s",
            "1/2h",
            "1/1d",
            "1.5/1s",
            "100 /1s",
            "1/1ms",
            "99999999999/1s",
            "1/99999999999h",
            "é/1s",
            "1/é",
        ] {
            assert_eq!(RateLimit::parse(text), None, "{text}");
        }
    }

    #[test]
    fn who_is_refused_is_told_when_to_come_back() {
        let limit = RateLimit::parse("2/1m").unwrap();
        let problem = limit.exceeded(Duration::from_millis(12_001));
        let headers: Vec<(&str, String)> = problem.headers().map(|(name, value)| (name, value.into_owned())).collect();
        let expected = [
            ("retry-after", "13"),
            ("x-selkie-code", "rate_limited"),
            ("ratelimit-policy", "\"key\";q=2;w=60"),
            ("ratelimit", "\"key\";r=0;t=13"),
        ];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(problem.message(), "This key has used up its limit of 2 requests in 60 seconds.");
    }

    #[test]
    fn what_is_left_is_told_in_whole_seconds() {
        let left = RateLimit::parse("100/1s").unwrap().left(42, Duration::from_millis(580));
        assert_eq!(left.headers()[1].1, "\"key\";r=42;t=1");
    }
}
