//! The end-to-end suite: tests every promise of the interface, through both hosts, with a real MariaDB.
//!
//! One service runs for all cases (see `service.rs`), and each case creates its own tables. After the last case the
//! service is stopped, and its log and files are checked. Cases know only the API and not the implementation (except
//! `architecture.rs`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says why on the terminal"
)]
#![allow(
    clippy::too_many_lines,
    clippy::needless_pass_by_value,
    reason = "tables of requests are long, and read best as literals"
)]

#[macro_use]
mod case;
mod fake_origin;
mod host;
mod issuer;
mod ledger;
mod raw;
mod scratch;
mod second_origin;
mod service;
mod test_db;
mod webhooks;
mod worker;

mod adopted;
mod architecture;
mod auth_matrix;
mod backup;
mod batch;
mod changes;
mod cluster;
mod codes;
mod console;
mod differential;
mod docs;
mod edge;
mod envelope;
mod forged;
mod formats;
mod freshness;
mod heads;
mod health_cors;
mod installation;
mod isolation;
mod keys;
mod limits;
mod malformed_input;
mod management;
mod mcp;
mod media;
mod openapi;
mod pools;
mod properties;
mod protocol;
mod records;
mod reflected_input;
mod roles;
mod schema;
mod service_manager;
mod shares;
mod smuggling;
mod sql;
mod streaming;
mod tls;
mod transfer;
mod typescript;
mod validators;
mod values;
mod webhook_cli;

#[path = "../faults/exactly_once.rs"]
mod exactly_once;
#[path = "../faults/faults.rs"]
mod faults;
#[path = "../faults/images.rs"]
mod images;
#[path = "../faults/media.rs"]
mod media_faults;
#[path = "../faults/resumable.rs"]
mod resumable;
#[path = "../faults/streams.rs"]
mod streams;

use libtest_mimic::{Arguments, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // More threads than cores, because cases mostly wait for timeouts, processes and the disk.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * cores);
    let scratch = match machines::scratch::directory() {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("no directory for temporary files: {error}");
            return ExitCode::FAILURE;
        }
    };
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Prints only a panic's message, without the stack.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let mut trials: Vec<_> = inventory::iter::<case::Case>().flat_map(case::trials).collect();
    // Cases that start services of their own are the slowest: they begin first.
    trials.sort_by(|a, b| b.name().cmp(a.name()));
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let conclusion = run(&arguments, trials);
    let faults = service::stop_shared().into_iter().chain(ledger::verdict(whole)).collect::<Vec<_>>();
    drop(scratch);
    for fault in &faults {
        println!("after the last case: {fault}\n");
    }
    if conclusion.has_failed() || !faults.is_empty() { ExitCode::from(101) } else { ExitCode::SUCCESS }
}
