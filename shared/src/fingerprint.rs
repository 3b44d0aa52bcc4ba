//! Cache keys for parsed values: SHA-256 of the bytes that [`std::hash::Hash`] writes. Values of one type have the same
//! fingerprint only if their meaning is the same; values of different types may collide. Fingerprints differ between
//! targets and versions, so they must not be stored permanently.

use sha2::{Digest, Sha256};
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub fn of<T: Hash + ?Sized>(value: &T) -> Self {
        let mut sink = Sink(Sha256::new());
        value.hash(&mut sink);
        Self(sink.0.finalize().into())
    }

    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Hashes the items so that their order makes no difference.
pub(crate) fn unordered<T: Hash, H: Hasher>(items: &[T], state: &mut H) {
    // A heap adds less code to the edge's wasm than a sort.
    let prints: BinaryHeap<Fingerprint> = items.iter().map(Fingerprint::of).collect();
    prints.into_sorted_vec().hash(state);
}

struct Sink(Sha256);

impl Hasher for Sink {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns 0: the result is not used, since only hash tables call `finish`.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_run_into_each_other_do_not() {
        let prints = [
            Fingerprint::of(&("ab", Some("c"), vec!["d"])),
            Fingerprint::of(&("a", Some("bc"), vec!["d"])),
            Fingerprint::of(&("ab", None::<&str>, vec!["c", "d"])),
            Fingerprint::of(&("ab", Some("c"), vec!["", "d"])),
            Fingerprint::of(&("ab", Some("c"), vec!["d", ""])),
        ];
        for (at, one) in prints.iter().enumerate() {
            assert!(prints[at + 1..].iter().all(|other| one != other), "{at}");
        }
    }

    #[test]
    fn it_is_written_in_hexadecimal() {
        struct Nothing;
        impl Hash for Nothing {
            fn hash<H: Hasher>(&self, _: &mut H) {}
        }
        // The SHA-256 of empty input.
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Fingerprint::of(&Nothing).to_hex(), expected);
    }
}
