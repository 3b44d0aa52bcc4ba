//! Compares what `binlog` decodes with what a real MariaDB shows: `cargo test -p tests --test binlog`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and says what to run again"
)]

#[path = "../e2e/differential/dice.rs"]
#[expect(dead_code, reason = "the differential test makes more kinds of choices")]
mod dice;
mod kinds;
mod literals;
mod log_file;
mod random;
mod server_facts;
