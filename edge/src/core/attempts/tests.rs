//! Scripts of what happens to one request, with a simulated clock.

use super::*;
use crate::core::origin_answer::{Form, OriginHead, judge};
use crate::core::origin_health::tests::origins;
use CheckResult::*;
use Event::*;
use Repeat::{Always, IfUnsent, Never};
use shared::error::ErrorCode;
use shared::request_id::RequestId;

const NOW: u64 = 1_790_000_000_000;
const TIMEOUTS: Timeouts = Timeouts { answer_ms: 30_000, silence_ms: 2_000 };
const ONE: &str = "http://a";
const TWO: &str = "http://a,http://b";
const THREE: &str = "http://a,http://b,http://c";

/// What the caller reports.
#[derive(Clone, Copy, Debug)]
enum Event {
    Checked(CheckResult),
    Answered,
    LacksDatabase,
    Broken,
    /// The origin was silent, and this is what a check found.
    Unanswered(CheckResult),
    /// The time is over.
    Slow,
    /// An answer that is not Selkie's, with this status.
    Foreign(u16),
    BrokenOff,
}

fn begin(repeat: Repeat, now: u64) -> Attempts {
    Attempts::new(repeat, [None; 2], TIMEOUTS, now)
}

fn told(todo: &Todo) -> String {
    match todo {
        Todo::Check { pick, path, .. } => format!("check {} {path}", pick.number()),
        Todo::Send(pick) => format!("send {}", pick.number()),
        Todo::Answer => "answer".to_owned(),
        Todo::Fail(problem) => problem.code().as_str().to_owned(),
    }
}

/// Runs a request until it ends, and returns what it did.
fn run(origins: &mut Origins, repeat: Repeat, mut now: u64, events: &[Event]) -> Vec<String> {
    let mut attempts = begin(repeat, now);
    let mut done = Vec::new();
    for event in events {
        let todo = attempts.next(origins, now);
        done.push(told(&todo));
        now += if matches!(event, Slow) { TIMEOUTS.answer_ms } else { 10 };
        let pick = match todo {
            Todo::Check { pick, .. } | Todo::Send(pick) => pick,
            Todo::Answer | Todo::Fail(_) => panic!("{done:?} before {event:?}"),
        };
        let failed = match *event {
            Checked(health) => attempts.checked(origins, health, now),
            Answered => attempts.answered(origins, pick, false, now).1,
            LacksDatabase => attempts.answered(origins, pick, true, now).1,
            Broken => Some(attempts.broken(origins, String::new())),
            Unanswered(health) => FailedAttempt::unanswered(health),
            Slow => Some(FailedAttempt::slow()),
            Foreign(status) => {
                let head = OriginHead { status, content_type: None, request_id: None };
                let id = RequestId::from_incoming("r1").unwrap();
                Some(FailedAttempt::foreign(status, judge(&head, Form::Interface, &id).unwrap_err()))
            }
            BrokenOff => Some(FailedAttempt::broken_off(Problem::new(ErrorCode::InvalidBody, "cut"))),
        };
        if let Some(failed) = failed {
            attempts.failed(origins, pick, failed, now);
        }
    }
    done.push(told(&attempts.next(origins, now)));
    done
}

#[test]
fn a_request_is_sent_on_only_if_that_does_no_harm() {
    let well = Checked(Well);
    for (list, repeat, events, expected) in [
        // A read goes on to the second origin, and no further.
        (TWO, Always, vec![Broken, Answered], "send 1, send 2, answer"),
        (TWO, Always, vec![Broken, Broken], "send 1, send 2, origin_unavailable"),
        (THREE, Always, vec![Broken, Unanswered(Down)], "send 1, send 2, origin_unavailable"),
        (TWO, Always, vec![Unanswered(Silent), Answered], "send 1, send 2, answer"),
        (TWO, Always, vec![Slow], "send 1, origin_timeout"),
        (TWO, Always, vec![Foreign(524)], "send 1, origin_timeout"),
        (TWO, Always, vec![Foreign(200), Answered], "send 1, send 2, answer"),
        (TWO, Always, vec![Foreign(502), well, Answered], "send 1, check 1 /healthz, send 2, answer"),
        // A write is sent to an origin that passed a check, and never twice.
        (TWO, IfUnsent, vec![well, Answered], "check 1 /healthz, send 1, answer"),
        (TWO, IfUnsent, vec![Checked(Unclear), Answered], "check 1 /healthz, send 1, answer"),
        (TWO, IfUnsent, vec![well, Broken], "check 1 /healthz, send 1, origin_unreachable"),
        (TWO, IfUnsent, vec![Checked(Down), well, Answered], "check 1 /healthz, check 2 /healthz, send 2, answer"),
        (TWO, IfUnsent, vec![Checked(Silent), Checked(Down)], "check 1 /healthz, check 2 /healthz, origin_unavailable"),
        (
            TWO,
            IfUnsent,
            vec![Checked(NoDatabase), well, Answered],
            "check 1 /healthz, check 2 /healthz, send 2, answer",
        ),
        (
            TWO,
            IfUnsent,
            vec![well, Foreign(521), well, Answered],
            "check 1 /healthz, send 1, check 2 /healthz, send 2, answer",
        ),
        (TWO, Never, vec![well, Broken, well], "check 1 /healthz, send 1, check 1 /healthz, origin_unreachable"),
        (TWO, Never, vec![well, BrokenOff], "check 1 /healthz, send 1, invalid_body"),
        // The fault of the only origin is told.
        (ONE, Always, vec![Answered], "send 1, answer"),
        (ONE, IfUnsent, vec![Answered], "send 1, answer"),
        (ONE, Always, vec![Broken, well], "send 1, check 1 /healthz, origin_unreachable"),
        (ONE, Always, vec![Unanswered(Silent)], "send 1, origin_timeout"),
        (ONE, Always, vec![LacksDatabase], "send 1, answer"),
        (ONE, Always, vec![Foreign(200)], "send 1, bad_origin_answer"),
        // An origin without its database does not count as an attempt.
        (TWO, Always, vec![LacksDatabase, well, Answered], "send 1, check 1 /readyz, send 2, answer"),
        (
            THREE,
            Always,
            vec![LacksDatabase, Checked(NoDatabase), Broken, Answered],
            "send 1, check 1 /readyz, send 2, send 3, answer",
        ),
        (
            TWO,
            Always,
            vec![LacksDatabase, Checked(NoDatabase), LacksDatabase, Checked(NoDatabase)],
            "send 1, check 1 /readyz, send 2, check 2 /readyz, database_unavailable",
        ),
        (TWO, IfUnsent, vec![well, LacksDatabase, well], "check 1 /healthz, send 1, check 1 /readyz, answer"),
        // A fault of the request itself is told, though another origin was asked.
        (
            TWO,
            Always,
            vec![Foreign(413), well, Foreign(413), well],
            "send 1, check 1 /healthz, send 2, check 2 /healthz, body_too_large",
        ),
        (TWO, Always, vec![Foreign(413), well, Broken], "send 1, check 1 /healthz, send 2, body_too_large"),
    ] {
        let done = run(&mut origins(list), repeat, NOW, &events).join(", ");
        assert_eq!(done, expected, "{list} {repeat:?} {events:?}");
    }
}

