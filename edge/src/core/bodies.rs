//! Bounds the memory of the bodies that the edge reads as a whole. A client address may use all memory of incomplete
//! bodies. If that does not suffice, the oldest body of the address with the most is given up, so that bodies that never
//! arrive lock nobody out. Complete bodies are kept until their requests are answered; a long one that would not fit
//! beside them is piped instead.

use super::groups::Groups;
use shared::error::{ErrorCode, Problem};
use shared::limits::{EDGE_BODIES_MAX_BYTES, EDGE_BODY_MAX_SECONDS, EDGE_BODY_OVERHEAD_BYTES};
use std::cell::RefCell;

#[derive(Debug, Default)]
pub struct Bodies {
    reading: RefCell<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    /// In the order of their numbers, which is that of their arrival.
    entries: Vec<Entry>,
    /// The bytes of the incomplete bodies of each client address.
    addresses: Groups<u64>,
    /// The bytes of the incomplete bodies.
    arriving: u64,
    /// The bytes of the complete bodies.
    complete: u64,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// The group of an incomplete body.
    address: Option<usize>,
    bytes: u64,
}

/// A body that is being read, and then kept. Dropping this value ends the count.
#[derive(Debug)]
pub struct ReadBody<'a> {
    bodies: &'a Bodies,
    number: u64,
    /// In ms since 1970.
    began: u64,
}

impl Bodies {
    /// Counts a body of `length` bytes that is being read from `now` on, in ms since 1970. `address` is the group of the
    /// client's address. Returns `None` if the body is long, and must be piped since complete bodies use the memory.
    pub fn begin(&self, address: &str, length: u64, now: u64) -> Option<ReadBody<'_>> {
        let mut reading = self.reading.borrow_mut();
        let bytes = length + EDGE_BODY_OVERHEAD_BYTES;
        if length > EDGE_BODY_OVERHEAD_BYTES && reading.complete + bytes > EDGE_BODIES_MAX_BYTES {
            return None;
        }
        let address = reading.addresses.index(address);
        reading.last += 1;
        let number = reading.last;
        reading.entries.push(Entry { number, address: Some(address), bytes });
        *reading.addresses.of(address) += bytes;
        reading.arriving += bytes;
        while reading.arriving > EDGE_BODIES_MAX_BYTES {
            reading.give_up();
        }
        Some(ReadBody { bodies: self, number, began: now })
    }
}

impl Reading {
    /// Removes the oldest incomplete body of the address with the most bytes.
    fn give_up(&mut self) {
        let most = self.addresses.used().max().copied();
        let addresses = &mut self.addresses;
        let is_of_most = |entry: &Entry| entry.address.map(|address| *addresses.of(address)) == most;
        if let Some(oldest) = self.entries.iter().position(is_of_most) {
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
            *self.addresses.of(address) -= entry.bytes;
            self.arriving -= entry.bytes;
            self.complete += entry.bytes;
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

impl ReadBody<'_> {
    /// Ends the time in which the body may be given up: it has arrived.
    pub fn complete(&self) {
        let mut reading = self.bodies.reading.borrow_mut();
        if let Some(index) = reading.index_of(self.number) {
            reading.complete(index);
        }
    }

    /// Checks whether reading may go on. Ask repeatedly while the body is incomplete.
    ///
    /// # Errors
    /// `invalid_body` if the body takes too long; `overloaded` if it was given up for others.
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
    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const SMALL_MAX_COUNT: u64 = EDGE_BODIES_MAX_BYTES / EDGE_BODY_OVERHEAD_BYTES;

    fn code(body: &ReadBody<'_>, now: u64) -> Option<ErrorCode> {
        body.check(now).err().map(|problem| problem.code())
    }

    #[test]
    fn the_oldest_body_of_the_address_with_the_most_is_given_up() {
        let bodies = Bodies::default();
        let begin = |address, length| bodies.begin(address, length, NOW).unwrap();
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
    fn bodies_of_one_address_that_arrive_at_once_leave_those_that_never_arrive_behind() {
        let bodies = Bodies::default();
        let slow: Vec<_> = (0..SMALL_MAX_COUNT).map(|_| bodies.begin("", 0, NOW).unwrap()).collect();
        for _ in 0..2 * SMALL_MAX_COUNT {
            assert_eq!(code(&bodies.begin("", 100, NOW).unwrap(), NOW), None);
        }
        assert_eq!(slow.iter().filter(|body| code(body, NOW).is_some()).count(), 2);
    }

    #[test]
    fn beside_complete_bodies_long_ones_are_piped_and_short_ones_are_read() {
        const LONG: u64 = 1024 * 1024;
        let bodies = Bodies::default();
        let slow = bodies.begin("192.0.2.9", LONG, NOW).unwrap();
        let mut complete = Vec::new();
        while let Some(body) = bodies.begin("192.0.2.1", LONG, NOW) {
            body.complete();
            complete.push(body);
        }
        assert_eq!(complete.len() as u64, EDGE_BODIES_MAX_BYTES / (LONG + EDGE_BODY_OVERHEAD_BYTES));
        let short: Vec<_> = (0..1_000).map(|_| bodies.begin("192.0.2.2", 1_000, NOW).unwrap()).collect();
        assert!(complete.iter().chain(&short).chain([&slow]).all(|body| code(body, NOW).is_none()));
        complete.pop();
        assert!(bodies.begin("192.0.2.1", LONG, NOW).is_some());
    }

    #[test]
    fn a_body_has_a_total_time() {
        let bodies = Bodies::default();
        let body = bodies.begin("", 9, NOW).unwrap();
        assert_eq!(code(&body, NOW + EDGE_BODY_MAX_SECONDS * 1_000 - 1), None);
        assert_eq!(code(&body, NOW + EDGE_BODY_MAX_SECONDS * 1_000), Some(ErrorCode::InvalidBody));
    }
}
