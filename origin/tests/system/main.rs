//! Tests of installations, projects, accounts, keys, media and `doctor`, against a real MariaDB that the tests start.

// All of this is test code, but clippy recognises only the test functions; tests may panic on unexpected types.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod accounts;
mod databases;
mod doctor;
mod installation;
mod keys;
mod media;
mod migrations;
mod receipts;
mod roles;
mod server;
