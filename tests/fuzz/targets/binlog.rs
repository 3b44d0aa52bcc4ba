//! Fuzzes the decoder of the binary log: any bytes, read as events.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::lay_out_where_asked(fuzz::log::seeds()),
    |bytes: &[u8]| fuzz::log::log(bytes)
);

/// Does nothing without the fuzzer, which `make fuzz` links.
#[cfg(not(fuzzing))]
fn main() {}
