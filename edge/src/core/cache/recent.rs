//! A map from keys to the times of their last events. Its size is bounded: the oldest keys are evicted.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// Maximum number of keys in each of the two generations. A key takes at most 60 bytes, so 250 kB in total.
const CAPACITY: usize = 2_048;

/// The time of each key's last event, in milliseconds since 1970. When the young generation is full, it replaces the
/// old one.
#[derive(Debug)]
pub(super) struct Recent<K> {
    young: HashMap<K, u64>,
    old: HashMap<K, u64>,
    evicted_ms: Option<u64>,
}

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), evicted_ms: None }
    }
}

impl<K: Eq + Hash> Recent<K> {
    /// Records an event of a key, unless a later event is already recorded.
    pub(super) fn insert(&mut self, key: K, at_ms: u64) {
        if self.young.len() >= CAPACITY {
            let evicted = mem::replace(&mut self.old, mem::take(&mut self.young));
            self.evicted_ms = self.evicted_ms.max(evicted.into_values().max());
        }
        let last_ms = self.young.entry(key).or_insert(at_ms);
        *last_ms = at_ms.max(*last_ms);
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Returns the time of the key's last event; `None` if there was none, or it was removed or evicted.
    pub(super) fn last_ms(&self, key: &K) -> Option<u64> {
        self.young.get(key).max(self.old.get(key)).copied()
    }

    /// Returns the latest time of an evicted event; `None` if no event was evicted.
    pub(super) fn evicted_ms(&self) -> Option<u64> {
        self.evicted_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_a_key_counts_and_memory_is_bounded() {
        let mut recent = Recent::default();
        assert_eq!((recent.last_ms(&70_000), recent.evicted_ms()), (None, None));
        recent.insert(70_000, 100);
        recent.insert(70_000, 90);
        assert_eq!(recent.last_ms(&70_000), Some(100));
        recent.remove(&70_000);
        assert_eq!(recent.last_ms(&70_000), None);
        for number in 0..10_000 {
            recent.insert(number, 200 + number);
        }
        assert!(recent.young.len() + recent.old.len() <= 2 * CAPACITY);
        assert_eq!(recent.last_ms(&9_999), Some(10_199));
        let evicted = (0..10_000).filter(|number| recent.last_ms(number).is_none()).max();
        assert_eq!(recent.evicted_ms(), evicted.map(|number| 200 + number));
    }
}
