//! Decides for one request which origin the edge checks or asks next, and what an origin's answer, failure or silence
//! means. Must not know how requests are sent, or use a clock (callers pass `now`, in ms since 1970).

use super::failed_attempt::{FailedAttempt, FailureCause, Repeat};
use super::origin_health::{CallerLocation, HEALTH_PATH, Origins, Pick, READINESS_PATH, Tried};
use super::silence::CheckResult;
use shared::error::Problem;
use std::time::Duration;

/// Maximum number of origins to which one request is sent: a second origin is tried if the first failed and repeating
/// is safe. An origin that fails its health check, or reports that it can't reach its database, does not count.
const ATTEMPTS_MAX: u32 = 2;

#[derive(Debug)]
pub struct Attempts {
    repeat: Repeat,
    location: CallerLocation,
    timeouts: Timeouts,
    /// The time by which an origin must answer. For a streamed body, counted from the body's end.
    deadline: u64,
    tried: Tried,
    /// Number of origins to which the request was sent.
    sent: u32,
    /// The problem for the client if an origin's answer shows that the request itself is invalid.
    refusal: Option<Problem>,
    state: AttemptState,
}

#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Maximum milliseconds until the head of an origin's answer.
    pub answer_ms: u64,
    /// Maximum milliseconds without an answer before the origin is checked, and for that check.
    pub silence_ms: u64,
}

#[derive(Debug)]
enum AttemptState {
    Choose,
    /// The origin must pass a check before it gets the request.
    Check(Pick),
    Send(Pick),
    /// The attempt failed, and a check decides whether the origin is at fault.
    Probe(Pick, FailedAttempt),
    Answered,
    Failed(Problem),
}

/// What the caller does next.
#[derive(Debug)]
pub enum Todo {
    /// Check the origin by a GET of `path`, to be answered by `until`, then call [`Attempts::checked`].
    Check {
        pick: Pick,
        path: &'static str,
        until: u64,
    },
    /// Send the request, then call [`Attempts::answered`] or [`Attempts::failed`].
    Send(Pick),
    /// Return the origin's last answer to the client.
    Answer,
    Fail(Problem),
}

impl Attempts {
    pub fn new(repeat: Repeat, location: CallerLocation, timeouts: Timeouts, now: u64) -> Self {
        let (deadline, tried) = (now + timeouts.answer_ms, Tried::default());
        Self { repeat, location, timeouts, deadline, tried, sent: 0, refusal: None, state: AttemptState::Choose }
    }

    pub fn next(&mut self, origins: &mut Origins, now: u64) -> Todo {
        if matches!(self.state, AttemptState::Choose) {
            self.choose(origins, now);
        }
        match &self.state {
            AttemptState::Check(pick) => {
                Todo::Check { pick: *pick, path: origins.check_path(*pick), until: self.deadline }
            }
            AttemptState::Probe(pick, failed) => {
                // A readiness check is needed, since only the database connection of a single statement may have been
                // lost.
                let path = if failed.cause == FailureCause::Database { READINESS_PATH } else { HEALTH_PATH };
                Todo::Check { pick: *pick, path, until: now + self.timeouts.silence_ms }
            }
            AttemptState::Send(pick) => Todo::Send(*pick),
            AttemptState::Failed(problem) => Todo::Fail(problem.clone()),
            AttemptState::Choose | AttemptState::Answered => Todo::Answer,
        }
    }

    /// Chooses the next origin. The origin must first pass a check if its last request failed or if this request is not
    /// safe to repeat, unless there is no other origin or the origin answered recently.
    fn choose(&mut self, origins: &mut Origins, now: u64) {
        let Some(pick) = origins.choose(self.tried, self.location, now) else {
            return self.give_up(origins, now);
        };
        self.tried.add(pick);
        let is_risky = pick.is_trial() || self.repeat != Repeat::Always;
        match is_risky && !origins.is_one() && !origins.is_seen(pick, now) {
            true => self.state = AttemptState::Check(pick),
            false => self.send(pick),
        }
    }

    fn send(&mut self, pick: Pick) {
        self.sent += 1;
        self.state = AttemptState::Send(pick);
    }

    fn give_up(&mut self, origins: &Origins, now: u64) {
        self.state = AttemptState::Failed(self.refusal.take().unwrap_or_else(|| origins.unavailable(now)));
    }

