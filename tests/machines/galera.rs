//! A Galera cluster for tests. Its timeouts are short: the other nodes notice a dead or silent node
//! within one to two seconds.
//!
//! State transfers copy files (`wsrep_sst_copy`), so that neither rsync nor mariabackup is needed.
//! A node that was killed gets the missed transactions from another node's write-set cache (IST),
//! or a full copy of the data (SST) if the cache no longer has them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::server::{Server, Site, accounts, install, mariadbd};

/// Paths at which the packages of Debian, Fedora and MariaDB install the Galera provider, relative to `/usr`.
const PROVIDERS: [&str; 3] =
    ["lib/galera/libgalera_smm.so", "lib64/galera-4/libgalera_smm.so", "lib64/galera/libgalera_smm.so"];
const GROUP_PORT: u16 = 4567;
const TRANSFER_PORT: u16 = 4568;

/// The provider's options, except its addresses. Durations are in ISO 8601.
const PROVIDER_OPTIONS: &str = "gcache.size=64M;pc.recovery=true;gmcast.peer_timeout=PT1S;gmcast.time_wait=PT1S;\
     evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.2S;evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S;\
     evs.install_timeout=PT2S";

/// Maximum time until a node is ready, its restarts included.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Time without success after which [`Galera::wait_for`] looks whether the cluster has a quorum. Nodes that have lost
/// contact form a cluster again within about five seconds if they can.
const QUORUM_CHECK_INTERVAL: Duration = Duration::from_secs(10);

const READY: &str = "SHOW STATUS LIKE 'wsrep_ready'";
const SIZE: &str = "SHOW STATUS LIKE 'wsrep_cluster_size'";
const STATUS: &str = "SHOW STATUS LIKE 'wsrep_cluster_status'";
const STATE: &str = "SHOW STATUS LIKE 'wsrep_local_state_comment'";

#[derive(Debug)]
pub struct Galera {
    // Fields are dropped in this order, so the nodes end before their directory is removed.
    nodes: Vec<Server>,
    _directory: TempDir,
}

impl Galera {
    /// Starts a cluster of `count` nodes on loopback, and waits until all are ready.
    pub async fn start(count: usize) -> Result<Self> {
        Self::start_on(&(0..count).map(|_| Site::on_loopback()).collect::<Vec<_>>()).await
    }

    /// Starts a node at each site, and waits until all are ready.
    pub async fn start_on(sites: &[Site]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("selkie-galera-").tempdir()?;
        // Galera looks for the script in `PATH`. `Server::launch` adds this directory to it.
        let script = directory.path().join("wsrep_sst_copy");
        fs::write(&script, include_str!("wsrep_sst_copy"))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let template = template(directory.path()).await?;
        let mut nodes = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let home = directory.path().join(format!("node{}", index + 1));
            nodes.push(Server::new(&home, *site, &template, arguments(&home, *site, sites)?)?);
        }
        fs::remove_dir_all(template)?;
        let mut cluster = Self { nodes, _directory: directory };
        if let Some(first) = cluster.nodes.first_mut() {
            first.launch(&["--wsrep-new-cluster".to_owned()])?;
        }
        cluster.wait_until_ready(0).await?;
        for node in cluster.nodes.iter_mut().skip(1) {
            node.launch(&[])?;
        }
        for index in 1..cluster.nodes.len() {
            cluster.wait_until_ready(index).await?;
        }
        Ok(cluster)
    }

    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns a node. Panics if there is no such node.
    pub fn node(&mut self, index: usize) -> &mut Server {
        &mut self.nodes[index]
    }

    /// Restarts a node that was killed or stopped, with crash recovery. Does not wait until it is
    /// ready. Returns an error if the recovery reports no position.
    pub async fn restart(&mut self, index: usize) -> Result<()> {
        let node = self.node(index);
        node.kill();
        let recovered = node.run(&["--wsrep-recover"]).await?;
        let position = recovered.lines().filter_map(|line| line.split_once("Recovered position: ")).next_back();
        let (_, position) = position.with_context(|| format!("the node has no position:\n{recovered}"))?;
        node.launch(&[format!("--wsrep-start-position={}", position.trim())])
    }

    /// Waits until every node is synced and sees all nodes. A node that was halted reports its old state until it
    /// notices that the others have excluded it, but they don't count it any more.
    pub async fn wait_until_whole(&mut self) -> Result<()> {
        let count = self.nodes.len().to_string();
        for (statement, expected) in [(SIZE, count.as_str()), (READY, "ON"), (STATE, "Synced")] {
            for index in 0..self.nodes.len() {
                self.wait_for(index, statement, expected).await?;
            }
        }
        Ok(())
    }

    /// Waits until a node is synced.
    pub async fn wait_until_ready(&mut self, index: usize) -> Result<()> {
        self.wait_for(index, READY, "ON").await?;
        self.wait_for(index, STATE, "Synced").await
    }

    /// Waits until a statement returns `expected`. Meanwhile does what an operator and a supervisor do: restarts the
    /// node if it has ended (it ends if the node from which it receives its state is killed), and forms a cluster again
    /// that has lost its quorum. Returns an error after five starts, or after [`WAIT_MAX`].
    async fn wait_for(&mut self, index: usize, statement: &str, expected: &str) -> Result<()> {
        const STARTS_MAX: usize = 5;
        let deadline = Instant::now() + WAIT_MAX;
        let mut starts = 0;
        while starts < STARTS_MAX && Instant::now() < deadline {
            match timeout(QUORUM_CHECK_INTERVAL, self.node(index).wait_for(statement, expected)).await {
                Err(_) => self.form_again_if_without_quorum().await,
                Ok(Err(_)) if !self.node(index).is_running() => {
                    self.restart(index).await?;
                    starts += 1;
                }
                Ok(other) => return other,
            }
        }
        let tail = self.node(index).log_tail();
        anyhow::bail!("node {} is not ready after {starts} starts and at most {WAIT_MAX:?}:\n{tail}", index + 1)
    }

    /// Makes the connected nodes a primary component again if they are a majority and none of them is in one. A busy
    /// machine can stand still so long that two nodes lose contact in the moment in which the third is killed. They
    /// find each other again, but Galera then waits for the third, and a node that starts with an empty directory does
    /// not count as the third.
    async fn form_again_if_without_quorum(&mut self) {
        let mut connected = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            // A node that starts or has ended does not answer.
            match (node.ask(STATUS).await.as_deref(), node.ask(SIZE).await) {
                (Ok("Primary"), _) => return,
                (Ok(_), Ok(size)) if size.parse().is_ok_and(|size: usize| size * 2 > self.nodes.len()) => {
                    connected.push(index);
                }
                _ => {}
            }
        }
        if connected.len() * 2 <= self.nodes.len() {
            return;
        }
        for index in connected {
            // A node that is just changing its view refuses this; if all do, the caller asks again.
            let formed = self.node(index).execute("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'").await;
            if formed.is_ok() {
                return;
            }
        }
    }
}

