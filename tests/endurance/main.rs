//! Tests an installation under load with faults. `cluster`: several databases, origins and edges
//! are killed, halted and cut off from each other; no acknowledged write may be lost or done twice,
//! and the feed of changes and a webhook must tell of every write.
//! `soak`: one database, one origin and one edge under mixed load; in addition, memory, file
//! descriptors, threads and connections may not grow.
//!
//! Everything is private to this process: it uses loopback or a network namespace of its own, and
//! temporary directories.

#![allow(clippy::disallowed_methods, reason = "an answer of another type ends a run, by a panic as well")]

mod arguments;
mod caller;
mod cluster;
mod copy;
mod faults;
mod follower;
mod followers;
mod growth;
mod installation;
mod mixture;
mod program;
mod random;
mod receiver;
mod s3;
mod tally;
mod verdict;
mod work;

use std::{
    io::Write as _,
    process::{ExitCode, ExitStatus},
};

use arguments::{Arguments, Command};
use clap::Parser as _;
use machines::{network, process};

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Command::Cluster(cluster) = &arguments.command
        && cluster.wants_network()
        && !network::is_own()
        && let Some(status) = network::enter()?
    {
        return Ok(code_of(status));
    }
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            result = run(arguments.command) => result,
            () = process::interrupted() => Err(anyhow::anyhow!("interrupted")),
        }
    })
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Cluster(asked) => cluster::run(&asked).await,
        Command::Soak(load) => cluster::run(&load.into()).await,
        Command::ServeS3(asked) => s3::serve(&asked).await.map(|()| ExitCode::SUCCESS),
    }
}

fn code_of(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Prints a line of progress or of the result.
fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
