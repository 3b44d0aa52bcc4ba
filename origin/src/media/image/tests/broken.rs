//! Cut, corrupted and hostile files: refused, soon, in bounded memory, never with a panic.

use super::samples::one_of_each;
use super::{ImageFault, examined};

#[test]
fn whole_files_are_accepted() {
    for (name, bytes) in one_of_each() {
        assert!(examined(&bytes).is_ok(), "{name}");
    }
}

#[test]
fn files_cut_anywhere_are_refused() {
    for (name, bytes) in one_of_each() {
        let step = (bytes.len() / 60).max(1);
        let near_the_end = (1..12).map(|less| bytes.len().saturating_sub(less));
        for length in (0..bytes.len()).step_by(step).chain(near_the_end) {
            let result = examined(&bytes[..length]);
            assert!(
                matches!(
                    result,
                    Err(ImageFault::Cut | ImageFault::Corrupt | ImageFault::Unsupported)
                ),
                "{name} cut to {length} of {}: {result:?}",
                bytes.len()
            );
        }
    }
}
