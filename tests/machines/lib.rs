//! What the end-to-end suite and the load programs start beside Selkie: child processes, single MariaDBs, a Galera
//! cluster, a primary with replicas. Knows nothing of Selkie's interface.
//!
//! Everything is private: it lives in temporary directories and on loopback, and ends with the process that started it.

#![allow(clippy::disallowed_methods, reason = "an answer of another type ends a test, by a panic as well")]

pub mod galera;
pub mod network;
pub mod process;
pub mod replicas;
pub mod scratch;
pub mod server;
