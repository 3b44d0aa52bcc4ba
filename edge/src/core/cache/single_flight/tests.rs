//! SingleFlight, with a clock of the test's own.

use super::*;

type Flights = Rc<RefCell<SingleFlight>>;

fn flights() -> Flights {
    Rc::default()
}

fn print(key: u64) -> Fingerprint {
    Fingerprint::of(&key)
}

const KEY_ID: Option<Uuid> = Some(Uuid::from_u128(1));

/// Takes a turn right after a lookup, with a key that the origin accepted.
fn take(flights: &Flights, key: u64, now_ms: u64) -> Turn {
    let looked = flights.borrow().moment();
    SingleFlight::take(flights, print(key), KEY_ID, true, looked, now_ms)
}

fn lead(turn: Turn) -> Lead {
    match turn {
        Turn::Lead(lead) => lead,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_leads_and_the_others_wait() {
    let flights = flights();
    let first = lead(take(&flights, 1, 0));
    assert!(matches!(take(&flights, 1, 5), Turn::Wait));
    let other = lead(take(&flights, 2, 5));
    assert!(flights.borrow().is_shared(print(1), 5));
    first.kept();
    drop(other);
    assert!(!flights.borrow().is_shared(print(1), 5));
}

#[test]
fn a_request_that_looked_before_the_entry_was_kept_looks_again_and_one_after_leads() {
    let flights = flights();
    let early = flights.borrow().moment();
    lead(take(&flights, 1, 0)).kept();
    let turn = SingleFlight::take(&flights, print(1), KEY_ID, true, early, 0);
    assert!(matches!(turn, Turn::LookAgain), "{turn:?}");
    lead(take(&flights, 1, 0)).kept();
}

#[test]
fn a_lead_that_is_dropped_is_free() {
    let flights = flights();
    drop(lead(take(&flights, 1, 0)));
    assert!(flights.borrow().entries.is_empty());
    drop(lead(take(&flights, 1, 0)));
}

#[test]
fn nobody_waits_for_what_was_not_kept_lately() {
    let flights = flights();
    lead(take(&flights, 1, 0)).not_kept(10);
    assert!(matches!(take(&flights, 1, 10 + BACK_OFF_MS - 1), Turn::Alone));
    assert!(!flights.borrow().is_backing_off(print(1), 10));
    drop(lead(take(&flights, 1, 10 + BACK_OFF_MS)));
}

#[test]
fn an_origin_that_did_not_confirm_is_asked_again_after_a_while() {
    let flights = flights();
    lead(take(&flights, 1, 0)).unanswered(10);
    assert!(matches!(take(&flights, 1, 10 + BACK_OFF_MS - 1), Turn::Alone));
    assert!(flights.borrow().is_backing_off(print(1), 10 + BACK_OFF_MS - 1));
    assert!(!flights.borrow().is_backing_off(print(1), 10 + BACK_OFF_MS));
    drop(lead(take(&flights, 1, 10 + BACK_OFF_MS)));
}

#[test]
fn nobody_waits_for_a_long_answer_nor_fetches_it_twice() {
    let flights = flights();
    let long = lead(take(&flights, 1, 0));
    long.release_waiting(10);
    assert!(!flights.borrow().is_shared(print(1), 10));
    assert!(matches!(take(&flights, 1, LEAD_MAX_MS), Turn::Alone));
    assert!(matches!(take(&flights, 1, 10 + LONG_LEAD_MAX_MS - 1), Turn::Alone));
    drop(lead(take(&flights, 1, 10 + LONG_LEAD_MAX_MS)));
    let looked = flights.borrow().moment();
    let next = lead(take(&flights, 1, 0));
    // The end of the one that took too long means nothing.
    drop(long);
    assert!(matches!(take(&flights, 1, 1), Turn::Wait));
    next.kept();
    assert!(matches!(SingleFlight::take(&flights, print(1), KEY_ID, true, looked, 1), Turn::LookAgain));
}

#[test]
fn a_lead_that_never_ended_is_taken_over_and_its_end_means_nothing() {
    let flights = flights();
    let lost = lead(take(&flights, 1, 0));
    assert!(matches!(take(&flights, 1, LEAD_MAX_MS - 1), Turn::Wait));
    let next = lead(take(&flights, 1, LEAD_MAX_MS));
    drop(lost);
    assert!(matches!(take(&flights, 1, LEAD_MAX_MS + 1), Turn::Wait));
    next.kept();
}

#[test]
fn a_key_that_the_origin_did_not_take_lately_waits_only_for_itself() {
    let flights = flights();
    let _lead = lead(take(&flights, 1, 0));
    let looked = flights.borrow().moment();
    let same = SingleFlight::take(&flights, print(1), KEY_ID, false, looked, 0);
    assert!(matches!(same, Turn::Wait));
    let other = SingleFlight::take(&flights, print(1), Some(Uuid::from_u128(2)), false, looked, 0);
    assert!(matches!(other, Turn::Alone));
}

#[test]
fn of_too_many_reads_each_is_fetched_by_itself() {
    let flights = flights();
    let leads: Vec<Lead> = (0..LEADS_MAX_COUNT as u64).map(|key| lead(take(&flights, key, 0))).collect();
    assert!(matches!(take(&flights, u64::MAX, 0), Turn::Alone));
    for lead in leads {
        lead.kept();
    }
    // A lead that ended makes room, for another one and in memory.
    for key in 0..=ENTRIES_MAX_COUNT as u64 {
        lead(take(&flights, key, 0)).kept();
    }
    drop(lead(take(&flights, u64::MAX, 0)));
    assert!(flights.borrow().entries.len() <= ENTRIES_MAX_COUNT);
}

#[test]
fn pauses_grow_and_end() {
    let pauses: Vec<u64> = pauses().map(|pause| pause.as_millis() as u64).collect();
    assert_eq!(pauses[..4], [5, 7, 10, 15]);
    assert!(pauses.is_sorted());
    let waited: u64 = pauses.iter().sum();
    assert!((LEAD_MAX_MS - PAUSE_MAX_MS..=LEAD_MAX_MS).contains(&waited));
}
