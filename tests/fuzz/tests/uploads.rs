//! Checks the invariants for random uploads and the fuzzer's seeds. There is only one test, since it measures memory.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Number of uploads of each kind; they take some seconds in all.
const CASES: u32 = 500;
/// Maximum number of random bytes for an upload.
const BYTES_MAX_COUNT: usize = 400;

#[test]
fn uploads_are_read_as_a_whole_parse_reads_them_in_whatever_pieces_and_in_constant_memory() {
    for seed in fuzz::seeds::uploads() {
        fuzz::upload::upload(&seed);
    }
    for way in 0..4u8 {
        // A runner counts cases over all its runs, so each kind of upload has its own runner.
        let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
        let bytes = proptest::collection::vec(any::<u8>(), 0..BYTES_MAX_COUNT);
        let checked = runner.run(&(any::<u64>(), bytes), |(seed, bytes)| {
            fuzz::upload::upload(&[&[way], &seed.to_le_bytes()[..], &bytes].concat());
            Ok(())
        });
        if let Err(fault) = checked {
            panic!("{fault}");
        }
    }
}
