//! An attempt that failed: what it says of the origin, and whether another origin may be asked.
//!
//! Pure; which origin that would be is [`origins`](super::origins)'.

use super::origin::Fault;
use shared::error::{ErrorCode, Problem};

/// When a request may be sent to another origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Whatever became of the first attempt: a second one does no harm.
    Always,
    /// Only if the first origin certainly did not get it.
    IfUntaken,
    /// Not once it was begun: its body passes as it arrives, and is there once.
    Never,
}

/// What a failed attempt says of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It is dead, or not Selkie.
    Origin,
    /// The caller may have brought it about: it is dead if it gives no sign of life either.
    Unsure,
    /// It lives, but says that it can't reach its database: what it says of its readiness decides.
    Database,
    /// It lives.
    Nobody,
}

/// An attempt that gave no answer to pass on.
#[derive(Debug)]
pub struct Miss {
    /// What went wrong.
    pub problem: Problem,
    /// What it says of the origin.
    pub blame: Blame,
    /// Whether the origin certainly did not get the request.
    pub is_untaken: bool,
    /// The runtime's own words, for the log.
    pub cause: String,
}

impl Miss {
    /// It gave no sign of life.
    #[must_use]
    pub fn silent() -> Self {
        Self::of(Fault::Timeout.problem(), Blame::Origin)
    }

    /// It lives, but the time for its answer is over.
    #[must_use]
    pub fn slow() -> Self {
        Self::of(Fault::Timeout.problem(), Blame::Nobody)
    }

    /// There was no connection, or it broke.
    #[must_use]
    pub fn broken(blame: Blame, cause: String) -> Self {
        Self {
            cause,
            ..Self::of(Fault::Unreachable.problem(), blame)
        }
    }

    /// It did not even give a sign of life, before the request was sent.
    #[must_use]
    pub fn untaken() -> Self {
        Self {
            is_untaken: true,
            ..Self::of(Fault::Unreachable.problem(), Blame::Origin)
        }
    }

    /// It answered that it can't reach its database.
    #[must_use]
    pub fn without_database() -> Self {
        let problem = Problem::new(
            ErrorCode::DatabaseUnavailable,
            "The origin can't reach its database.",
        );
        Self::of(problem, Blame::Database)
    }

    /// An answer that is not Selkie's, of that status.
    #[must_use]
    pub fn foreign(status: u16, problem: Problem) -> Self {
        // Cloudflare's own: it found no way to the origin, or no connection came about. Not 522, which is also what
        // it says of a connection that fell silent later.
        let is_untaken = matches!(status, 521 | 523 | 525 | 526 | 530);
        let blame = match status {
            521..=523 | 525 | 526 | 530 => Blame::Origin,
            // Cloudflare's own: the origin took the request, and took too long.
            524 => Blame::Nobody,
            // A proxy before the origin refuses what a caller made unfit, or too often, or too slow.
            400.. => Blame::Unsure,
            _ => Blame::Origin,
        };
        Self {
            is_untaken,
            ..Self::of(problem, blame)
        }
    }

    fn of(problem: Problem, blame: Blame) -> Self {
        Self {
            problem,
            blame,
            is_untaken: false,
            cause: String::new(),
        }
    }

    /// Whether another origin may be asked.
    #[must_use]
    pub fn may_be_repeated(&self, repeat: Repeat) -> bool {
        match repeat {
            Repeat::Always => self.blame != Blame::Nobody,
            Repeat::IfUntaken => self.is_untaken,
            Repeat::Never => false,
        }
    }

    /// Whether the caller's request is at fault, so that no other origin would take it either.
    #[must_use]
    pub fn is_of_caller(&self) -> bool {
        !self.problem.code().retryable()
    }

    /// What the caller is told, if nobody else is asked.
    #[must_use]
    pub fn problem(self, repeat: Repeat) -> Problem {
        if repeat == Repeat::Always || self.is_untaken || self.is_of_caller() {
            return self.problem;
        }
        self.problem
            .with_hint("It may have been done. An insert with an Idempotency-Key happens once.")
    }
}
