//! Decides what it means if an origin has not answered when a timer fires. If the edge is busy, it reads answers late,
//! and its timers fire late.

/// Milliseconds by which a timer may fire late. A longer delay means that the edge was busy, so that the origin's
/// answer may have arrived unread.
const LATE_MAX_MS: u64 = 250;

/// What a health check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The origin answered, and did not report that it can't reach its database.
    Well,
    /// The origin reported that it can't reach its database.
    NoDatabase,
    /// The origin did not answer in time.
    Silent,
    /// The origin could not be reached or refused the check, or the response did not come from Selkie.
    Down,
    /// The edge was too busy to tell.
    Unclear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The edge was busy during the first wait. Wait once more.
    Again,
    /// The edge was busy during both waits, so that the silence may not be the origin's fault.
    Unclear,
    OfOrigin,
}

impl Silence {
    /// Judges an origin that has not answered when the `nth` timer of `timeout_ms` fires after `waited_ms`.
    pub fn judge(nth: u32, timeout_ms: u64, waited_ms: u64) -> Self {
        match waited_ms > timeout_ms + LATE_MAX_MS {
            true if nth == 1 => Self::Again,
            true => Self::Unclear,
            false => Self::OfOrigin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{FailedAttempt, FailureCause};

    #[test]
    fn silence_counts_against_the_origin_only_if_the_edge_was_not_busy() {
        for (nth, waited_ms, expected) in [
            (1, 2_000, Silence::OfOrigin),
            (1, 2_250, Silence::OfOrigin),
            (1, 2_251, Silence::Again),
            (2, 2_250, Silence::OfOrigin),
            (2, 9_000, Silence::Unclear),
        ] {
            assert_eq!(Silence::judge(nth, 2_000, waited_ms), expected, "{nth} {waited_ms}");
        }
    }

    #[test]
    fn a_check_that_the_edge_could_not_read_in_time_says_nothing() {
        for (health, cause) in [
            (CheckResult::Well, None),
            (CheckResult::Unclear, None),
            (CheckResult::Silent, Some(FailureCause::Silent)),
            (CheckResult::Down, Some(FailureCause::Origin)),
        ] {
            assert_eq!(FailedAttempt::unanswered(health).map(|failed| failed.cause), cause, "{health:?}");
        }
    }
}
