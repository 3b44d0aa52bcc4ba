//! How old a cached answer may be for the request that gets it.

use std::borrow::Cow;

/// What a browser must find unchanged to use an answer again: also `Cache-Control`, since a request without it wants a
/// fresh answer.
const VARY: &str = "Accept, Authorization, Cache-Control";

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedAge {
    pub(super) fresh_seconds: u32,
    /// Beyond that: while another one is fetched.
    pub(super) stale_seconds: u32,
}

/// A cached answer's age against what its caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The answer is young enough.
    Fresh,
    /// The answer may be given while another one is fetched.
    Stale,
    /// The answer is too old.
    Expired,
}

impl AcceptedAge {
    /// Accepts answers up to that age, and none beyond.
    #[must_use]
    pub fn fresh(fresh_seconds: u32) -> Self {
        Self { fresh_seconds, stale_seconds: 0 }
    }

    /// Reads a request's `Cache-Control`; at most `most` seconds are granted altogether. None if it asks for the origin's own
    /// answer (browsers do on a reload), or is malformed.
    #[must_use]
    pub fn read(cache_control: &str, most: u32) -> Option<Self> {
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
                // Of two, the one that promises less.
                fresh = Some(fresh.map_or(asked, |other| other.min(asked)));
            } else if is("stale-while-revalidate") {
                stale = seconds(value)?;
            }
        }
        let fresh_seconds = fresh?.min(most);
        (fresh_seconds > 0).then_some(Self { fresh_seconds, stale_seconds: stale.min(most - fresh_seconds) })
    }

    /// Judges an answer by its age.
    #[must_use]
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

    /// Returns the headers that let a browser, too, use an answer for as long as its caller accepts.
    #[must_use]
    pub fn headers(self) -> [(&'static str, Cow<'static, str>); 2] {
        let mut cache_control = format!("private, max-age={}", self.fresh_seconds);
        if self.stale_seconds > 0 {
            cache_control.push_str(", stale-while-revalidate=");
            cache_control.push_str(&self.stale_seconds.to_string());
        }
        [("cache-control", cache_control.into()), ("vary", VARY.into())]
    }
}

/// Whole seconds; more than fit are many.
fn seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}
