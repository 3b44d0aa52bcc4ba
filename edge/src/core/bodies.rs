//! Bounds the memory of request bodies: of those that the edge reads as a whole, and of those whose first bytes it
//! awaits. One client address may use all memory for incomplete bodies. If that memory is exhausted, the edge stops
//! reading the oldest body of the address with the most bytes, in the class of callers with the most bytes, so that
//! slow bodies lock nobody out and no class can starve another. Complete bodies are kept until their requests are
//! answered. A long body that does not fit beside them is piped to the origin instead.

use super::caller::Caller;
use super::groups::{Groups, Member};
use shared::error::{ErrorCode, Problem};
use shared::limits::{EDGE_BODIES_MAX_BYTES, EDGE_BODY_MAX_SECONDS, EDGE_BODY_OVERHEAD_BYTES};
use std::cell::RefCell;
use std::cmp::Reverse;

#[derive(Debug, Default)]
pub struct Bodies {
    reading: RefCell<BodyCounts>,
}

#[derive(Debug, Default)]
struct BodyCounts {
    /// Sorted by number, in the order of arrival.
    entries: Vec<CountedBody>,
    /// The bytes of the incomplete bodies by client address; each class of callers is a group.
    addresses: Groups<u64>,
    /// The total bytes of the incomplete bodies.
    arriving: u64,
    /// The total bytes of the complete bodies.
    complete: u64,
    last: u64,
}

#[derive(Debug)]
struct CountedBody {
    number: u64,
    /// The client address for which an incomplete body counts; `None` for a complete body.
    address: Option<Member>,
    bytes: u64,
}

/// The memory that is counted for one body. Dropping this value releases the memory.
#[derive(Debug)]
pub struct ReadBody<'a> {
    bodies: &'a Bodies,
    number: u64,
    /// When reading began, in ms since 1970.
    began: u64,
}

impl Bodies {
    /// Returns whether a body of `length` bytes may be read as a whole. False only for a long body, if complete bodies
    /// use the memory.
    pub fn have_room(&self, length: u64) -> bool {
        let complete = self.reading.borrow().complete;
        length <= EDGE_BODY_OVERHEAD_BYTES || complete + length + EDGE_BODY_OVERHEAD_BYTES <= EDGE_BODIES_MAX_BYTES
    }

    /// Counts the memory of `length` bytes of a body. Reading begins at `now`, in ms since 1970. `address` is the
    /// result of `caller::address_group`.
    pub fn begin(&self, caller: &Caller, address: &str, length: u64, now: u64) -> ReadBody<'_> {
        let mut reading = self.reading.borrow_mut();
        let bytes = length + EDGE_BODY_OVERHEAD_BYTES;
        let address = reading.addresses.member(caller.class().name(), address);
        reading.last += 1;
        let number = reading.last;
        reading.entries.push(CountedBody { number, address: Some(address), bytes });
        reading.addresses.change(address, |used| *used += bytes);
        reading.arriving += bytes;
        while reading.arriving > EDGE_BODIES_MAX_BYTES {
            reading.give_up();
        }
        ReadBody { bodies: self, number, began: now }
    }
}

