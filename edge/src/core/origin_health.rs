//! Which origin a request goes to, by the health of each and by the region of the caller.
//!
//! Knows no clock (`now` is in milliseconds since 1970) and not how an origin is asked. Each isolate learns by itself.

use crate::config::{Origin, Region};
use shared::error::{ErrorCode, Problem};
use std::fmt::Write as _;

/// The back-off after an origin's first failure, in milliseconds: a restart takes a few of them.
const BACK_OFF_MIN_MS: u64 = 1_000;

/// The longest back-off, in milliseconds: an origin that is back is soon asked again.
const BACK_OFF_MAX_MS: u64 = 30_000;

/// The longest back-off from an origin without its database, in milliseconds. Shorter than for an origin that is down:
/// origins often share a database, and then no other origin can help.
const DATABASE_BACK_OFF_MAX_MS: u64 = 4_000;

/// Milliseconds for which an origin that answered counts as alive before a request that can't be repeated. Short beside the
/// hours between two failures, long beside the pause between two writes of one caller.
const SEEN_COUNTS_MS: u64 = 5_000;

/// The path of the health check: an origin answers there if it lives.
pub const HEALTH_PATH: &str = "/healthz";

/// The path of the readiness check: an origin answers there whether it can reach its database.
pub const READINESS_PATH: &str = "/readyz";

/// What an isolate knows of its origins.
#[derive(Debug)]
pub struct Origins {
    list: Vec<(Origin, Health)>,
    silence_max_ms: u64,
}

/// What one origin did lately.
#[derive(Clone, Debug, Default)]
struct Health {
    /// Failures in a row.
    failures: u32,
    failed_at: u64,
    /// Whether the last failure was that of its database alone.
    lacks_database: bool,
    /// Until then it is not asked.
    back_off_until: u64,
    /// Until then one request finds out whether it is back, and others go elsewhere. A time and not a flag: nobody would
    /// reset the flag of a request whose client disconnected.
    tried_until: u64,
    /// When it last answered anything; 0 if never.
    seen_at: u64,
}

impl Health {
    fn is_backing_off(&self, now: u64) -> bool {
        self.back_off_until > now
    }
}

/// An origin that was chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    index: usize,
    picked_at: u64,
    is_trial: bool,
}

impl Pick {
    /// Its number in the list, counted from 1: what the log and `/healthz` call it.
    #[must_use]
    pub fn number(self) -> usize {
        self.index + 1
    }

    /// Whether it failed the last time, so that this request finds out whether it is back.
    #[must_use]
    pub fn is_trial(self) -> bool {
        self.is_trial
    }
}

/// The origins that failed to answer a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried(u32);

impl Tried {
    /// Adds one.
    pub fn add(&mut self, pick: Pick) {
        self.0 |= 1 << pick.index;
    }

    fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

/// A caller's continent and country, as far as known.
pub type CallerLocation = [Option<Region>; 2];

impl Origins {
    /// Creates a list of origins of which nothing is known yet. A trial of an origin that failed takes `silence_max_ms`.
    #[must_use]
    pub fn new(list: Vec<Origin>, silence_max_ms: u64) -> Self {
        let list = list.into_iter().map(|origin| (origin, Health::default()));
        Self { list: list.collect(), silence_max_ms }
    }

    /// Whether there is but one.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    /// Whether it makes a difference where a caller is.
    #[must_use]
    pub fn have_regions(&self) -> bool {
        self.list.iter().any(|(origin, _)| !origin.near().is_empty())
    }

    /// The address of the one chosen, without a path.
    #[must_use]
    pub fn url(&self, pick: Pick) -> &str {
        self.list.get(pick.index).map_or("", |(origin, _)| origin.url())
    }

    /// Chooses an origin for a request that those of `tried` failed to answer: of all that are not backed off from, the
    /// first near one, else the first. An origin that failed and may be back gets one request at a time; further requests
    /// go there only if there is no other. None if all were tried or are backed off from.
    pub fn choose(&mut self, tried: Tried, location: CallerLocation, now: u64) -> Option<Pick> {
        let is_near = |origin: &Origin| {
            let mut near = origin.near().iter();
            near.any(|region| location.contains(&Some(*region)))
        };
        let fit = self.list.iter().enumerate();
        let fit = fit.filter(|(index, (_, health))| !tried.has(*index) && !health.is_backing_off(now));
        let (index, _) = fit.min_by_key(|(index, (origin, health))| {
            let is_being_tried = health.failures > 0 && health.tried_until > now;
            (is_being_tried, !is_near(origin), *index)
        })?;
        let silence_max_ms = self.silence_max_ms;
        let health = self.health(index)?;
        let is_trial = health.failures > 0;
        if is_trial {
            health.tried_until = now + silence_max_ms;
        }
        Some(Pick { index, picked_at: now, is_trial })
    }

