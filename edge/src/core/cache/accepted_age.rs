//! The maximum age of a cached response that a request accepts.

use std::borrow::Cow;

/// The value of `Vary`: the request headers that must be equal for a browser to reuse a response. Includes
/// `Cache-Control`, since a request without that header wants a fresh response.
const VARY: &str = "Accept, Authorization, Cache-Control, X-Selkie-After";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedAge {
    pub(super) fresh_seconds: u32,
    /// Seconds beyond `fresh_seconds` for which a response is served while a newer one is fetched in the background.
    pub(super) stale_seconds: u32,
}

/// A cached response's age compared with the age that the request accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// Too old to be fresh, but served while a newer response is fetched in the background.
    Stale,
    Expired,
}

impl AcceptedAge {
    /// Accepts responses that are at most `fresh_seconds` old, and no stale responses.
    pub fn fresh(fresh_seconds: u32) -> Self {
        Self { fresh_seconds, stale_seconds: 0 }
    }

    /// Parses a request's `Cache-Control`: the age of `max-age`, and that of `stale-while-revalidate`, capped at `most`
    /// seconds in total. `None` if the request accepts no cached response (`no-cache`, as browsers send on a reload,
    /// `no-store`, or no `max-age` above 0), if `most` is 0, or if the header is malformed.
    pub fn parse(cache_control: &str, most: u32) -> Option<Self> {
        let (mut fresh, mut stale) = (None::<u32>, 0);
        for directive in cache_control.split(',') {
            let (name, value) = match directive.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim().trim_matches('"')),
                None => (directive.trim(), ""),
            };
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("no-cache") || is("no-store") {
                return None;
            }
            if is("max-age") {
                let asked = seconds(value)?;
                // If there are two `max-age`, the smaller one counts.
                fresh = Some(fresh.map_or(asked, |other| other.min(asked)));
            } else if is("stale-while-revalidate") {
                stale = seconds(value)?;
            }
        }
        let fresh_seconds = fresh?.min(most);
        (fresh_seconds > 0).then_some(Self { fresh_seconds, stale_seconds: stale.min(most - fresh_seconds) })
    }

    pub fn judge(self, age_ms: u64) -> Freshness {
        let fresh_ms = u64::from(self.fresh_seconds) * 1000;
        let stale_ms = u64::from(self.stale_seconds) * 1000;
        if age_ms <= fresh_ms {
            Freshness::Fresh
        } else if age_ms <= fresh_ms + stale_ms {
            Freshness::Stale
        } else {
            Freshness::Expired
        }
    }

    /// Returns the headers that let a browser reuse the response for the age that the request's `Cache-Control`
    /// accepts.
    pub fn headers(self) -> [(&'static str, Cow<'static, str>); 2] {
        let mut cache_control = format!("private, max-age={}", self.fresh_seconds);
        if self.stale_seconds > 0 {
            cache_control.push_str(", stale-while-revalidate=");
            cache_control.push_str(&self.stale_seconds.to_string());
        }
        [("cache-control", cache_control.into()), ("vary", VARY.into())]
    }
}

/// Parses whole seconds, capped at `u32::MAX`; `None` if `text` is empty or contains anything but digits.
fn seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}
