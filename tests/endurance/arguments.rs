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
    /// One database, one origin, one edge and an S3 service, under mixed load with faults: memory, descriptors, threads
    /// and connections may not grow.
    Soak(Load),
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
    /// One server, behind one origin and one edge: a soak.
    #[value(skip)]
    Single,
}

impl Databases {
    /// Returns the numbers of databases, which is that of origins, and of edges.
    pub(crate) const fn machines(self) -> (usize, usize) {
        match self {
            Self::Galera | Self::Replicas => (3, 2),
            Self::Single => (1, 1),
        }
    }
}

/// The databases that an origin knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hosts {
    /// Its own first, then the others.
    All,
    /// Only its own.
    Own,
}

/// What both commands ask.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Length of the load in seconds.
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u32).range(5..=86_400))]
    pub(crate) seconds: u32,
    /// Seed of the order of faults and requests.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(2..=200))]
    pub(crate) callers: u32,
    /// The binary, in place of the one beside this program.
    #[arg(long)]
    pub(crate) selkie: Option<PathBuf>,
    /// Copy the logs of all programs to this directory at the end.
    #[arg(long)]
    pub(crate) logs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(flatten)]
    pub(crate) load: Load,
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
}

impl From<Load> for Cluster {
    /// Returns the smallest cluster, which a soak loads.
    fn from(load: Load) -> Self {
        Self { load, databases: Databases::Single, hosts: Hosts::Own, faults: Vec::new(), briefly: true }
    }
}

impl Cluster {
    pub(crate) fn is_soak(&self) -> bool {
        self.databases == Databases::Single
    }

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
