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
    /// Loads three databases, three origins, two edges and an S3 service while they fail.
    Cluster(Cluster),
    /// Loads one database, one origin, one edge and an S3 service with a mixed load and faults:
    /// memory, descriptors, threads and connections may not grow.
    Soak(Load),
    /// Serves S3 from a directory; the other commands start it.
    #[command(hide = true)]
    ServeS3(ServeS3),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Databases {
    Galera,
    Replicas,
    /// One server, for a soak with one origin and one edge.
    #[value(skip)]
    Single,
}

impl Databases {
    pub(crate) const fn machines(self) -> (usize, usize) {
        match self {
            Self::Galera | Self::Replicas => (3, 2),
            Self::Single => (1, 1),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hosts {
    /// All nodes, in another order for each origin; or the primary and its replicas.
    All,
    /// Only the origin's own node; or only the primary.
    Own,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Length of the load in seconds.
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u32).range(5..=86_400))]
    pub(crate) seconds: u32,
    /// Seed of the random order of faults and requests.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(2..=200))]
    pub(crate) callers: u32,
    /// The `selkie` binary (default: beside this program).
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
    /// Kinds of faults, separated by commas (default: all that are possible with these databases).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) faults: Vec<Kind>,
    /// Check correctness only, not how long the installation was unavailable: for busy machines.
    #[arg(long)]
    pub(crate) briefly: bool,
}

impl From<Load> for Cluster {
    fn from(load: Load) -> Self {
        Self { load, databases: Databases::Single, hosts: Hosts::Own, faults: Vec::new(), briefly: true }
    }
}

impl Cluster {
    pub(crate) fn is_soak(&self) -> bool {
        self.databases == Databases::Single
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let asked = if self.faults.is_empty() { Kind::value_variants() } else { &self.faults };
        asked.iter().copied().filter(|kind| kind.fits(self.databases)).collect()
    }

    /// Returns whether any of the faults needs a virtual network.
    pub(crate) fn wants_network(&self) -> bool {
        self.kinds().iter().any(|kind| kind.needs_network())
    }
}
