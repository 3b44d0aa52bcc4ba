//! A failed attempt to get a response from an origin: what it means for the origin's health, and whether the request
//! may be repeated. [`origin_health`](super::origin_health) chooses the next origin.

use super::origin_answer::NoAnswer;
use super::silence::CheckResult;
use shared::error::{ErrorCode, Problem};

/// The conditions under which a request that failed at one origin may be sent to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The request may be repeated after any failure except slowness, since executing it twice does no harm.
    Always,
    /// The request may be repeated only if the first origin certainly did not receive it.
    IfUnsent,
    /// The request may never be repeated, since its body is streamed.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The origin is down, or the server is not Selkie.
    Origin,
    /// The origin answered neither the request nor a health check in time.
    Silent,
    /// Either the origin or the request is at fault. The origin counts as down only if it also fails a health check.
    Unclear,
    /// The origin reported that it can't reach its database. A readiness check decides whether the report is right.
    Database,
    /// The origin did not answer in time, but failed no health check.
    Slow,
    /// The client broke off the request's body.
    Client,
}

#[derive(Debug)]
pub struct FailedAttempt {
    pub problem: Problem,
    pub cause: FailureCause,
    /// Whether the origin certainly did not receive the request.
    pub is_unsent: bool,
    /// The runtime's error message, for the log.
    pub runtime_message: String,
}

impl FailedAttempt {
    /// Returns the failure of an origin that did not answer a request in time and then failed a health check; `None` if
    /// `health` shows no failure.
    pub fn unanswered(health: CheckResult) -> Option<Self> {
        let cause = match health {
            CheckResult::Well | CheckResult::Unclear => return None,
            CheckResult::Silent => FailureCause::Silent,
            CheckResult::NoDatabase | CheckResult::Down => FailureCause::Origin,
        };
        Some(Self::of(NoAnswer::Timeout.problem(), cause))
    }

    pub fn slow() -> Self {
        Self::of(NoAnswer::Timeout.problem(), FailureCause::Slow)
    }

    pub fn broken_off(problem: Problem) -> Self {
        Self::of(problem, FailureCause::Client)
    }

    pub fn broken(cause: FailureCause, runtime_message: String) -> Self {
        Self { runtime_message, ..Self::of(NoAnswer::Unreachable.problem(), cause) }
    }

    /// Returns the failure of an origin that failed a health check before the request was sent.
    pub fn unsent() -> Self {
        Self { is_unsent: true, ..Self::of(NoAnswer::Unreachable.problem(), FailureCause::Origin) }
    }

    pub fn without_database() -> Self {
        let problem = Problem::new(ErrorCode::DatabaseUnavailable, "The origin can't reach its database.");
        Self::of(problem, FailureCause::Database)
    }

    /// Returns the failure for a response that did not come from Selkie.
    pub fn foreign(status: u16, problem: Problem) -> Self {
        // Statuses with which Cloudflare reports that there is no route or no connection to the origin. 522 is not
        // among them, since Cloudflare also sends it when an open connection falls silent.
        let is_unsent = matches!(status, 521 | 523 | 525 | 526 | 530);
        let cause = match status {
            521..=523 | 525 | 526 | 530 => FailureCause::Origin,
            // Cloudflare's status for an origin that accepted the request but took too long.
            524 => FailureCause::Slow,
            // A proxy in front of the origin sends such a status if requests are malformed, too many or too slow.
            400.. => FailureCause::Unclear,
            _ => FailureCause::Origin,
        };
        Self { is_unsent, ..Self::of(problem, cause) }
    }

    fn of(problem: Problem, cause: FailureCause) -> Self {
        Self { problem, cause, is_unsent: false, runtime_message: String::new() }
    }

    /// Returns whether the request may be sent to another origin.
    pub fn may_be_repeated(&self, repeat: Repeat) -> bool {
        match repeat {
            Repeat::Always => self.cause != FailureCause::Slow,
            Repeat::IfUnsent => self.is_unsent,
            Repeat::Never => false,
        }
    }

    /// Returns whether the request itself is at fault, so that every other origin would refuse it too.
    pub fn is_of_caller(&self) -> bool {
        !self.problem.code().retryable()
    }

    /// Returns the problem for the client, with a hint if a write may have succeeded despite the failure.
    pub fn problem(self, repeat: Repeat) -> Problem {
        if repeat == Repeat::Always || self.is_unsent || self.is_of_caller() {
            return self.problem;
        }
        self.problem.with_hint(
            "The write may have succeeded; check before retrying. An insert with an Idempotency-Key happens once.",
        )
    }
}
