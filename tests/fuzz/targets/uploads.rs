//! Fuzzes uploads: any bytes, read as the body of an upload or as the structure from which a body is written.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::lay_out_where_asked(fuzz::seeds::uploads()),
    |bytes: &[u8]| fuzz::upload::upload(bytes)
);

/// Does nothing without the fuzzer, which `make fuzz` links.
#[cfg(not(fuzzing))]
fn main() {}
