//! The kinds of faults: how each is made and ended.

use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use machines::{
    galera::Galera,
    network::{Link, Network},
    replicas::Replicated,
    server::Server,
};
use mysql_async::prelude::Queryable as _;
use rustix::process::Signal;
use tokio::task::JoinHandle;

use crate::{
    arguments::Databases,
    growth::{self, Sample},
    program::Program,
};

/// The end of a statement on all client connections, except the connection that runs it.
pub(crate) const CONNECTIONS: &str = "FROM information_schema.processlist \
     WHERE id <> CONNECTION_ID() AND user NOT IN ('system user', 'event_scheduler')";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    NodeKilled,
    NodeHalted,
    /// The other nodes can't reach the node; the origins can.
    NodeCutOff,
    /// The origins can't reach the node; the other nodes can.
    NodeUnreachable,
    OriginKilled,
    OriginHalted,
    OriginUnreachable,
    EdgeKilled,
    EdgeHalted,
    S3Killed,
    S3Halted,
    ReplicaKilled,
    ReplicaHalted,
    /// The replica receives transactions but does not apply them.
    ReplicaBehind,
    /// The primary is killed and started again; no replica takes over.
    PrimaryKilled,
    /// All connections of the only database are killed.
    ConnectionsKilled,
}

impl Kind {
    /// Returns whether the fault is possible with these databases. A soak never kills or halts its
    /// origin and edge, since it measures their memory.
    pub(crate) const fn fits(self, databases: Databases) -> bool {
        match self {
            Self::ConnectionsKilled => matches!(databases, Databases::Single),
            Self::PrimaryKilled => matches!(databases, Databases::Replicas | Databases::Single),
            Self::S3Killed => true,
            Self::NodeKilled | Self::NodeHalted | Self::NodeCutOff | Self::NodeUnreachable => {
                matches!(databases, Databases::Galera)
            }
            Self::ReplicaKilled | Self::ReplicaHalted | Self::ReplicaBehind => {
                matches!(databases, Databases::Replicas)
            }
            _ => !matches!(databases, Databases::Single),
        }
    }

    pub(crate) const fn needs_network(self) -> bool {
        matches!(self, Self::NodeCutOff | Self::NodeUnreachable | Self::OriginUnreachable)
    }

    /// Returns whether the time without a success after this fault has a limit, which
    /// [`crate::verdict`] checks.
    pub(crate) const fn is_bounded(self) -> bool {
        matches!(self, Self::NodeKilled)
    }

    /// Returns a description of the fault, without the number of the part that fails.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::NodeKilled => "a node is killed",
            Self::NodeHalted => "a node is halted",
            Self::NodeCutOff => "a node is cut off from the other nodes",
            Self::NodeUnreachable => "a node is cut off from the origins",
            Self::OriginKilled => "an origin is killed",
            Self::OriginHalted => "an origin is halted",
            Self::OriginUnreachable => "an origin is cut off from edges and databases",
            Self::EdgeKilled => "an edge is killed",
            Self::EdgeHalted => "an edge is halted",
            Self::S3Killed => "the S3 service is killed",
            Self::S3Halted => "the S3 service is halted",
            Self::ReplicaKilled => "a replica is killed",
            Self::ReplicaHalted => "a replica is halted",
            Self::ReplicaBehind => "a replica falls behind",
            Self::PrimaryKilled => "the primary is killed",
            Self::ConnectionsKilled => "the database's connections are killed",
        }
    }
}

pub(crate) enum Cluster {
    Galera(Galera),
    Replicated(Replicated),
}

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) origins: Vec<Program>,
    pub(crate) edges: Vec<Program>,
    pub(crate) s3: Program,
    /// The virtual network. Its first machines are the databases', then come the origins'. `None`
    /// on loopback.
    pub(crate) network: Option<Network>,
}

impl Stage {
    /// Returns the number of parts that can have this kind of fault.
    pub(crate) fn targets(&self, kind: Kind) -> usize {
        match kind {
            Kind::NodeKilled | Kind::NodeHalted | Kind::NodeCutOff | Kind::NodeUnreachable => self.nodes(),
            Kind::OriginKilled | Kind::OriginHalted | Kind::OriginUnreachable => self.origins.len(),
            Kind::EdgeKilled | Kind::EdgeHalted => self.edges.len(),
            Kind::ReplicaKilled | Kind::ReplicaHalted | Kind::ReplicaBehind => self.nodes() - 1,
            Kind::S3Killed | Kind::S3Halted | Kind::PrimaryKilled | Kind::ConnectionsKilled => 1,
        }
    }

    /// Starts to sample the resources of the first origin, edge and database until `end`.
    pub(crate) fn watch(&self, end: Instant) -> Result<JoinHandle<Vec<Sample>>> {
        let pid = |programs: &[Program]| programs.first().and_then(Program::pid).context("a program has ended");
        let (origin, edge) = (pid(&self.origins)?, pid(&self.edges)?);
        let database = self.servers().first().context("no database")?.url();
        Ok(tokio::spawn(growth::watch(origin, edge, database, end)))
    }

