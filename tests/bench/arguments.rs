//! The command line. Every figure has an upper limit, so that no slip of the hand loads a machine for hours.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::{edge::Edge, growth::Growth, uploads::Uploads, workload::Workload};

/// Measure Selkie against the floor and against a hand-written server, on a private MariaDB, over loopback only.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compare: Compare,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the hand-written axum server that the comparison starts.
    ServeHandwritten(Serve),
    /// Measure uploads: one large file, then a hundred pictures beside other requests.
    Uploads(Uploads),
    /// Measure what the edge adds to a request, beside a worker that only passes it on.
    Edge(Edge),
    /// Measure how cost grows with rows, columns, callers, tables, keys and projects.
    Growth(Growth),
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=120))]
    pub(crate) seconds: u64,
    /// Keep-alive connections of the load (W4 and the million rows use one, the aggregate eight).
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// How often each contender is measured; medians are printed.
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u16).range(1..=15))]
    pub(crate) rounds: u16,
    /// Workloads to run (all, if none is named).
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Workload>,
    /// Contenders to run (all that can be started, if none is named).
    #[arg(long, value_delimiter = ',')]
    pub(crate) contenders: Vec<Contender>,
    /// MariaDB connections of the floor and of the hand-written server.
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u16).range(1..=128))]
    pub(crate) pool: u16,
    /// Requests a second at which to send (an open loop, latency counted from the moment at which a request was due)
    /// instead of as fast as answers come (a closed loop).
    #[arg(long, value_parser = value_parser!(u32).range(1..=200_000))]
    pub(crate) rate: Option<u32>,
    /// Also write every measurement and the medians to this file.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// The `selkie` binary (default: beside this one).
    #[arg(long)]
    pub(crate) selkie: Option<PathBuf>,
    /// A `dev.env` of an installation that already runs on this machine: its origin and its edge are measured too, with
    /// tables made in its project as database `<project>_bench`. Only latency and throughput, no CPU.
    #[arg(long)]
    pub(crate) running: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// The bare driver, without HTTP.
    Floor,
    /// axum + mysql_async, rows collected as `serde_json::Value`.
    Values,
    /// axum + mysql_async, rows written straight into a streamed body.
    Streamed,
    /// Selkie's origin, started here.
    Selkie,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Loopback address to listen on; port 0 takes a free one. The address is printed as the first line.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// MariaDB's socket.
    #[arg(long)]
    pub(crate) socket: PathBuf,
    /// MariaDB connections at most.
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u16).range(1..=128))]
    pub(crate) pool: u16,
    #[arg(long, value_enum)]
    pub(crate) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// All rows into a `serde_json::Value`, then into text.
    Values,
    /// Each row into bytes as it comes, each full buffer to the caller.
    Streamed,
}
