//! A primary and replicas with GTID replication, for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use tempfile::TempDir;

use crate::server::{ACCOUNT, PORT, Server, Site, accounts, install};

const STATUS: &str = "SELECT 1";

#[derive(Debug)]
pub struct Replicated {
    // Fields are dropped in this order, so the servers end before their directory is removed.
    servers: Vec<Server>,
    _directory: TempDir,
}

impl Replicated {
    /// Starts a primary (server 0) and `replicas` replicas on loopback, and waits until all answer.
    pub async fn start(replicas: usize) -> Result<Self> {
        Self::start_on(&(0..=replicas).map(|_| Site::on_loopback()).collect::<Vec<_>>()).await
    }

    /// Starts a primary at the first site and a replica at each of the others. Waits until all
    /// answer.
    pub async fn start_on(sites: &[Site]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("selkie-replicas-").tempdir()?;
        let template = template(directory.path()).await?;
        let mut servers = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            let home = directory.path().join(format!("server{}", index + 1));
            servers.push(Server::new(&home, *site, &template, arguments(index))?);
        }
        fs::remove_dir_all(template)?;
        let mut all = Self { servers, _directory: directory };
        for index in 0..all.servers.len() {
            all.restart(index).await?;
        }
        for index in 0..all.servers.len() {
            all.wait_until_ready(index).await?;
        }
        for index in 1..all.servers.len() {
            all.follow(index, 0).await?;
        }
        Ok(all)
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns a server; 0 is the first primary. Panics if there is no such server.
    pub fn server(&mut self, index: usize) -> &mut Server {
        &mut self.servers[index]
    }

    /// Starts a server that was killed or stopped. Does not wait until it is ready. A replica
    /// continues to replicate; a former primary is writable again.
    pub async fn restart(&mut self, index: usize) -> Result<()> {
        self.server(index).launch(&[])
    }

    pub async fn wait_until_ready(&mut self, index: usize) -> Result<()> {
        self.server(index).wait_for(STATUS, "1").await
    }

    /// Makes a server a read-only replica of another.
    pub async fn follow(&mut self, index: usize, primary: usize) -> Result<()> {
        let host = self.servers[primary].site.address;
        let statements = format!(
            "STOP SLAVE; SET GLOBAL read_only = ON; \
             CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {PORT}, MASTER_USER = '{ACCOUNT}', \
             MASTER_PASSWORD = '{ACCOUNT}', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1, \
             MASTER_HEARTBEAT_PERIOD = 1; START SLAVE"
        );
        self.server(index).execute(&statements).await
    }

    /// Makes a replica the primary of all other servers that run. The caller must have stopped the
    /// former primary, or made it read-only.
    pub async fn promote(&mut self, index: usize) -> Result<()> {
        self.server(index).execute("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF").await?;
        for other in 0..self.servers.len() {
            if other != index && self.server(other).is_running() {
                self.follow(other, index).await?;
            }
        }
        Ok(())
    }

    /// Makes a replica fall behind: it receives transactions but applies none until
    /// [`Self::catch_up`].
    pub async fn fall_behind(&mut self, index: usize) -> Result<()> {
        self.server(index).execute("STOP SLAVE SQL_THREAD").await
    }

    pub async fn catch_up(&mut self, index: usize) -> Result<()> {
        self.server(index).execute("START SLAVE SQL_THREAD").await
    }
}

/// Creates a data directory for all servers. It has no binary log, so all start at the empty GTID.
async fn template(parent: &Path) -> Result<PathBuf> {
    let (fresh, home) = (parent.join("fresh"), parent.join("template"));
    install(&fresh).await?;
    let mut server = Server::new(&home, Site::on_loopback(), &fresh, Vec::new())?;
    fs::remove_dir_all(&fresh)?;
    server.launch(&[])?;
    server.wait_for(STATUS, "1").await?;
    server.execute(&accounts()).await?;
    server.terminate().await?;
    let kept = parent.join("data");
    fs::rename(server.data(), &kept)?;
    fs::remove_dir_all(home)?;
    Ok(kept)
}

fn arguments(index: usize) -> Vec<String> {
    let mut arguments = vec![
        format!("--server-id={}", index + 1),
        "--log-bin=binlog".to_owned(),
        "--log-slave-updates".to_owned(),
        "--gtid-strict-mode=ON".to_owned(),
        "--relay-log-recovery=ON".to_owned(),
        "--slave-net-timeout=2".to_owned(),
    ];
    if index > 0 {
        arguments.push("--read-only=ON".to_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replica_lags_catches_up_survives_a_kill_and_is_promoted() {
        let mut all = Replicated::start(2).await.unwrap();
        let fill = "CREATE DATABASE here; CREATE TABLE here.t (id INT PRIMARY KEY); INSERT INTO here.t VALUES (1)";
        all.server(0).execute(fill).await.unwrap();
        let count = "SELECT COUNT(*) FROM here.t";
        all.server(1).wait_for(count, "1").await.unwrap();
        all.fall_behind(1).await.unwrap();
        all.server(0).execute("INSERT INTO here.t VALUES (2)").await.unwrap();
        all.server(2).wait_for(count, "2").await.unwrap();
        assert_eq!(all.server(1).ask(count).await.unwrap(), "1");
        all.catch_up(1).await.unwrap();
        all.server(1).wait_for(count, "2").await.unwrap();
        all.server(2).kill();
        all.server(0).execute("INSERT INTO here.t VALUES (3)").await.unwrap();
        all.restart(2).await.unwrap();
        all.server(2).wait_for(count, "3").await.unwrap();
        all.server(0).kill();
        all.promote(1).await.unwrap();
        all.server(1).execute("INSERT INTO here.t VALUES (4)").await.unwrap();
        all.server(2).wait_for(count, "4").await.unwrap();
        assert_eq!(all.server(2).ask("SELECT @@read_only").await.unwrap(), "1");
    }
}