    pub(crate) fn servers(&self) -> &[Server] {
        match &self.cluster {
            Cluster::Galera(galera) => galera.nodes(),
            Cluster::Replicated(all) => all.servers(),
        }
    }

    fn nodes(&self) -> usize {
        self.servers().len()
    }

    fn galera(&mut self) -> Result<&mut Galera> {
        match &mut self.cluster {
            Cluster::Galera(galera) => Ok(galera),
            Cluster::Replicated(_) => anyhow::bail!("there is no Galera cluster"),
        }
    }

    fn replicated(&mut self) -> Result<&mut Replicated> {
        match &mut self.cluster {
            Cluster::Replicated(all) => Ok(all),
            Cluster::Galera(_) => anyhow::bail!("there is no primary"),
        }
    }

    fn network(&self) -> Result<&Network> {
        self.network.as_ref().context("there is no network of its own")
    }

    pub(crate) async fn break_it(&mut self, kind: Kind, target: usize) -> Result<()> {
        // Server 0 is the primary.
        let (primary, replica) = (0, target + 1);
        match kind {
            Kind::NodeKilled => self.galera()?.node(target).kill(),
            Kind::NodeHalted => self.galera()?.node(target).halt(),
            Kind::NodeCutOff => self.network()?.cut(target, Link::Group)?,
            Kind::NodeUnreachable => self.network()?.cut(target, Link::Clients)?,
            Kind::OriginKilled => self.origins[target].kill(),
            Kind::OriginHalted => self.origins[target].signal(Signal::STOP),
            Kind::OriginUnreachable => self.network()?.cut(self.nodes() + target, Link::Clients)?,
            Kind::EdgeKilled => self.edges[target].kill(),
            Kind::EdgeHalted => self.edges[target].signal(Signal::STOP),
            Kind::S3Killed => self.s3.kill(),
            Kind::S3Halted => self.s3.signal(Signal::STOP),
            Kind::ReplicaKilled => self.replicated()?.server(replica).kill(),
            Kind::ReplicaHalted => self.replicated()?.server(replica).halt(),
            Kind::ReplicaBehind => self.replicated()?.fall_behind(replica).await?,
            Kind::PrimaryKilled => self.replicated()?.server(primary).kill(),
            Kind::ConnectionsKilled => kill_connections(self.replicated()?.server(primary)).await?,
        }
        Ok(())
    }

    /// Ends a fault and waits until all parts are ready again.
    pub(crate) async fn mend(&mut self, kind: Kind, target: usize) -> Result<()> {
        // Server 0 is the primary.
        let (primary, replica) = (0, target + 1);
        match kind {
            Kind::NodeKilled => self.galera()?.restart(target).await?,
            Kind::NodeHalted => self.galera()?.node(target).go_on(),
            Kind::NodeCutOff => self.network()?.mend(target, Link::Group)?,
            Kind::NodeUnreachable => self.network()?.mend(target, Link::Clients)?,
            Kind::OriginKilled => self.origins[target].launch()?,
            Kind::OriginHalted => self.origins[target].signal(Signal::CONT),
            Kind::OriginUnreachable => self.network()?.mend(self.nodes() + target, Link::Clients)?,
            Kind::EdgeKilled => self.edges[target].launch()?,
            Kind::EdgeHalted => self.edges[target].signal(Signal::CONT),
            Kind::S3Killed => self.s3.launch()?,
            Kind::S3Halted => self.s3.signal(Signal::CONT),
            Kind::ReplicaKilled => self.replicated()?.restart(replica).await?,
            Kind::ReplicaHalted => self.replicated()?.server(replica).go_on(),
            Kind::ReplicaBehind => self.replicated()?.catch_up(replica).await?,
            Kind::PrimaryKilled => self.replicated()?.restart(primary).await?,
            Kind::ConnectionsKilled => {}
        }
        self.wait_until_ready().await
    }

    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        match &mut self.cluster {
            Cluster::Galera(galera) => galera.wait_until_whole().await?,
            Cluster::Replicated(all) => {
                for index in 0..all.servers().len() {
                    all.wait_until_ready(index).await?;
                }
            }
        }
        for program in self.origins.iter_mut().chain(&mut self.edges).chain([&mut self.s3]) {
            program.wait_until_ready().await?;
        }
        Ok(())
    }
}

async fn kill_connections(server: &Server) -> Result<()> {
    let mut connection = server.connect().await?;
    let ids: Vec<u64> = connection.query(format!("SELECT id {CONNECTIONS}")).await?;
    for id in ids {
        // Fails if the connection has ended meanwhile.
        let _ = connection.query_drop(format!("KILL {id}")).await;
    }
    Ok(connection.disconnect().await?)
}
