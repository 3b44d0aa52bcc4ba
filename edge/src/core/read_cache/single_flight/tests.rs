//! SingleFlight, with a clock of the test's own.

use super::*;

fn turns() -> Rc<RefCell<SingleFlight>> {
    Rc::default()
}

fn lookup(key: u64, key_id: u128) -> Lookup {
    Lookup {
        key: Fingerprint::of(&key),
        key_id: Uuid::from_u128(key_id),
        accepted_age: super::super::AcceptedAge::read("max-age=1", 1).unwrap(),
    }
}

/// Takes a turn right after a look, with a key that the origin took.
fn take(turns: &Rc<RefCell<SingleFlight>>, key: u64, now_ms: u64) -> Turn {
    let looked = turns.borrow().moment();
    SingleFlight::take(turns, &lookup(key, 1), true, looked, now_ms)
}

fn lead(turn: Turn) -> Lead {
    match turn {
        Turn::Lead(lead) => lead,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_leads_and_the_others_wait() {
    let turns = turns();
    let first = lead(take(&turns, 1, 0));
    assert!(matches!(take(&turns, 1, 5), Turn::Wait));
    let other = lead(take(&turns, 2, 5));
    assert!(turns.borrow().is_under_way(lookup(1, 1).key, 5));
    first.kept();
    drop(other);
    assert!(!turns.borrow().is_under_way(lookup(1, 1).key, 5));
}

#[test]
fn who_looked_before_it_was_kept_looks_again_and_who_looked_after_leads() {
    let turns = turns();
    let early = turns.borrow().moment();
    lead(take(&turns, 1, 0)).kept();
    let turn = SingleFlight::take(&turns, &lookup(1, 1), true, early, 0);
    assert!(matches!(turn, Turn::LookAgain), "{turn:?}");
    lead(take(&turns, 1, 0)).kept();
}

#[test]
fn a_turn_that_is_dropped_is_free() {
    let turns = turns();
    drop(lead(take(&turns, 1, 0)));
    assert!(turns.borrow().entries.is_empty());
    drop(lead(take(&turns, 1, 0)));
}

#[test]
fn nobody_waits_for_what_was_not_kept_lately() {
    let turns = turns();
    lead(take(&turns, 1, 0)).not_kept(10);
    assert!(matches!(take(&turns, 1, 10 + NOT_KEPT_MS - 1), Turn::Alone));
    drop(lead(take(&turns, 1, 10 + NOT_KEPT_MS)));
}

#[test]
fn a_turn_that_never_ended_is_taken_over_and_its_end_means_nothing() {
    let turns = turns();
    let lost = lead(take(&turns, 1, 0));
    assert!(matches!(take(&turns, 1, LEAD_MAX_MS - 1), Turn::Wait));
    let next = lead(take(&turns, 1, LEAD_MAX_MS));
    drop(lost);
    assert!(matches!(take(&turns, 1, LEAD_MAX_MS + 1), Turn::Wait));
    next.kept();
}

#[test]
fn a_key_that_the_origin_did_not_take_lately_waits_only_for_itself() {
    let turns = turns();
    let _lead = lead(take(&turns, 1, 0));
    let looked = turns.borrow().moment();
    let same = SingleFlight::take(&turns, &lookup(1, 1), false, looked, 0);
    assert!(matches!(same, Turn::Wait));
    let other = SingleFlight::take(&turns, &lookup(1, 2), false, looked, 0);
    assert!(matches!(other, Turn::Alone));
}

#[test]
fn of_too_many_reads_each_is_fetched_by_itself() {
    let turns = turns();
    let leads: Vec<Lead> = (0..LEADS_MAX_COUNT as u64).map(|key| lead(take(&turns, key, 0))).collect();
    assert!(matches!(take(&turns, u64::MAX, 0), Turn::Alone));
    for lead in leads {
        lead.kept();
    }
    // What is over makes room, for a turn and in memory.
    for key in 0..=TURNS_MAX_COUNT as u64 {
        lead(take(&turns, key, 0)).kept();
    }
    drop(lead(take(&turns, u64::MAX, 0)));
    assert!(turns.borrow().entries.len() <= TURNS_MAX_COUNT);
}

#[test]
fn pauses_grow_and_end() {
    let pauses: Vec<u64> = pauses().map(|pause| pause.as_millis() as u64).collect();
    assert_eq!(pauses[..4], [5, 7, 10, 15]);
    assert!(pauses.is_sorted());
    let waited: u64 = pauses.iter().sum();
    assert!((LEAD_MAX_MS - PAUSE_MAX_MS..=LEAD_MAX_MS).contains(&waited));
}
