//! Checks the invariants for the fuzzer's role files, unchanged and with random changes.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Number of changed role files; they take some seconds.
const CASES: u32 = 2_000;

/// A change of a role file: at this place, remove this many bytes and insert a word.
type Change = (prop::sample::Index, usize, prop::sample::Index);

const WORDS: [&str; 22] = [
    "",
    "{}",
    "[]",
    "true",
    "false",
    "null",
    "7",
    "-1",
    "1e9",
    "\"",
    "\\",
    "\u{1b}",
    "\u{202e}",
    "\"*\"",
    "\"demo.posts\"",
    "\"demo.*\"",
    "{\"claim\":\"sub\"}",
    "{\"claim\":7}",
    "\"rows\":",
    "\"set\":",
    "\"omit\":",
    "\"fields\":",
];

#[test]
fn role_files_are_refused_clearly_or_mean_the_same_each_time() {
    let seeds = fuzz::seeds::roles();
    for seed in seeds {
        fuzz::role::role(seed.as_bytes());
    }
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let changes =
        prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, any::<prop::sample::Index>()), 0..4);
    let checked = runner.run(&(0..seeds.len(), changes), |(seed, changes): (usize, Vec<Change>)| {
        let mut bytes = seeds[seed].as_bytes().to_vec();
        for (at, removed, word) in changes {
            let from = at.index(bytes.len() + 1);
            let to = (from + removed).min(bytes.len());
            bytes.splice(from..to, WORDS[word.index(WORDS.len())].bytes());
        }
        fuzz::role::role(&bytes);
        Ok(())
    });
    if let Err(fault) = checked {
        panic!("{fault}");
    }
}
