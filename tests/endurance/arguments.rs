//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::{faults::Kind, s3::ServeS3};

#[derive(Debug, Parser)]
#[command(about = "Load with faults: what is acknowledged must last, and memory must not grow")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Three databases, three origins, two edges and an S3 service, under load while they fail.
    Cluster(Cluster),
    /// Serves S3 from a directory; the other commands start it.
    #[command(hide = true)]
    ServeS3(ServeS3),
}

/// The kind of database cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Databases {
    /// Three Galera nodes.
    Galera,
    /// A primary and two replicas, which serve reads.
    Replicas,
}

/// The databases that an origin knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hosts {
    /// Its own first, then the others.
    All,
    /// Only its own.
    Own,
}

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Length of the load in seconds.
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u32).range(5..=86_400))]
    pub(crate) seconds: u32,
    /// Seed of the order of faults and requests.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(2..=200))]
    pub(crate) callers: u32,
    #[arg(long, value_enum, default_value_t = Databases::Galera)]
    pub(crate) databases: Databases,
    #[arg(long, value_enum, default_value_t = Hosts::All)]
    pub(crate) hosts: Hosts,
    /// Kinds of faults, separated by commas; all that fit the databases by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) faults: Vec<Kind>,
    /// Judge correctness only, not how long the installation was unavailable: for busy machines.
    #[arg(long)]
    pub(crate) briefly: bool,
    /// The binary, in place of the one beside this program.
    #[arg(long)]
    pub(crate) selkie: Option<PathBuf>,
    /// Copy the logs of all programs to this directory at the end.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
}

impl Cluster {
    /// Returns the kinds of faults to choose from.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let asked = if self.faults.is_empty() { Kind::value_variants() } else { &self.faults };
        asked.iter().copied().filter(|kind| kind.fits(self.databases)).collect()
    }

    /// Returns whether a kind of fault needs a network of its own.
    pub(crate) fn wants_network(&self) -> bool {
        self.kinds().iter().any(|kind| kind.needs_network())
    }
}
