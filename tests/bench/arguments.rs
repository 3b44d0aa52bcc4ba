//! The command line. Every number has an upper limit, so that a typing error can't load a machine for hours.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::{changes::Changes, edge::Edge, growth::Growth, peers, uploads::Uploads, workload::Workload};

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
    ServeHandwritten(Serve),
    /// Run its twin without a database, which answers the same record to everybody.
    ServeHello {
        /// Loopback address to listen on; port 0 takes a free one. The address is printed as the first line.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    Uploads(Uploads),
    /// Measure what the edge adds to a request, beside a worker that only passes it on.
    Edge(Edge),
    /// Compare Selkie's origin with fastify + mysql2 and with xmysql, which npm installs below `target/`.
    Peers(Compare),
    Growth(Growth),
    Changes(Changes),
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u64).range(1..=120))]
    pub(crate) seconds: u64,
    /// Keep-alive connections of the load (long answers use one, batches four, the aggregate eight, the storm a
    /// thousand).
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u16).range(1..=128))]
    pub(crate) connections: u16,
    /// How often each contender is measured; medians are printed.
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u16).range(1..=15))]
    pub(crate) rounds: u16,
    /// Workloads to run (all, if none is named).
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Workload>,
    /// Contenders to run (all but `values`, if none is named).
    #[arg(long, value_delimiter = ',')]
    pub(crate) contenders: Vec<Contender>,
    /// MariaDB connections of the floor and of the hand-written server.
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u16).range(1..=128))]
    pub(crate) pool: u16,
    /// Requests to send per second, however slow the answers are (an open loop: latency counts from the moment at which
    /// a request was due). No other rate is measured. Without it: as fast as answers come, and then, for some workloads,
    /// at about half of the slowest contender's throughput.
    #[arg(long, value_parser = value_parser!(u32).range(1..=200_000))]
    pub(crate) rate: Option<u32>,
    /// Send each request when the last is answered (a closed loop), and omit the measurements at a fixed rate.
    #[arg(long, conflicts_with = "rate")]
    pub(crate) closed: bool,
    /// Where `bench.json` and `requests.txt` are written (default: `target/bench`).
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
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
    /// The bare driver, without HTTP: with as many connections as the servers have, and with as many as there are
    /// callers.
    Floor,
    /// axum without a database: the ceiling of any HTTP server.
    Hello,
    /// axum + mysql_async, rows collected as `serde_json::Value`.
    Values,
    Streamed,
    Selkie,
    /// A worker of ten lines of JavaScript that only forwards to Selkie's origin, in workerd.
    PassThrough,
    Edge,
    /// fastify and mysql2, written by hand; only if named.
    Fastify,
    /// xmysql; only if named.
    Xmysql,
}

impl Contender {
    /// Returns whether the contender is measured when the contenders `asked` were named.
    pub(crate) fn is_wanted(self, asked: &[Self]) -> bool {
        let is_usual = !matches!(self, Self::Values | Self::Fastify | Self::Xmysql);
        asked.contains(&self) || (asked.is_empty() && is_usual)
    }
}

impl Compare {
    /// Sets the defaults for the comparison with other projects' servers: the contenders and workloads, unless the
    /// arguments name some, and a closed loop.
    pub(crate) fn with_peers(mut self) -> Self {
        if self.contenders.is_empty() {
            self.contenders = vec![Contender::Selkie, Contender::Fastify, Contender::Xmysql];
        }
        if self.only.is_empty() {
            self.only = peers::WORKLOADS.to_vec();
        }
        self.closed = true;
        self
    }
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
    Values,
    /// Writes each row as bytes when it is read, and sends each full buffer.
    Streamed,
}
