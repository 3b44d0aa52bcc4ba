//! Fuzzes role files of any bytes.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::lay_out_where_asked(fuzz::seeds::roles()),
    |bytes: &[u8]| fuzz::role::role(bytes)
);

/// Does nothing without the fuzzer, which `make fuzz` links.
#[cfg(not(fuzzing))]
fn main() {}
