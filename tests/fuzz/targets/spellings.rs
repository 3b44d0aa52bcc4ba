//! A read's structure, spelled in every way.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|read: fuzz::structure::Read| fuzz::spelling::agree(&read));

/// Without the fuzzer there is nothing to do: `make fuzz` builds it in.
#[cfg(not(fuzzing))]
fn main() {}