    /// Whether the origin answered so lately that it needs no health check.
    #[must_use]
    pub fn is_seen(&self, pick: Pick, now: u64) -> bool {
        let seen = |seen_at: u64| seen_at > 0 && now < seen_at + SEEN_COUNTS_MS;
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| seen(health.seen_at) && health.failed_at <= health.seen_at)
    }

    /// Whether the origin answered anything while this request waited for it.
    #[must_use]
    pub fn is_seen_since(&self, pick: Pick) -> bool {
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| health.seen_at > pick.picked_at)
    }

    /// Records that the origin passed a health check; whether it answers as it should is not known yet.
    pub fn lives(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            health.seen_at = now;
        }
    }

    /// Records that the origin answered as it should.
    pub fn answered(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            *health = Health { seen_at: now, ..Health::default() };
        }
    }

    /// Records that the origin failed. Of requests that were in flight together the first counts.
    pub fn failed(&mut self, pick: Pick, now: u64) {
        self.back_off(pick, now, BACK_OFF_MAX_MS);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = false;
        }
    }

    /// Records that the origin can't reach its database. Counts like a failure.
    pub fn lost_database(&mut self, pick: Pick, now: u64) {
        self.back_off(pick, now, DATABASE_BACK_OFF_MAX_MS);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = true;
        }
    }

    /// Returns the path at which an origin that failed says whether it is back.
    #[must_use]
    pub fn check_path(&self, pick: Pick) -> &'static str {
        match self.list.get(pick.index) {
            Some((_, health)) if health.lacks_database => READINESS_PATH,
            _ => HEALTH_PATH,
        }
    }

    fn back_off(&mut self, pick: Pick, now: u64, max_ms: u64) {
        let is_one = self.is_one();
        let Some(health) = self.health(pick.index) else {
            return;
        };
        if health.failures > 0 && pick.picked_at < health.failed_at {
            return;
        }
        health.failures = health.failures.saturating_add(1);
        health.failed_at = now;
        health.tried_until = 0;
        health.back_off_until = now
            + if is_one {
                // A longer back-off would help nobody: there is no other origin.
                BACK_OFF_MIN_MS
            } else {
                back_off_ms(health.failures).min(max_ms)
            };
    }

    /// Returns the problem of a request for which no origin is left, though none is known to have taken it.
    #[must_use]
    pub fn unavailable(&self, now: u64) -> Problem {
        let ends = self.list.iter().map(|(_, health)| health.back_off_until);
        let first = ends.min().unwrap_or_default().saturating_sub(now);
        let seconds = u32::try_from(first.div_ceil(1_000)).unwrap_or(u32::MAX);
        let lack_database = self.list.iter().all(|(_, health)| health.lacks_database);
        let (code, message) = if lack_database {
            (ErrorCode::DatabaseUnavailable, "No origin can reach its database.")
        } else if self.is_one() {
            (ErrorCode::OriginUnavailable, "The origin failed just now.")
        } else {
            (ErrorCode::OriginUnavailable, "No origin answers.")
        };
        Problem::new(code, message).with_retry_after(seconds.max(1))
    }

    /// Returns the payload of `/healthz`, which does not show addresses.
    #[must_use]
    pub fn describe(&self, now: u64) -> Vec<u8> {
        let mut text = String::from(r#"{"status":"ok","origins":["#);
        for (index, (origin, health)) in self.list.iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            // Writing to a string can't fail.
            let _ = write!(text, r#"{{"origin":{}"#, index + 1);
            for (nth, region) in origin.near().iter().enumerate() {
                text.push_str(if nth == 0 { r#","near":[""# } else { r#"",""# });
                text.extend(region.code());
            }
            if !origin.near().is_empty() {
                text.push_str(r#""]"#);
            }
            let state = match health {
                health if health.lacks_database => "no-database",
                health if health.is_backing_off(now) => "cooling-down",
                Health { failures: 1.., .. } => "failing",
                Health { seen_at: 0, .. } => "unknown",
                _ => "healthy",
            };
            let failures = health.failures;
            let _ = write!(text, r#","state":"{state}","failures":{failures}}}"#);
        }
        text.push_str("]}");
        text.into_bytes()
    }

    fn health(&mut self, index: usize) -> Option<&mut Health> {
        self.list.get_mut(index).map(|(_, health)| health)
    }
}

fn back_off_ms(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(8);
    (BACK_OFF_MIN_MS << doublings).min(BACK_OFF_MAX_MS)
}

#[cfg(test)]
mod tests;
