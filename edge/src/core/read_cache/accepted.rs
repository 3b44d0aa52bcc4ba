//! The keys that the origin took lately, in bounded memory.

use std::collections::HashMap;
use std::mem;
use uuid::Uuid;

/// Seconds for which a key that the origin took is given kept answers: so much later than at the origin a
/// revocation takes effect here.
pub(super) const ACCEPTED_SECONDS: u64 = 60;

/// Keys of one generation (two live): 24 bytes each, so 100 kB at most. A key that is forgotten is asked about again.
const CAPACITY: usize = 2_048;

/// Keys, each with the second since 1970 in which the origin took it.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    young: HashMap<Uuid, u64>,
    old: HashMap<Uuid, u64>,
}

impl Accepted {
    pub(super) fn insert(&mut self, key_id: Uuid, at: u64) {
        if self.young.len() >= CAPACITY {
            self.old = mem::take(&mut self.young);
        }
        let last = self.young.entry(key_id).or_insert(at);
        *last = at.max(*last);
    }

    pub(super) fn remove(&mut self, key_id: Uuid) {
        self.young.remove(&key_id);
        self.old.remove(&key_id);
    }

    pub(super) fn holds(&self, key_id: Uuid, now: u64) -> bool {
        let at = self.young.get(&key_id).or_else(|| self.old.get(&key_id));
        at.is_some_and(|at| now < at.saturating_add(ACCEPTED_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_for_a_minute_and_in_bounded_memory() {
        let mut accepted = Accepted::default();
        let key = Uuid::from_u128(7);
        assert!(!accepted.holds(key, 100));
        accepted.insert(key, 100);
        assert!(accepted.holds(key, 159) && !accepted.holds(key, 160));
        // An answer that was asked for earlier and came later takes nothing back.
        accepted.insert(key, 90);
        assert!(accepted.holds(key, 159));
        accepted.remove(key);
        assert!(!accepted.holds(key, 101));
        for number in 0..10_000 {
            accepted.insert(Uuid::from_u128(number), 100);
        }
        assert!(accepted.young.len() + accepted.old.len() <= 2 * CAPACITY);
        assert!(accepted.holds(Uuid::from_u128(9_999), 100));
    }
}
