//! Chooses the origin of a request, by the origins' health and the client's region. Each isolate learns the health by
//! itself.
//!
//! Must not use a clock (callers pass `now`, in milliseconds since 1970) or know how requests are sent to origins.

use super::failed_attempt::FailureCause;
use crate::config::{Origin, Region};
use shared::error::{ErrorCode, Problem};
use std::fmt::Write as _;

/// Back-off after an origin's first failure, in milliseconds. A restart takes a few seconds.
const BACK_OFF_MIN_MS: u64 = 1_000;

/// Longest back-off from an origin, in milliseconds, so that a recovered origin is soon used again.
const BACK_OFF_MAX_MS: u64 = 30_000;

/// Longest back-off from an origin that can't reach its database, in milliseconds. Shorter than for an origin that is
/// down: origins often share a database, and then no other origin can answer either.
const DATABASE_BACK_OFF_MAX_MS: u64 = 4_000;

/// Milliseconds after a response during which an origin needs no health check, not even before a request that can't be
/// repeated. Shorter than the usual time between failures, but longer than the time between a client's writes.
const SEEN_COUNTS_MS: u64 = 5_000;

/// The path of an origin's health check, which tells whether the process runs.
pub const HEALTH_PATH: &str = "/healthz";

/// The path of an origin's readiness check, which tells whether the origin can reach its database.
pub const READINESS_PATH: &str = "/readyz";

/// The origins and their health, as this isolate has observed it.
#[derive(Debug)]
pub struct Origins {
    list: Vec<(Origin, Health)>,
    silence_max_ms: u64,
}

#[derive(Clone, Debug, Default)]
struct Health {
    /// Number of consecutive failures.
    failures: u32,
    failed_at: u64,
    /// Whether the last failure was only that the origin could not reach its database.
    lacks_database: bool,
    back_off_until: u64,
    /// The end of a trial, in which one request finds out whether the origin works again and other requests prefer
    /// other origins. A time rather than a flag, because a flag would stay set if the trial's client disconnected.
    tried_until: u64,
    /// When the origin last answered, in milliseconds since 1970; 0 if never.
    seen_at: u64,
}

impl Health {
    fn is_backing_off(&self, now: u64) -> bool {
        self.back_off_until > now
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    index: usize,
    picked_at: u64,
    is_trial: bool,
}

impl Pick {
    /// Returns the origin's number in the list, counted from 1, as the log and `/healthz` show it.
    pub fn number(self) -> usize {
        self.index + 1
    }

    /// Returns whether the origin's last request failed, so that this request is a trial.
    pub fn is_trial(self) -> bool {
        self.is_trial
    }
}

/// The origins that one request has tried, as a bit set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried(u32);

impl Tried {
    pub fn add(&mut self, pick: Pick) {
        self.0 |= 1 << pick.index;
    }

    fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

/// A client's continent and country, each `None` if unknown.
pub type CallerLocation = [Option<Region>; 2];

impl Origins {
    /// Creates the list with unknown health of all origins. A trial of a failed origin may take up to `silence_max_ms`.
    pub fn new(list: Vec<Origin>, silence_max_ms: u64) -> Self {
        let list = list.into_iter().map(|origin| (origin, Health::default()));
        Self { list: list.collect(), silence_max_ms }
    }

    pub fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    /// Returns whether any origin is configured to be near a region.
    pub fn have_regions(&self) -> bool {
        self.list.iter().any(|(origin, _)| !origin.near().is_empty())
    }

    /// Returns the URL of the chosen origin, without a path.
    pub fn url(&self, pick: Pick) -> &str {
        self.list.get(pick.index).map_or("", |(origin, _)| origin.url())
    }

    /// Chooses an untried origin that is not in back-off: the first one near the client or, if there is none, the first
    /// one. While an origin whose last request failed has a trial request in flight, it gets further requests only if
    /// no other origin is left. `None` if all origins were tried or are in back-off.
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

    /// Returns whether a request needs no health check first: the origin answered recently and has not failed since.
    pub fn is_seen(&self, pick: Pick, now: u64) -> bool {
        let seen = |seen_at: u64| seen_at > 0 && now < seen_at + SEEN_COUNTS_MS;
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| seen(health.seen_at) && health.failed_at <= health.seen_at)
    }

    /// Returns whether the origin has answered any request or health check since it was chosen for this request.
    pub fn is_seen_since(&self, pick: Pick) -> bool {
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| health.seen_at > pick.picked_at)
    }

    /// Records that the origin passed a health check. Does not reset its failures; [`Origins::answered`] does.
    pub fn lives(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            health.seen_at = now;
        }
    }

    /// Records that the origin answered a request correctly, or passed a readiness check after it reported that it
    /// can't reach its database. Resets its failures.
    pub fn answered(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            *health = Health { seen_at: now, ..Health::default() };
        }
    }

    /// Records a failure of the origin. If several requests in flight fail, only the first failure counts.
    pub fn failed(&mut self, pick: Pick, cause: FailureCause, now: u64) {
        let max_ms = match cause {
            // Refusing requests would not help: no other origin could answer them.
            FailureCause::Silent if self.is_one() => 0,
            // Without another origin, a longer back-off would only delay recovery.
            _ if self.is_one() => BACK_OFF_MIN_MS,
            _ => BACK_OFF_MAX_MS,
        };
        self.back_off(pick, now, max_ms);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = false;
        }
    }

    pub fn lost_database(&mut self, pick: Pick, now: u64) {
        self.back_off(pick, now, DATABASE_BACK_OFF_MAX_MS);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = true;
        }
    }

    /// Returns the path of the check that tells whether a failed origin has recovered.
    pub fn check_path(&self, pick: Pick) -> &'static str {
        match self.list.get(pick.index) {
            Some((_, health)) if health.lacks_database => READINESS_PATH,
            _ => HEALTH_PATH,
        }
    }

    fn back_off(&mut self, pick: Pick, now: u64, max_ms: u64) {
        let Some(health) = self.health(pick.index) else {
            return;
        };
        if health.failures > 0 && pick.picked_at < health.failed_at {
            return;
        }
        health.failures = health.failures.saturating_add(1);
        health.failed_at = now;
        health.tried_until = 0;
        let doublings = (health.failures - 1).min(8);
        let back_off = (BACK_OFF_MIN_MS << doublings).min(max_ms);
        // 0 rather than `now`: `describe` rounds its `now` to seconds, and would report a back-off.
        health.back_off_until = if back_off == 0 { 0 } else { now + back_off };
    }

    /// Returns the problem for a request if no origin is left to try. `Retry-After` is the time until the first
    /// back-off ends, at least 1 s.
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

    /// Returns the JSON payload of `/healthz`: the origins' states, without their addresses.
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

#[cfg(test)]
pub(super) mod tests;
