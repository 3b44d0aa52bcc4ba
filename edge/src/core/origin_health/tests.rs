//! Tests of the choice among origins, with a simulated clock.

use super::*;
use crate::config::Config;
use crate::core::{CheckResult, FailedAttempt, Repeat};
use shared::key::{KeySet, SigningKey};

const NOW: u64 = 1_790_000_000_000;
const SILENCE_MAX_MS: u64 = 2_000;
const NOWHERE: CallerLocation = [None, None];

pub(in crate::core) fn origins(list: &str) -> Origins {
    let keys = KeySet::new(vec![SigningKey::from_seed("k1", &[7; 32]).public()]).unwrap();
    let config = Config::read(|name| match name {
        "ORIGINS" => Some(list.to_owned()),
        "JWKS" => Some(keys.to_jwks()),
        _ => None,
    });
    Origins::new(config.unwrap().origins, SILENCE_MAX_MS)
}

fn three() -> Origins {
    origins("http://a,http://b;near=EU,http://c;near=AF|DE")
}

fn location(continent: &str, country: &str) -> CallerLocation {
    [Region::parse(continent), Region::parse(country)]
}

/// Returns the numbers of all origins in the order in which one request would try them.
fn order(origins: &mut Origins, location: CallerLocation, now: u64) -> Vec<usize> {
    let mut tried = Tried::default();
    std::iter::from_fn(|| {
        let pick = origins.choose(tried, location, now)?;
        tried.add(pick);
        Some(pick.number())
    })
    .collect()
}

fn pick(origins: &mut Origins, now: u64) -> Pick {
    origins.choose(Tried::default(), NOWHERE, now).unwrap()
}

fn fail(origins: &mut Origins, now: u64) {
    let pick = pick(origins, now);
    origins.failed(pick, FailureCause::Origin, now);
}

fn described(origins: &Origins, now: u64) -> String {
    String::from_utf8(origins.describe(now)).unwrap()
}

#[test]
fn the_near_ones_come_first_and_then_the_order_of_the_list() {
    let mut origins = three();
    for (location, expected) in [
        (NOWHERE, [1, 2, 3]),
        (location("EU", "FR"), [2, 1, 3]),
        (location("AF", "KE"), [3, 1, 2]),
        (location("EU", "DE"), [2, 3, 1]),
        (location("NA", "US"), [1, 2, 3]),
    ] {
        assert_eq!(order(&mut origins, location, NOW), expected, "{location:?}");
    }
    assert!(origins.have_regions());
    assert!(!super::tests::origins("http://a").have_regions());
}

#[test]
fn one_that_failed_is_not_asked_while_it_cools_down_however_near_it_is() {
    let mut origins = three();
    fail(&mut origins, NOW);
    assert_eq!(order(&mut origins, NOWHERE, NOW), [2, 3]);
    assert_eq!(order(&mut origins, NOWHERE, NOW + 999), [2, 3]);
    let near = origins.choose(Tried::default(), location("EU", "FR"), NOW).unwrap();
    origins.failed(near, FailureCause::Origin, NOW);
    assert_eq!(order(&mut origins, location("EU", "FR"), NOW), [3]);
}

#[test]
fn the_cool_down_doubles_up_to_half_a_minute_and_begins_anew_after_an_answer() {
    let mut origins = origins("http://a,http://b");
    let mut now = NOW;
    for seconds in [1, 2, 4, 8, 16, 30, 30, 30] {
        fail(&mut origins, now);
        assert_eq!(pick(&mut origins, now + seconds * 1_000 - 1).number(), 2);
        now += seconds * 1_000;
        let again = origins.choose(Tried::default(), NOWHERE, now).expect("an origin");
        assert_eq!((again.number(), again.is_trial()), (1, true));
        now += SILENCE_MAX_MS;
    }
    let back = pick(&mut origins, now);
    origins.answered(back, now);
    assert!(!pick(&mut origins, now).is_trial());
    fail(&mut origins, now);
    assert_eq!(pick(&mut origins, now + 1_000).number(), 1);
}

#[test]
fn the_only_one_is_asked_again_after_a_second_however_often_it_failed() {
    let mut origins = origins("http://a");
    for nth in 0..20 {
        let now = NOW + nth * 1_000;
        fail(&mut origins, now);
        assert_eq!(origins.choose(Tried::default(), NOWHERE, now + 999), None);
    }
}

