//! Tests of slots and of the queue for them.

use super::*;

const NOW: u64 = 1_800_000_000_000;
const WHOLE: usize = EDGE_REQUESTS_MAX_COUNT;
const RESERVED: usize = WHOLE / RESERVED_SHARE;
const FEW: usize = WHOLE / FEW_SHARE;

/// Lets a key of a project send requests: `shop.a` is the key `a` of the project `shop`.
fn begin<'a>(in_flight: &'a InFlight, caller: &str, count: usize) -> Vec<Slot<'a>> {
    (0..count).map(|_| in_flight.begin(&of(caller), NOW)).collect()
}

fn of(caller: &str) -> Caller {
    let (project, key) = caller.split_once('.').unwrap_or((caller, ""));
    Caller::in_class(Class::Verified, project, key)
}

fn granted(slots: &[Slot<'_>]) -> usize {
    slots.iter().filter(|slot| slot.is_granted(NOW).is_ok_and(|is_granted| is_granted)).count()
}

fn code(slot: &Slot<'_>, now: u64) -> Option<ErrorCode> {
    slot.is_granted(now).err().map(|problem| problem.code())
}

#[test]
fn a_project_may_use_all_slots_and_further_requests_get_theirs_in_order() {
    let in_flight = InFlight::default();
    let mut first = begin(&in_flight, "shop", WHOLE);
    let waiting = begin(&in_flight, "shop", WHOLE);
    assert_eq!((granted(&first), granted(&waiting)), (WHOLE, 0));
    first.truncate(WHOLE - 3);
    assert_eq!((granted(&waiting[..3]), granted(&waiting)), (3, 3));
    drop((first, waiting));
    assert_eq!(granted(&begin(&in_flight, "shop", WHOLE)), WHOLE);
}

#[test]
fn a_project_with_few_requests_is_served_beside_one_that_uses_all_slots() {
    let in_flight = InFlight::default();
    let _all = begin(&in_flight, "shop", 2 * WHOLE);
    let mut served = Vec::new();
    for project in 0..RESERVED / FEW {
        served.push(begin(&in_flight, &project.to_string(), FEW + 1));
        assert_eq!(granted(served.last().unwrap()), FEW, "{project}");
    }
    assert_eq!(granted(&begin(&in_flight, "late", 1)), 0);
}

#[test]
fn a_key_with_few_requests_is_served_beside_another_of_its_project_that_uses_all_slots() {
    let in_flight = InFlight::default();
    let _all = begin(&in_flight, "shop.a", 2 * WHOLE);
    let mut served = Vec::new();
    for key in 0..RESERVED / 2 / FEW {
        served.push(begin(&in_flight, &format!("shop.{key}"), FEW + 1));
        assert_eq!(granted(served.last().unwrap()), FEW, "{key}");
    }
    // Many keys of one project leave slots to other projects.
    assert_eq!(granted(&begin(&in_flight, "shop.late", 1)), 0);
    assert_eq!(granted(&begin(&in_flight, "blog", FEW)), FEW);
}

#[test]
fn free_slots_go_to_the_waiting_caller_with_the_fewest() {
    for [one, other] in [["shop", "blog"], ["shop.a", "shop.b"]] {
        let in_flight = InFlight::default();
        let mut first = begin(&in_flight, one, WHOLE);
        let more = begin(&in_flight, one, 10);
        let others = begin(&in_flight, other, WHOLE - 10);
        assert_eq!(granted(&others), FEW);
        for left in (0..WHOLE).rev() {
            first.truncate(left);
            let (mine, theirs) = (left + granted(&more), granted(&others));
            assert!(mine >= theirs || granted(&more) == 10, "{one}: {mine} {theirs}");
            assert!(granted(&more) == 0 || mine <= theirs + 1 || theirs == others.len(), "{one}: {mine} {theirs}");
        }
        assert_eq!((granted(&more), granted(&others)), (10, WHOLE - 10));
    }
}

#[test]
fn a_project_gains_nothing_by_many_keys() {
    let in_flight = InFlight::default();
    let mut first = begin(&in_flight, "old", WHOLE);
    let shop: Vec<_> = (0..WHOLE / 2).flat_map(|key| begin(&in_flight, &format!("shop.{key}"), 1)).collect();
    let blog = begin(&in_flight, "blog", WHOLE / 2);
    first.truncate(WHOLE / 2);
    assert_eq!(granted(&shop), granted(&blog));
    // The slots that are free now replace the reserved ones.
    drop((first, blog));
    let _all = begin(&in_flight, "old", WHOLE);
    assert_eq!(granted(&begin(&in_flight, "late", FEW)), FEW);
}

#[test]
fn a_class_takes_nothing_from_the_others() {
    for flooding in Class::ALL {
        let in_flight = InFlight::default();
        let flood: Vec<_> = (0..3 * WHOLE)
            .map(|number| in_flight.begin(&Caller::in_class(flooding, &(number / 100).to_string(), ""), NOW))
            .collect();
        let whole = Pool::new(flooding).whole;
        assert!(granted(&flood) <= whole + whole / RESERVED_SHARE);
        for class in Class::ALL.into_iter().filter(|class| *class != flooding) {
            let slot = in_flight.begin(&Caller::in_class(class, "1", ""), NOW);
            assert_eq!(slot.is_granted(NOW).ok(), Some(true), "{flooding:?} {class:?}");
        }
    }
}

#[test]
fn a_request_that_waited_is_refused_for_capacity_or_for_its_share() {
    let in_flight = InFlight::default();
    let late = NOW + EDGE_QUEUE_WAIT_MAX_MS;
    let _all = begin(&in_flight, "shop", WHOLE);
    let [shop] = &begin(&in_flight, "shop", 1)[..] else { panic!() };
    assert_eq!(code(shop, late - 1), None);
    assert_eq!(code(shop, late), Some(ErrorCode::Overloaded));
    let blog = begin(&in_flight, "blog", FEW + 1);
    assert_eq!(code(shop, late), Some(ErrorCode::RateLimited));
    assert_eq!(code(&blog[FEW], late), Some(ErrorCode::Overloaded));
}

#[test]
fn a_key_that_has_its_share_is_told_so_and_the_newest_of_its_requests_leaves_a_full_queue() {
    let in_flight = InFlight::default();
    let late = NOW + EDGE_QUEUE_WAIT_MAX_MS;
    let _all = begin(&in_flight, "shop.a", WHOLE);
    let waiting = begin(&in_flight, "shop.a", WHOLE);
    let others = begin(&in_flight, "shop.b", FEW + 2);
    assert_eq!(granted(&others), FEW);
    let displaced: Vec<_> = waiting.iter().filter_map(|slot| slot.is_granted(NOW).err()).collect();
    assert_eq!(displaced.len(), 2);
    let message = format!("{WHOLE} requests of this key or user wait for an origin, and others wait for their turn.");
    for problem in displaced {
        assert_eq!((problem.code(), problem.message()), (ErrorCode::RateLimited, &*message));
    }
    assert!(waiting[..WHOLE - 2].iter().chain(&others).all(|slot| code(slot, NOW).is_none()));
    assert_eq!(code(&others[FEW], late), Some(ErrorCode::Overloaded));
}

#[test]
fn the_newest_request_of_the_project_with_the_most_leaves_a_full_queue() {
    let in_flight = InFlight::default();
    let _all = begin(&in_flight, "shop", WHOLE);
    let shop = begin(&in_flight, "shop", WHOLE + 1);
    assert_eq!(code(&shop[WHOLE], NOW), Some(ErrorCode::Overloaded));
    let blog = begin(&in_flight, "blog", FEW + 2);
    assert_eq!(granted(&blog), FEW);
    assert_eq!(shop.iter().filter(|slot| code(slot, NOW).is_some()).count(), 3);
    assert_eq!(code(&shop[WHOLE - 1], NOW), Some(ErrorCode::RateLimited));
    assert!(shop[..WHOLE - 2].iter().chain(&blog).all(|slot| code(slot, NOW).is_none()));
}

#[test]
fn requests_that_the_runtime_abandons_occupy_nothing_for_ever() {
    let in_flight = InFlight::default();
    // A slot that is leaked is never dropped, as if the runtime had abandoned its request.
    let abandon = |slots: Vec<Slot<'_>>| slots.into_iter().for_each(std::mem::forget);
    let held = begin(&in_flight, "shop", WHOLE);
    assert_eq!(granted(&held), WHOLE);
    abandon(held);
    abandon(begin(&in_flight, "shop", WHOLE));
    let later = |ms| in_flight.begin(&of("shop"), NOW + ms);
    // The queue is free again, but not the slots.
    let slot = later(SILENT_MAX_MS);
    assert_eq!(slot.is_granted(NOW + SILENT_MAX_MS).ok(), Some(false));
    drop(slot);
    assert_eq!(in_flight.pools.borrow()[Class::Verified as usize].total, Usage { in_flight: WHOLE, waiting: 0 });
    assert_eq!(later(HELD_MAX_MS - 1).is_granted(NOW + HELD_MAX_MS - 1).ok(), Some(false));
    assert_eq!(later(HELD_MAX_MS + 1_000).is_granted(NOW + HELD_MAX_MS + 1_000).ok(), Some(true));
    assert!(in_flight.pools.borrow()[Class::Verified as usize].entries.is_empty());
}