    /// Takes the result of [`Todo::Check`]. If the origin was checked before a request and is silent or down, the request
    /// is not sent to it, and the returned failure must be passed to [`Attempts::failed`].
    pub fn checked(&mut self, origins: &mut Origins, health: CheckResult, now: u64) -> Option<FailedAttempt> {
        match (std::mem::replace(&mut self.state, AttemptState::Choose), health) {
            (AttemptState::Check(pick), CheckResult::NoDatabase) => origins.lost_database(pick, now),
            (AttemptState::Check(_), CheckResult::Silent | CheckResult::Down) => return Some(FailedAttempt::unsent()),
            (AttemptState::Check(pick), CheckResult::Well | CheckResult::Unclear) => self.send(pick),
            (AttemptState::Probe(pick, failed), health) => {
                match (failed.cause, health) {
                    (FailureCause::Database, CheckResult::Well) => origins.answered(pick, now),
                    (FailureCause::Database, CheckResult::NoDatabase | CheckResult::Silent | CheckResult::Down) => {
                        origins.lost_database(pick, now);
                    }
                    (FailureCause::Database, CheckResult::Unclear) => {}
                    _ => {
                        if let Some(failed) = FailedAttempt::unanswered(health) {
                            origins.failed(pick, failed.cause, now);
                        }
                    }
                }
                self.conclude(origins, failed, now);
            }
            (state, _) => self.state = state,
        }
        None
    }

    /// Records the head of an origin's answer. Returns whether the answer may go to the client, and a failure, if any,
    /// to be passed to [`Attempts::failed`]. `lacks_database` says that the origin can't reach its database.
    pub fn answered(
        &mut self,
        origins: &mut Origins,
        pick: Pick,
        lacks_database: bool,
        now: u64,
    ) -> (bool, Option<FailedAttempt>) {
        if !lacks_database || origins.is_one() {
            origins.answered(pick, now);
            self.state = AttemptState::Answered;
            return (true, None);
        }
        let failed = FailedAttempt::without_database();
        let is_repeated = failed.may_be_repeated(self.repeat);
        if is_repeated {
            // The origin answered at once, so this attempt does not count: there is time to try all other origins.
            self.sent -= 1;
        }
        (!is_repeated, Some(failed))
    }

    /// Records a failed attempt. If the origin caused the failure, its health is updated at once; if the cause is
    /// uncertain, only after a check.
    pub fn failed(&mut self, origins: &mut Origins, pick: Pick, failed: FailedAttempt, now: u64) {
        match failed.cause {
            FailureCause::Unclear | FailureCause::Database => self.state = AttemptState::Probe(pick, failed),
            FailureCause::Origin | FailureCause::Silent => {
                origins.failed(pick, failed.cause, now);
                self.conclude(origins, failed, now);
            }
            FailureCause::Slow | FailureCause::Client => self.conclude(origins, failed, now),
        }
    }

    fn conclude(&mut self, origins: &Origins, failed: FailedAttempt, now: u64) {
        let may_be_repeated = self.sent == 0 || failed.may_be_repeated(self.repeat);
        if !may_be_repeated && failed.cause == FailureCause::Database {
            self.state = AttemptState::Answered;
        } else if origins.is_one() || !may_be_repeated {
            self.state = AttemptState::Failed(failed.problem(self.repeat));
        } else {
            if failed.is_of_caller() {
                self.refusal = Some(failed.problem);
            }
            self.state = AttemptState::Choose;
            if self.sent == ATTEMPTS_MAX || now >= self.deadline {
                self.give_up(origins, now);
            }
        }
    }

    /// Records that the request has been sent completely. For a streamed body, the deadline counts from now.
    pub fn arrived(&mut self, now: u64) {
        if self.repeat == Repeat::Never {
            self.deadline = now + self.timeouts.answer_ms;
        }
    }

    /// Returns the time that is left until the deadline for the origin's answer.
    pub fn left(&self, now: u64) -> Duration {
        Duration::from_millis(self.deadline.saturating_sub(now))
    }

    /// Returns how long the edge waits for the origin's answer before it checks the origin.
    pub fn silence_max(&self, now: u64) -> Duration {
        self.left(now).min(Duration::from_millis(self.timeouts.silence_ms))
    }

    /// Returns the deadline of a health check of an origin that was silent for [`Attempts::silence_max`]; `None` if the
    /// origin must not be checked.
    pub fn doubts(&self, origins: &Origins, pick: Pick, now: u64) -> Option<u64> {
        // The remaining time must suffice for the check; otherwise a slow statement would look like a dead origin.
        let has_time = now + self.timeouts.silence_ms <= self.deadline;
        (has_time && !origins.is_seen_since(pick)).then_some(self.deadline)
    }

    /// Returns the failure of a connection that could not be opened or broke.
    pub fn broken(&self, origins: &Origins, runtime_message: String) -> FailedAttempt {
        // With a streamed body, the cause is unclear: a server that refuses a body before its end also breaks the
        // connection. With a single origin, the broken connection may be one that the origin just closed as idle, which
        // needs no back-off.
        let is_unclear = self.repeat == Repeat::Never || origins.is_one();
        let cause = if is_unclear { FailureCause::Unclear } else { FailureCause::Origin };
        FailedAttempt::broken(cause, runtime_message)
    }
}

#[cfg(test)]
mod tests;
