//! Fuzzes the encodings of a read, made from any bytes.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|read: fuzz::structure::Read| fuzz::spelling::agree(&read));

/// Does nothing without the fuzzer, which `make fuzz` links.
#[cfg(not(fuzzing))]
fn main() {}