async fn template(parent: &Path) -> Result<PathBuf> {
    let (fresh, home) = (parent.join("fresh"), parent.join("template"));
    install(&fresh).await?;
    let site = Site::on_loopback();
    let mut server = Server::new(&home, site, &fresh, arguments(&home, site, &[site])?)?;
    fs::remove_dir_all(&fresh)?;
    server.launch(&["--wsrep-new-cluster".to_owned()])?;
    server.wait_for(READY, "ON").await?;
    server.execute(&accounts()).await?;
    server.terminate().await?;
    let data = server.data();
    for name in ["galera.cache", "gvwstate.dat", "ibtmp1"] {
        // Fails if the file does not exist.
        let _ = fs::remove_file(data.join(name));
    }
    let kept = parent.join("data");
    fs::rename(data, &kept)?;
    fs::remove_dir_all(home)?;
    Ok(kept)
}

fn arguments(home: &Path, site: Site, all: &[Site]) -> Result<Vec<String>> {
    let mariadbd = mariadbd()?;
    let installed = mariadbd.ancestors().nth(2).context("mariadbd is in bin/ or sbin/")?;
    let provider = PROVIDERS.map(|path| installed.join(path)).into_iter().find(|path| path.exists());
    let provider =
        provider.with_context(|| format!("no Galera beside {} (Debian: apt install galera-4)", mariadbd.display()))?;
    let address = site.group;
    let peers: Vec<String> = all.iter().map(|site| format!("{}:{GROUP_PORT}", site.group)).collect();
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    Ok(vec![
        "--wsrep-on=ON".to_owned(),
        // All nodes log the same transactions under the same GTIDs.
        "--log-bin=binlog".to_owned(),
        "--log-slave-updates".to_owned(),
        "--server-id=1".to_owned(),
        "--wsrep-gtid-mode=ON".to_owned(),
        "--wsrep-gtid-domain-id=1".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
        format!("--wsrep-provider={}", provider.display()),
        "--wsrep-cluster-name=selkie".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", peers.join(",")),
        format!("--wsrep-node-name={name}"),
        format!("--wsrep-node-address={address}:{GROUP_PORT}"),
        "--wsrep-sst-method=copy".to_owned(),
        format!(
            "--wsrep-provider-options=base_host={address};base_port={GROUP_PORT};\
             gmcast.listen_addr=tcp://{address}:{GROUP_PORT};ist.recv_addr={address}:{TRANSFER_PORT};{PROVIDER_OPTIONS}"
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_killed_node_comes_back_with_what_it_missed_and_so_does_an_emptied_one() {
        let mut cluster = Galera::start(3).await.unwrap();
        let create = "CREATE DATABASE here; CREATE TABLE here.t (id INT PRIMARY KEY AUTO_INCREMENT)";
        cluster.node(0).execute(create).await.unwrap();
        cluster.node(2).kill();
        cluster.node(0).execute("INSERT INTO here.t VALUES (), ()").await.unwrap();
        cluster.restart(2).await.unwrap();
        cluster.wait_until_ready(2).await.unwrap();
        assert_eq!(cluster.node(2).ask("SELECT COUNT(*) FROM here.t").await.unwrap(), "2");
        // The other two lose contact while node 2 is killed: no node has a quorum.
        cluster.node(2).halt();
        cluster.node(1).kill();
        cluster.node(0).wait_for(STATUS, "non-Primary").await.unwrap();
        cluster.node(2).go_on();
        let data = cluster.node(1).data();
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        cluster.node(1).launch(&[]).unwrap();
        cluster.wait_until_whole().await.unwrap();
        assert_eq!(cluster.node(1).ask("SELECT COUNT(*) FROM here.t").await.unwrap(), "2");
    }
}
