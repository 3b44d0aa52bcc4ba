//! Starts the servers that the end-to-end suite and the load programs need beside Selkie: child
//! processes, a Galera cluster, a primary with replicas. Must not know Selkie's interface.
//!
//! Everything is private: it uses temporary directories, and loopback or a network namespace, and
//! ends with the process that started it.

#![allow(clippy::disallowed_methods, reason = "an answer of another type ends a test, by a panic as well")]

pub mod galera;
pub mod logged;
pub mod network;
pub mod process;
pub mod replicas;
pub mod scratch;
pub mod server;
pub mod signature;