#[test]
fn what_happened_to_one_request_decides_about_the_next() {
    const LATER: u64 = NOW + 5_000;
    for (list, first, at, second, expected) in [
        // The origin is left alone, and then must pass a check.
        (TWO, vec![Broken, Answered], NOW + 100, vec![Answered], "send 2, answer"),
        (TWO, vec![Broken, Answered], LATER, vec![Checked(Well), Answered], "check 1 /healthz, send 1, answer"),
        (TWO, vec![Slow], NOW + 31_000, vec![Answered], "send 1, answer"),
        (TWO, vec![Foreign(502), Checked(Well), Answered], LATER, vec![Answered], "send 1, answer"),
        (TWO, vec![Foreign(502), Checked(Unclear), Answered], LATER, vec![Answered], "send 1, answer"),
        (TWO, vec![Foreign(502), Checked(Down), Answered], NOW + 100, vec![Answered], "send 2, answer"),
        (TWO, vec![LacksDatabase, Checked(Well), Answered], NOW + 100, vec![Answered], "send 1, answer"),
        (TWO, vec![LacksDatabase, Checked(Unclear), Answered], NOW + 100, vec![Answered], "send 1, answer"),
        (
            TWO,
            vec![LacksDatabase, Checked(NoDatabase), Answered],
            LATER,
            vec![Checked(Down), Answered],
            "check 1 /readyz, send 2, answer",
        ),
        // The only origin is asked again, at once if it was silent or only the connection broke.
        (ONE, vec![Unanswered(Silent)], NOW + 100, vec![Answered], "send 1, answer"),
        (ONE, vec![Broken, Checked(Well)], NOW + 100, vec![Answered], "send 1, answer"),
        (ONE, vec![Broken, Checked(Down)], NOW + 100, vec![], "origin_unavailable"),
        (ONE, vec![Broken, Checked(Down)], LATER, vec![Answered], "send 1, answer"),
    ] {
        let mut origins = origins(list);
        run(&mut origins, Always, NOW, &first);
        let done = run(&mut origins, Always, at, &second).join(", ");
        assert_eq!(done, expected, "{list} {first:?} {second:?}");
    }
}

#[test]
fn the_time_for_an_answer_counts_from_the_end_of_a_streamed_body() {
    for (repeat, left) in [(Always, 20), (IfUnsent, 20), (Never, 30)] {
        let mut attempts = begin(repeat, NOW);
        attempts.arrived(NOW + 10_000);
        assert_eq!(attempts.left(NOW + 10_000), Duration::from_secs(left), "{repeat:?}");
    }
    let attempts = begin(Always, NOW);
    for (now, left, silence_max) in [(0, 30_000, 2_000), (29_000, 1_000, 1_000), (31_000, 0, 0)] {
        let times = [attempts.left(NOW + now), attempts.silence_max(NOW + now)];
        assert_eq!(times, [left, silence_max].map(Duration::from_millis), "{now}");
    }
}

#[test]
fn a_silent_origin_is_checked_if_time_is_left_and_nobody_heard_of_it() {
    let deadline = NOW + TIMEOUTS.answer_ms;
    for (now, seen_at, expected) in [
        (NOW + 2_000, None, Some(deadline)),
        (NOW + 2_000, Some(NOW), Some(deadline)),
        (NOW + 2_000, Some(NOW + 1), None),
        (deadline - 2_000, None, Some(deadline)),
        (deadline - 1_999, None, None),
    ] {
        let (mut origins, mut attempts) = (origins(TWO), begin(Always, NOW));
        let Todo::Send(pick) = attempts.next(&mut origins, NOW) else { panic!("not sent") };
        if let Some(seen_at) = seen_at {
            origins.lives(pick, seen_at);
        }
        assert_eq!(attempts.doubts(&origins, pick, now), expected, "{now} {seen_at:?}");
    }
}
