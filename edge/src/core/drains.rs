//! Limits how many bodies of refused requests are drained (read and discarded) at the same time. Each holds a
//! connection and some 150 KB of the runtime's memory. Without draining, the runtime reads at most
//! [`EDGE_UNDRAINED_BODY_MAX_BYTES`] for a second, then closes the connection.

use super::incoming_request::BodyLength;
use shared::limits::{
    EDGE_DRAIN_MAX_MS, EDGE_DRAINS_MAX_COUNT, EDGE_DRAINS_PER_ADDRESS_MAX_COUNT, EDGE_UNDRAINED_BODY_MAX_BYTES,
};
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Debug, Default)]
pub struct Drains {
    last: u64,
    entries: Vec<CountedDrain>,
}

#[derive(Debug)]
struct CountedDrain {
    number: u64,
    address: Box<str>,
    /// When the drain no longer counts, in ms since 1970: the runtime can abandon a drain without dropping it.
    ends: u64,
}

/// A body that is being drained. After this value is dropped, the body no longer counts.
#[derive(Debug)]
pub struct Drain {
    drains: Rc<RefCell<Drains>>,
    number: u64,
}

impl Drain {
    /// Counts a body that is drained from `now` on, in ms since 1970. `address` is the result of
    /// `caller::address_group`. Returns `None` if the body must not be drained: it is short, or too many others are
    /// drained.
    pub fn begin(drains: &Rc<RefCell<Drains>>, length: BodyLength, address: Box<str>, now: u64) -> Option<Self> {
        if matches!(length, BodyLength::Known(..=EDGE_UNDRAINED_BODY_MAX_BYTES)) {
            return None;
        }
        let mut all = drains.borrow_mut();
        all.entries.retain(|entry| entry.ends > now);
        let of_address = all.entries.iter().filter(|entry| entry.address == address).count();
        if all.entries.len() >= EDGE_DRAINS_MAX_COUNT || of_address >= EDGE_DRAINS_PER_ADDRESS_MAX_COUNT {
            return None;
        }
        all.last += 1;
        let number = all.last;
        all.entries.push(CountedDrain { number, address, ends: now + EDGE_DRAIN_MAX_MS });
        Some(Self { drains: Rc::clone(drains), number })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.drains.borrow_mut().entries.retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn begin(drains: &Rc<RefCell<Drains>>, address: usize, now: u64) -> Option<Drain> {
        Drain::begin(drains, BodyLength::Unknown, address.to_string().into(), now)
    }

    #[test]
    fn an_address_and_all_together_have_a_limit() {
        let drains = Rc::default();
        let mut begun = Vec::new();
        for address in 0..EDGE_DRAINS_MAX_COUNT / EDGE_DRAINS_PER_ADDRESS_MAX_COUNT {
            begun.extend((0..EDGE_DRAINS_PER_ADDRESS_MAX_COUNT).map(|_| begin(&drains, address, NOW).unwrap()));
            assert!(begin(&drains, address, NOW).is_none());
        }
        assert!(begin(&drains, 99, NOW).is_none());
        begun.pop();
        assert!(begin(&drains, 99, NOW).is_some());
        begun.into_iter().for_each(std::mem::forget);
        assert!(begin(&drains, 99, NOW + EDGE_DRAIN_MAX_MS).is_some());
        assert!(drains.borrow().entries.is_empty());
    }

    #[test]
    fn a_short_body_is_left_to_the_runtime() {
        let begin = |bytes| Drain::begin(&Rc::default(), BodyLength::Known(bytes), "".into(), NOW).is_some();
        assert!(!begin(EDGE_UNDRAINED_BODY_MAX_BYTES));
        assert!(begin(EDGE_UNDRAINED_BODY_MAX_BYTES + 1));
    }
}