impl BodyCounts {
    /// Removes the oldest incomplete body of the address with the most bytes, in the class with the most.
    fn give_up(&mut self) {
        let incomplete = self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.address?)));
        let most = incomplete.max_by_key(|(index, address)| (self.addresses.used(*address), Reverse(*index)));
        if let Some((oldest, _)) = most {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, index: usize) {
        self.complete(index);
        self.complete -= self.entries.remove(index).bytes;
    }

    fn complete(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        if let Some(address) = entry.address.take() {
            let bytes = entry.bytes;
            self.addresses.change(address, |used| *used -= bytes);
            self.arriving -= bytes;
            self.complete += bytes;
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

impl ReadBody<'_> {
    /// Records that the body has arrived completely, so that it can no longer be given up.
    pub fn complete(&self) {
        let mut reading = self.bodies.reading.borrow_mut();
        if let Some(index) = reading.index_of(self.number) {
            reading.complete(index);
        }
    }

    /// Checks whether reading may go on. Fails with `invalid_body` if the body takes too long, and with `overloaded` if
    /// it was given up to free memory. Must be called repeatedly while the body is incomplete.
    pub fn check(&self, now: u64) -> Result<(), Problem> {
        if self.bodies.reading.borrow().index_of(self.number).is_none() {
            let message = "The body arrived too slowly, and others needed the memory for theirs.";
            return Err(Problem::new(ErrorCode::Overloaded, message));
        }
        if now >= self.began + EDGE_BODY_MAX_SECONDS * 1_000 {
            let message = format!("The body did not arrive within {EDGE_BODY_MAX_SECONDS} s.");
            return Err(Problem::new(ErrorCode::InvalidBody, message));
        }
        Ok(())
    }
}

impl Drop for ReadBody<'_> {
    fn drop(&mut self) {
        let mut reading = self.bodies.reading.borrow_mut();
        if let Some(index) = reading.index_of(self.number) {
            reading.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::Class;
    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const SMALL_MAX_COUNT: u64 = EDGE_BODIES_MAX_BYTES / EDGE_BODY_OVERHEAD_BYTES;

    fn begin<'a>(bodies: &'a Bodies, class: Class, address: &str, length: u64) -> ReadBody<'a> {
        bodies.begin(&Caller::in_class(class, "shop", "key"), address, length, NOW)
    }

    fn code(body: &ReadBody<'_>, now: u64) -> Option<ErrorCode> {
        body.check(now).err().map(|problem| problem.code())
    }

    #[test]
    fn the_oldest_body_of_the_address_with_the_most_is_given_up() {
        let bodies = Bodies::default();
        let begin = |address, length| begin(&bodies, Class::Verified, address, length);
        let honest = begin("192.0.2.1", 0);
        let slow: Vec<_> = (0..SMALL_MAX_COUNT).map(|_| begin("192.0.2.9", 0)).collect();
        assert_eq!(code(&slow[0], NOW), Some(ErrorCode::Overloaded));
        let large = begin("192.0.2.1", 10 * EDGE_BODY_OVERHEAD_BYTES);
        let given_up = slow.iter().take_while(|body| code(body, NOW).is_some()).count();
        assert_eq!(given_up, 12);
        for body in [&honest, &large, &slow[12], &slow[SMALL_MAX_COUNT as usize - 1]] {
            assert_eq!(code(body, NOW), None);
        }
        drop((honest, large, slow));
        let reading = bodies.reading.borrow();
        assert_eq!((reading.arriving, reading.complete, reading.entries.len()), (0, 0, 0));
    }

    #[test]
    fn a_class_of_callers_with_many_addresses_takes_half_of_the_memory_from_another_at_most() {
        const LONG: u64 = 1024 * 1024;
        for [flooding, honest] in [[Class::Unverified, Class::Verified], [Class::Verified, Class::Unverified]] {
            let bodies = Bodies::default();
            let honest: Vec<_> = (0..30).map(|_| begin(&bodies, honest, "192.0.2.1", LONG)).collect();
            let flood: Vec<_> =
                (0..1_000).map(|address| begin(&bodies, flooding, &format!("2001:db8:0:{address}"), LONG)).collect();
            assert!(honest.iter().all(|body| code(body, NOW).is_none()), "{flooding:?}");
            assert!(flood.iter().any(|body| code(body, NOW).is_none()), "{flooding:?}");
        }
    }

    #[test]
    fn bodies_of_one_address_that_arrive_at_once_leave_those_that_never_arrive_behind() {
        let bodies = Bodies::default();
        let begin = |length| begin(&bodies, Class::Unverified, "", length);
        let slow: Vec<_> = (0..SMALL_MAX_COUNT).map(|_| begin(0)).collect();
        for _ in 0..2 * SMALL_MAX_COUNT {
            assert_eq!(code(&begin(100), NOW), None);
        }
        assert_eq!(slow.iter().filter(|body| code(body, NOW).is_some()).count(), 2);
    }

    #[test]
    fn beside_complete_bodies_long_ones_are_piped_and_short_ones_are_read() {
        const LONG: u64 = 1024 * 1024;
        let bodies = Bodies::default();
        let begin = |address, length| begin(&bodies, Class::Verified, address, length);
        let slow = begin("192.0.2.9", LONG);
        let mut complete = Vec::new();
        while bodies.have_room(LONG) {
            let body = begin("192.0.2.1", LONG);
            body.complete();
            complete.push(body);
        }
        assert_eq!(complete.len() as u64, EDGE_BODIES_MAX_BYTES / (LONG + EDGE_BODY_OVERHEAD_BYTES));
        assert!(bodies.have_room(1_000));
        let short: Vec<_> = (0..1_000).map(|_| begin("192.0.2.2", 1_000)).collect();
        assert!(complete.iter().chain(&short).chain([&slow]).all(|body| code(body, NOW).is_none()));
        complete.pop();
        assert!(bodies.have_room(LONG));
    }

    #[test]
    fn a_body_has_a_total_time() {
        let bodies = Bodies::default();
        let body = begin(&bodies, Class::Verified, "", 9);
        assert_eq!(code(&body, NOW + EDGE_BODY_MAX_SECONDS * 1_000 - 1), None);
        assert_eq!(code(&body, NOW + EDGE_BODY_MAX_SECONDS * 1_000), Some(ErrorCode::InvalidBody));
    }
}
