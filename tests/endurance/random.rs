//! A generator of pseudo-random numbers (SplitMix64): the same seed gives the same numbers.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Returns a duration of at least `least` and less than `most` milliseconds.
    pub(crate) fn duration(&mut self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}
