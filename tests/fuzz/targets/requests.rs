//! Fuzzes requests: any bytes, read as a request.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::seeds::lay_out_where_asked(fuzz::seeds::requests()),
    |bytes: &[u8]| fuzz::check::request(bytes)
);

/// Does nothing without the fuzzer, which `make fuzz` links.
#[cfg(not(fuzzing))]
fn main() {}
