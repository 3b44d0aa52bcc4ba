//! A name for what was understood, made of all of it: two values of a type have one fingerprint only if they mean
//! the same.
//!
//! [`std::hash::Hash`] says what of a value counts; here it is fed to SHA-256, which nobody finds two inputs for.
//! The standard library's and derived implementations are prefix-free, so that no two values of one type run into each other; those of two types may.
//! A fingerprint names things for a while, as in a cache; it differs between targets and versions, and is never
//! stored for good.

use sha2::{Digest, Sha256};
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

/// The SHA-256 of what a value hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a value.
    #[must_use]
    pub fn of<T: Hash + ?Sized>(value: &T) -> Self {
        let mut sink = Sink(Sha256::new());
        value.hash(&mut sink);
        Self(sink.0.finalize().into())
    }

    /// Its 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
    }
}

/// Hashes items whose order has no meaning.
pub(crate) fn unordered<T: Hash, H: Hasher>(items: &[T], state: &mut H) {
    // A heap sorts as well, and adds less to a worker's size.
    let prints: BinaryHeap<Fingerprint> = items.iter().map(Fingerprint::of).collect();
    prints.into_sorted_vec().hash(state);
}

struct Sink(Sha256);

impl Hasher for Sink {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Asked for by hash tables alone, which this one never meets.
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
        // The SHA-256 of no bytes.
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Fingerprint::of(&Nothing).to_hex(), expected);
    }
}
