//! A private MariaDB in a temporary directory, on a socket only. Settings that are not given have their default, those of
//! durability too.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use mysql_async::{Conn, Opts, OptsBuilder};
use tempfile::TempDir;
use tokio::{process::Command, time::sleep};

use crate::process::Started;
use machines::server::{mariadbd, user_of_this_process};

/// Number of tries, 100 ms apart, until MariaDB must answer.
const START_TRIES: u32 = 300;

#[derive(Debug)]
pub(crate) struct MariaDb {
    // Fields are dropped in this order: MariaDB ends before its directory is removed.
    server: Started,
    directory: TempDir,
}

impl MariaDb {
    pub(crate) async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(options: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
        let data = directory.path().join("data");
        // A directory of its own: at its start, MariaDB removes the temporary tables of all servers that share one.
        let temporary = directory.path().join("tmp");
        fs::create_dir(&temporary)?;
        let log = directory.path().join("mariadb.log");
        let user = user_of_this_process()?;
        let install = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", temporary.display()))
            .arg(format!("--user={user}"))
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .context("mariadb-install-db (Debian: apt install mariadb-server)")?;
        if !install.success() {
            bail!("mariadb-install-db failed: {}", fs::read_to_string(&log).unwrap_or_default());
        }
        let server = Started::new(&mariadbd()?, |command| {
            command
                .arg("--no-defaults")
                .arg(format!("--datadir={}", data.display()))
                .arg(format!("--tmpdir={}", temporary.display()))
                .arg(format!("--socket={}", socket_in(directory.path()).display()))
                .arg(format!("--user={user}"))
                .arg("--skip-networking")
                .args(options)
                .stdout(Stdio::null());
            if let Ok(log) = File::create(&log) {
                command.stderr(log);
            }
        })?;
        let mut started = Self { server, directory };
        started.wait_until_it_answers().await?;
        Ok(started)
    }

    async fn wait_until_it_answers(&mut self) -> Result<()> {
        for _ in 0..START_TRIES {
            self.server.check().context("MariaDB does not start")?;
            if Conn::new(options(&self.socket(), None)).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!("MariaDB does not answer within {} s", START_TRIES / 10)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(self.directory.path())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

pub(crate) fn options(socket: &Path, database: Option<&str>) -> Opts {
    OptsBuilder::default()
        .socket(Some(socket.display().to_string()))
        .user(Some("root"))
        .db_name(database)
        .init(vec!["SET time_zone = '+00:00'"])
        .into()
}

fn socket_in(directory: &Path) -> PathBuf {
    directory.join("s.sock")
}
