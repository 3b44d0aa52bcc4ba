//! Which origin a request goes to: what each of them did lately, and where its callers are to be.
//!
//! Pure: knows neither a clock (`now` is in milliseconds since 1970) nor how an origin is asked. What an isolate
//! learns stays with it; it tells nobody.

use crate::config::{Origin, Region};
use shared::error::{ErrorCode, Problem};
use std::fmt::Write as _;

/// Milliseconds for which an origin is left alone after its first failure: a restart takes a few of them.
const COOL_DOWN_MIN_MS: u64 = 1_000;

/// The longest that it is left alone, in milliseconds, however often it failed: who is back is soon asked again.
const COOL_DOWN_MAX_MS: u64 = 30_000;

/// The longest time for which an origin without its database is not asked, in milliseconds. Shorter than for a dead
/// origin: origins often share a database, and nobody else can be asked until it is back.
const DATABASE_BACK_OFF_MAX_MS: u64 = 4_000;

/// Milliseconds for which a sign of life counts where a request can't be repeated. Short beside the hours between
/// two failures, long beside the pause between two writes of one caller.
const SIGN_COUNTS_MS: u64 = 5_000;

/// Where an origin answers if it lives.
pub const LIFE_PATH: &str = "/healthz";

/// Where an origin tells whether it can work.
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
    cool_until: u64,
    /// Until then one request finds out whether it is back, and others go elsewhere. A time and not a mark: nobody
    /// takes back the mark of a request whose caller left.
    tried_until: u64,
    /// When it last gave a sign of life; 0 if never.
    seen_at: u64,
}

impl Health {
    fn is_cooling(&self, now: u64) -> bool {
        self.cool_until > now
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
    /// Its place in the list, counted from 1: what the log and `/healthz` call it.
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

/// The origins that a request was turned away by.
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

/// Where a caller is: continent and country, as far as known.
pub type Place = [Option<Region>; 2];

impl Origins {
    /// Origins of which nothing is known yet. One that gives no sign of life for `silence_max_ms` is dead.
    #[must_use]
    pub fn new(list: Vec<Origin>, silence_max_ms: u64) -> Self {
        let list = list.into_iter().map(|origin| (origin, Health::default()));
        Self {
            list: list.collect(),
            silence_max_ms,
        }
    }

    /// Whether there is but one.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    /// Whether it makes a difference where a caller is.
    #[must_use]
    pub fn have_regions(&self) -> bool {
        self.list
            .iter()
            .any(|(origin, _)| !origin.near().is_empty())
    }

    /// The address of the one chosen, without a path.
    #[must_use]
    pub fn url(&self, pick: Pick) -> &str {
        self.list
            .get(pick.index)
            .map_or("", |(origin, _)| origin.url())
    }

    /// Chooses an origin for a request that those of `tried` turned away: of all that are not cooling down the first
    /// near one, else the first. One that failed and may be back takes one request at a time; others have it only
    /// where there is none else.
    pub fn choose(&mut self, tried: Tried, place: Place, now: u64) -> Option<Pick> {
        let is_near = |origin: &Origin| {
            let mut near = origin.near().iter();
            near.any(|region| place.contains(&Some(*region)))
        };
        let fit = self.list.iter().enumerate();
        let fit = fit.filter(|(index, (_, health))| !tried.has(*index) && !health.is_cooling(now));
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
        Some(Pick {
            index,
            picked_at: now,
            is_trial,
        })
    }

    /// The only one there is, if there is but one and it is not left alone.
    pub fn choose_only(&mut self, now: u64) -> Option<Pick> {
        if !self.is_one() {
            return None;
        }
        self.choose(Tried::default(), [None; 2], now)
    }

    /// Whether the origin gave a sign of life so lately that it needs not be asked for one.
    #[must_use]
    pub fn is_seen(&self, pick: Pick, now: u64) -> bool {
        let seen = |seen_at: u64| seen_at > 0 && now < seen_at + SIGN_COUNTS_MS;
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| seen(health.seen_at) && health.failed_at <= health.seen_at)
    }

    /// Whether the origin gave a sign of life while this request waited for it.
    #[must_use]
    pub fn is_seen_since(&self, pick: Pick) -> bool {
        let health = self.list.get(pick.index).map(|(_, health)| health);
        health.is_some_and(|health| health.seen_at > pick.picked_at)
    }

    /// The origin lives; whether it answers as it should is not known yet.
    pub fn lives(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            health.seen_at = now;
        }
    }

    /// The origin answered as it should.
    pub fn answered(&mut self, pick: Pick, now: u64) {
        if let Some(health) = self.health(pick.index) {
            *health = Health {
                seen_at: now,
                ..Health::default()
            };
        }
    }

    /// The origin failed. Of requests that were under way together the first counts.
    pub fn failed(&mut self, pick: Pick, now: u64) {
        self.back_off(pick, now, COOL_DOWN_MAX_MS);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = false;
        }
    }

    /// The origin lives, but can't reach its database. Counts like a failure.
    pub fn lost_database(&mut self, pick: Pick, now: u64) {
        self.back_off(pick, now, DATABASE_BACK_OFF_MAX_MS);
        if let Some(health) = self.health(pick.index) {
            health.lacks_database = true;
        }
    }

    /// The path at which an origin that failed tells whether it is back.
    #[must_use]
    pub fn sign_path(&self, pick: Pick) -> &'static str {
        match self.list.get(pick.index) {
            Some((_, health)) if health.lacks_database => READINESS_PATH,
            _ => LIFE_PATH,
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
        health.cool_until = now
            + if is_one {
                // Patience would help nobody: there is no other to go to.
                COOL_DOWN_MIN_MS
            } else {
                cool_down_ms(health.failures).min(max_ms)
            };
    }

    /// What a caller is told for whom there is no origin left, though none is known to have taken the request.
    #[must_use]
    pub fn unavailable(&self, now: u64) -> Problem {
        let ends = self.list.iter().map(|(_, health)| health.cool_until);
        let first = ends.min().unwrap_or_default().saturating_sub(now);
        let seconds = u32::try_from(first.div_ceil(1_000)).unwrap_or(u32::MAX);
        let lack_database = self.list.iter().all(|(_, health)| health.lacks_database);
        let (code, message) = if lack_database {
            (
                ErrorCode::DatabaseUnavailable,
                "No origin can reach its database.",
            )
        } else if self.is_one() {
            (ErrorCode::OriginUnavailable, "The origin failed just now.")
        } else {
            (ErrorCode::OriginUnavailable, "No origin answers.")
        };
        Problem::new(code, message).with_retry_after(seconds.max(1))
    }

    /// The payload of `/healthz`. Their addresses are nobody's business.
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
                health if health.is_cooling(now) => "cooling-down",
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

fn cool_down_ms(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(8);
    (COOL_DOWN_MIN_MS << doublings).min(COOL_DOWN_MAX_MS)
}

#[cfg(test)]
mod tests;
