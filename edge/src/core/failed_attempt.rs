//! An attempt to get an answer from an origin that failed: what it says of the origin's health, and whether the request
//! may be sent to another origin. Which origin that is, [`origin_health`](super::origin_health) chooses.

use super::origin_answer::NoAnswer;
use shared::error::{ErrorCode, Problem};

/// When a request may be sent to another origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Whatever happened to the first attempt: executing the request twice does no harm.
    Always,
    /// Only if the first origin certainly did not get the request.
    IfUnsent,
    /// Never once it was sent: its body is streamed, so it is there once.
    Never,
}

/// What made an attempt fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The origin is down, or not Selkie.
    Origin,
    /// The origin or the caller's request: the origin is down only if it fails a health check too.
    Unclear,
    /// The origin says that it can't reach its database: a readiness check decides.
    Database,
    /// The origin lives and was too slow.
    Slow,
}

/// An attempt that gave no answer to pass on.
#[derive(Debug)]
pub struct FailedAttempt {
    /// The problem that the caller gets.
    pub problem: Problem,
    /// What made it fail.
    pub cause: FailureCause,
    /// Whether the origin certainly did not get the request.
    pub is_unsent: bool,
    /// The runtime's error message, for the log.
    pub runtime_message: String,
}

impl FailedAttempt {
    /// The origin answered neither the request nor a health check.
    #[must_use]
    pub fn silent() -> Self {
        Self::of(NoAnswer::Timeout.problem(), FailureCause::Origin)
    }

    /// The origin lives, but did not answer in time.
    #[must_use]
    pub fn slow() -> Self {
        Self::of(NoAnswer::Timeout.problem(), FailureCause::Slow)
    }

    /// There was no connection, or it broke.
    #[must_use]
    pub fn broken(cause: FailureCause, runtime_message: String) -> Self {
        Self { runtime_message, ..Self::of(NoAnswer::Unreachable.problem(), cause) }
    }

    /// The origin failed a health check before the request was sent.
    #[must_use]
    pub fn unsent() -> Self {
        Self { is_unsent: true, ..Self::of(NoAnswer::Unreachable.problem(), FailureCause::Origin) }
    }

    /// The origin answered that it can't reach its database.
    #[must_use]
    pub fn without_database() -> Self {
        let problem = Problem::new(ErrorCode::DatabaseUnavailable, "The origin can't reach its database.");
        Self::of(problem, FailureCause::Database)
    }

    /// An answer of that status that is not Selkie's own.
    #[must_use]
    pub fn foreign(status: u16, problem: Problem) -> Self {
        // Cloudflare's own: it found no route to the origin, or could not connect. Not 522, which it also answers when an
        // open connection falls silent.
        let is_unsent = matches!(status, 521 | 523 | 525 | 526 | 530);
        let cause = match status {
            521..=523 | 525 | 526 | 530 => FailureCause::Origin,
            // Cloudflare's own: the origin took the request, and took too long.
            524 => FailureCause::Slow,
            // A proxy before the origin refuses requests that are malformed, too many or too slow.
            400.. => FailureCause::Unclear,
            _ => FailureCause::Origin,
        };
        Self { is_unsent, ..Self::of(problem, cause) }
    }

    fn of(problem: Problem, cause: FailureCause) -> Self {
        Self { problem, cause, is_unsent: false, runtime_message: String::new() }
    }

    /// Whether the request may be sent to another origin.
    #[must_use]
    pub fn may_be_repeated(&self, repeat: Repeat) -> bool {
        match repeat {
            Repeat::Always => self.cause != FailureCause::Slow,
            Repeat::IfUnsent => self.is_unsent,
            Repeat::Never => false,
        }
    }

    /// Whether the caller's request is at fault, so that every origin would refuse it.
    #[must_use]
    pub fn is_of_caller(&self) -> bool {
        !self.problem.code().retryable()
    }

    /// Returns the problem that the caller gets if no other origin is asked.
    #[must_use]
    pub fn problem(self, repeat: Repeat) -> Problem {
        if repeat == Repeat::Always || self.is_unsent || self.is_of_caller() {
            return self.problem;
        }
        self.problem.with_hint(
            "The write may have succeeded; check before retrying. An insert with an Idempotency-Key happens once.",
        )
    }
}
