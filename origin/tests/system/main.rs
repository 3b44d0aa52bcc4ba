//! Projects, accounts, keys, migrations and the doctor, against a real MariaDB that the tests start.

// This whole program is a test, its helpers included; clippy only knows its test functions for such.
// A panic at an answer of another type than was asked for is what a test wants.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod accounts;
mod databases;
mod doctor;
mod installation;
mod keys;
mod media;
mod migrations;
mod receipts;
mod server;