#[test]
fn the_only_one_is_asked_at_once_although_it_was_silent() {
    let mut origins = origins("http://a");
    for nth in 1..20 {
        let silent = pick(&mut origins, NOW + nth);
        origins.failed(silent, FailureCause::Silent, NOW + nth);
        assert!(described(&origins, NOW + nth).contains(&format!(r#""state":"failing","failures":{nth}"#)));
    }
    let mut two = super::tests::origins("http://a,http://b");
    let silent = pick(&mut two, NOW);
    two.failed(silent, FailureCause::Silent, NOW);
    assert_eq!(pick(&mut two, NOW + 999).number(), 2);
}

#[test]
fn an_origin_without_its_database_is_asked_for_its_readiness_and_soon() {
    let mut origins = origins("http://a,http://b");
    let mut now = NOW;
    for seconds in [1, 2, 4, 4, 4] {
        let first = pick(&mut origins, now);
        assert_eq!(first.number(), 1);
        origins.lost_database(first, now);
        assert_eq!(origins.check_path(first), READINESS_PATH);
        assert_eq!(order(&mut origins, NOWHERE, now), [2]);
        now += seconds * 1_000;
    }
    assert!(described(&origins, now).contains(r#""state":"no-database","failures":5"#));
    // The other origin is down, so it is not true that all origins lack only their database.
    let second = origins.choose(Tried::default(), NOWHERE, now - 1).unwrap();
    origins.failed(second, FailureCause::Origin, now);
    let code = |origins: &Origins| origins.unavailable(now).code();
    assert_eq!(code(&origins), ErrorCode::OriginUnavailable);
    origins.lost_database(second, now);
    assert_eq!(code(&origins), ErrorCode::DatabaseUnavailable);
    let first = pick(&mut origins, now);
    origins.answered(first, now);
    assert_eq!(origins.check_path(first), HEALTH_PATH);
}

#[test]
fn one_request_at_a_time_finds_out_whether_an_origin_is_back() {
    let mut origins = origins("http://a,http://b");
    fail(&mut origins, NOW);
    let back = NOW + 1_000;
    assert!(pick(&mut origins, back).is_trial());
    assert_eq!(pick(&mut origins, back).number(), 2);
    // An origin with a trial in progress is chosen if no other origin is left.
    assert_eq!(order(&mut origins, NOWHERE, back), [2, 1]);
    // The trial's client may have disconnected.
    assert!(pick(&mut origins, back + SILENCE_MAX_MS).is_trial());
}

#[test]
fn of_requests_that_fail_together_one_counts() {
    let mut origins = origins("http://a,http://b");
    let picks: Vec<Pick> = (0..100).map(|nth| pick(&mut origins, NOW + nth)).collect();
    for (nth, pick) in (0..).zip(picks) {
        origins.failed(pick, FailureCause::Origin, NOW + 4_000 + nth);
    }
    assert!(described(&origins, NOW + 4_500).contains(r#""state":"cooling-down","failures":1"#));
    assert_eq!(pick(&mut origins, NOW + 5_100).number(), 1);
}

#[test]
fn a_sign_of_life_counts_for_a_while_and_not_past_a_failure() {
    let mut origins = origins("http://a,http://b");
    let first = pick(&mut origins, NOW);
    assert!(!origins.is_seen(first, NOW));
    origins.answered(first, NOW + 10);
    assert!(origins.is_seen(first, NOW + 20));
    assert!(origins.is_seen_since(first));
    assert!(!origins.is_seen(first, NOW + 10 + SEEN_COUNTS_MS));
    let later = pick(&mut origins, NOW + 30);
    assert!(!origins.is_seen_since(later));
    origins.failed(later, FailureCause::Origin, NOW + 40);
    assert!(!origins.is_seen(later, NOW + 50));
    origins.lives(later, NOW + 1_050);
    assert!(origins.is_seen(later, NOW + 1_060));
}

#[test]
fn when_to_come_again_is_when_the_first_cool_down_ends() {
    let mut origins = origins("http://a,http://b");
    fail(&mut origins, NOW);
    fail(&mut origins, NOW + 500);
    for (after, seconds) in [(500, "1"), (999, "1"), (60_000, "1")] {
        let problem = origins.unavailable(NOW + after);
        let told = problem.headers().find(|(name, _)| *name == "retry-after");
        assert_eq!(told.map(|(_, value)| value.into_owned()).as_deref(), Some(seconds));
    }
    let mut alone = three();
    let mut now = NOW;
    for _ in 0..4 {
        for number in 1..=3 {
            let pick = alone.choose(Tried::default(), NOWHERE, now).unwrap();
            assert_eq!(pick.number(), number);
            alone.failed(pick, FailureCause::Origin, now);
        }
        now += 8_000;
    }
    let problem = alone.unavailable(now - 8_000 + 1);
    let told = problem.headers().find(|(name, _)| *name == "retry-after");
    assert_eq!(told.map(|(_, value)| value.into_owned()).as_deref(), Some("8"));
}

#[test]
fn each_state_is_named_and_no_address() {
    let mut origins = three();
    assert_eq!(
        described(&origins, NOW),
        r#"{"status":"ok","origins":[{"origin":1,"state":"unknown","failures":0},{"origin":2,"near":["EU"],"state":"unknown","failures":0},{"origin":3,"near":["AF","DE"],"state":"unknown","failures":0}]}"#
    );
    fail(&mut origins, NOW);
    let second = pick(&mut origins, NOW);
    origins.answered(second, NOW);
    let text = described(&origins, NOW + 1);
    assert!(text.contains(r#"{"origin":1,"state":"cooling-down","failures":1}"#), "{text}");
    assert!(text.contains(r#"{"origin":2,"near":["EU"],"state":"healthy","failures":0}"#), "{text}");
    let text = described(&origins, NOW + 1_000);
    assert!(text.contains(r#"{"origin":1,"state":"failing","failures":1}"#), "{text}");
}

#[test]
fn only_what_does_no_harm_is_sent_to_another_origin() {
    let problem = || FailedAttempt::slow().problem;
    for (miss, always, if_untaken) in [
        (FailedAttempt::unanswered(CheckResult::Silent).unwrap(), true, false),
        (FailedAttempt::slow(), false, false),
        (FailedAttempt::unsent(), true, true),
        (FailedAttempt::broken(FailureCause::Origin, String::new()), true, false),
        (FailedAttempt::broken(FailureCause::Unclear, String::new()), true, false),
        (FailedAttempt::without_database(), true, false),
        (FailedAttempt::foreign(200, problem()), true, false),
        (FailedAttempt::foreign(404, problem()), true, false),
        (FailedAttempt::foreign(502, problem()), true, false),
        (FailedAttempt::foreign(520, problem()), true, false),
        (FailedAttempt::foreign(521, problem()), true, true),
        (FailedAttempt::foreign(522, problem()), true, false),
        (FailedAttempt::foreign(523, problem()), true, true),
        (FailedAttempt::foreign(524, problem()), false, false),
        (FailedAttempt::foreign(525, problem()), true, true),
        (FailedAttempt::foreign(526, problem()), true, true),
        (FailedAttempt::foreign(530, problem()), true, true),
    ] {
        assert_eq!(miss.may_be_repeated(Repeat::Always), always, "{miss:?}");
        assert_eq!(miss.may_be_repeated(Repeat::IfUnsent), if_untaken, "{miss:?}");
        assert!(!miss.may_be_repeated(Repeat::Never), "{miss:?}");
    }
}

#[test]
fn a_refusal_that_a_caller_can_bring_about_is_not_blamed_on_the_origin() {
    for (status, cause) in [
        (200, FailureCause::Origin),
        (302, FailureCause::Origin),
        (400, FailureCause::Unclear),
        (413, FailureCause::Unclear),
        (431, FailureCause::Unclear),
        (500, FailureCause::Unclear),
        (502, FailureCause::Unclear),
        (503, FailureCause::Unclear),
        (520, FailureCause::Unclear),
        (521, FailureCause::Origin),
        (522, FailureCause::Origin),
        (524, FailureCause::Slow),
    ] {
        assert_eq!(FailedAttempt::foreign(status, FailedAttempt::slow().problem).cause, cause, "{status}");
    }
}
