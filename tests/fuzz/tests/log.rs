//! Checks the invariants of the decoder for logs of MariaDB that were cut off or changed. There is only one test, since it
//! measures memory.

/// Number of changed copies of each log; they take some seconds in all.
const COPIES: u64 = 2_000;

#[test]
fn broken_logs_are_refused_within_bounded_memory() {
    let unchecked = fuzz::log::seeds();
    for log in unchecked.iter().map(Vec::as_slice).chain(fuzz::log::written()) {
        fuzz::log::cut_log(log);
    }
    for log in &unchecked {
        for seed in 0..COPIES {
            let mut dice = seed;
            let mut copy = log.clone();
            for _ in 0..=below(&mut dice, 4) {
                let at = below(&mut dice, copy.len());
                copy[at] = match below(&mut dice, 4) {
                    0 => 0xFF,
                    1 => 0,
                    _ => copy[at] ^ 1 << below(&mut dice, 8),
                };
            }
            fuzz::log::log(&copy);
        }
    }
}

/// The steps of SplitMix64.
fn below(dice: &mut u64, count: usize) -> usize {
    *dice = dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*dice ^ *dice >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ mixed >> 31) % count as u64) as usize
}
