//! Tests of single-flight with a simulated clock.

use super::*;

type Flights = Rc<RefCell<SingleFlight>>;

fn flights() -> Flights {
    Rc::default()
}

fn print(key: u64) -> Fingerprint {
    Fingerprint::of(&key)
}

const KEY_ID: Option<Uuid> = Some(Uuid::from_u128(1));

/// Joins a flight right after a lookup, with an API key that the origin accepted.
fn join(flights: &Flights, key: u64, now_ms: u64) -> Flight {
    let looked = flights.borrow().moment();
    SingleFlight::join(flights, print(key), KEY_ID, true, looked, now_ms)
}

fn lead(flight: Flight) -> Lead {
    match flight {
        Flight::Lead(lead) => lead,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_leads_and_the_others_wait() {
    let flights = flights();
    let first = lead(join(&flights, 1, 0));
    assert!(matches!(join(&flights, 1, 5), Flight::Wait));
    let other = lead(join(&flights, 2, 5));
    assert!(flights.borrow().is_shared(print(1), 5));
    first.stored();
    drop(other);
    assert!(!flights.borrow().is_shared(print(1), 5));
}

#[test]
fn a_request_that_looked_before_the_entry_was_stored_looks_again_and_one_after_leads() {
    let flights = flights();
    let early = flights.borrow().moment();
    lead(join(&flights, 1, 0)).stored();
    let flight = SingleFlight::join(&flights, print(1), KEY_ID, true, early, 0);
    assert!(matches!(flight, Flight::LookAgain), "{flight:?}");
    lead(join(&flights, 1, 0)).stored();
}

#[test]
fn a_lead_that_is_dropped_is_free() {
    let flights = flights();
    drop(lead(join(&flights, 1, 0)));
    assert!(flights.borrow().entries.is_empty());
    drop(lead(join(&flights, 1, 0)));
}

#[test]
fn nobody_waits_for_what_was_not_stored_lately() {
    let flights = flights();
    lead(join(&flights, 1, 0)).not_stored(10);
    assert!(matches!(join(&flights, 1, 10 + BACK_OFF_MS - 1), Flight::Alone));
    assert!(!flights.borrow().is_backing_off(print(1), 10));
    drop(lead(join(&flights, 1, 10 + BACK_OFF_MS)));
}

#[test]
fn an_origin_that_did_not_confirm_is_asked_again_after_a_while() {
    let flights = flights();
    lead(join(&flights, 1, 0)).unanswered(10);
    assert!(matches!(join(&flights, 1, 10 + BACK_OFF_MS - 1), Flight::Alone));
    assert!(flights.borrow().is_backing_off(print(1), 10 + BACK_OFF_MS - 1));
    assert!(!flights.borrow().is_backing_off(print(1), 10 + BACK_OFF_MS));
    drop(lead(join(&flights, 1, 10 + BACK_OFF_MS)));
}

#[test]
fn nobody_waits_for_a_long_answer_nor_fetches_it_twice() {
    let flights = flights();
    let long = lead(join(&flights, 1, 0));
    long.release_waiting(10);
    assert!(!flights.borrow().is_shared(print(1), 10));
    assert!(matches!(join(&flights, 1, LEAD_MAX_MS), Flight::Alone));
    assert!(matches!(join(&flights, 1, 10 + LONG_LEAD_MAX_MS - 1), Flight::Alone));
    drop(lead(join(&flights, 1, 10 + LONG_LEAD_MAX_MS)));
    let looked = flights.borrow().moment();
    let next = lead(join(&flights, 1, 0));
    // The end of a lead that took too long is ignored.
    drop(long);
    assert!(matches!(join(&flights, 1, 1), Flight::Wait));
    next.stored();
    assert!(matches!(SingleFlight::join(&flights, print(1), KEY_ID, true, looked, 1), Flight::LookAgain));
}

#[test]
fn a_lead_that_never_ended_is_taken_over_and_its_end_means_nothing() {
    let flights = flights();
    let lost = lead(join(&flights, 1, 0));
    assert!(matches!(join(&flights, 1, LEAD_MAX_MS - 1), Flight::Wait));
    let next = lead(join(&flights, 1, LEAD_MAX_MS));
    drop(lost);
    assert!(matches!(join(&flights, 1, LEAD_MAX_MS + 1), Flight::Wait));
    next.stored();
}

#[test]
fn a_key_that_the_origin_did_not_take_lately_waits_only_for_itself() {
    let flights = flights();
    let _lead = lead(join(&flights, 1, 0));
    let looked = flights.borrow().moment();
    let same = SingleFlight::join(&flights, print(1), KEY_ID, false, looked, 0);
    assert!(matches!(same, Flight::Wait));
    let other = SingleFlight::join(&flights, print(1), Some(Uuid::from_u128(2)), false, looked, 0);
    assert!(matches!(other, Flight::Alone));
}

#[test]
fn of_too_many_reads_each_is_fetched_by_itself() {
    let flights = flights();
    let leads: Vec<Lead> = (0..LEADS_MAX_COUNT as u64).map(|key| lead(join(&flights, key, 0))).collect();
    assert!(matches!(join(&flights, u64::MAX, 0), Flight::Alone));
    for lead in leads {
        lead.stored();
    }
    // A lead that has ended frees its slot.
    for key in 0..=ENTRIES_MAX_COUNT as u64 {
        lead(join(&flights, key, 0)).stored();
    }
    drop(lead(join(&flights, u64::MAX, 0)));
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
