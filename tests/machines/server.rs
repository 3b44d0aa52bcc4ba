//! One private `mariadbd` that listens on TCP. It can be killed, stopped and started again, and
//! keeps its data.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU8, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use mysql_async::{Conn, Opts, OptsBuilder, prelude::Queryable as _};
use rustix::process::Signal;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

use crate::process::Started;

/// The account that clients use over TCP. It has all rights, and its password is its name.
pub const ACCOUNT: &str = "selkie";
/// The port of every server. Servers differ in their addresses.
pub const PORT: u16 = 3306;

/// Time between two checks whether a server is ready.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a query for a server's state. A server that was halted by SIGSTOP never answers.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const STOP_MAX: Duration = Duration::from_secs(60);
pub(crate) const START_MAX: Duration = Duration::from_secs(120);

/// Options of every server: small files and caches, quick starts, durable commits.
const OPTIONS: [&str; 13] = [
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_unicode_ci",
    "--default-time-zone=+00:00",
    "--max-allowed-packet=64M",
    "--max-connections=1000",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=48M",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=8M",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    pub address: Ipv4Addr,
    pub group: Ipv4Addr,
    /// Id of the process whose network namespace the server joins; `None`: this process's.
    pub namespace: Option<u32>,
}

impl Site {
    /// Returns a site with a loopback address that no other server of this process uses, nor, most
    /// likely, a server of a parallel run. On an address of its own, an outgoing connection can't
    /// take the server's port while the server is down.
    pub fn on_loopback() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        // Addresses in 127.64.0.0/10: other programs use 127.0.x.x.
        let address = Ipv4Addr::new(127, 64 | (high & 63), low, NEXT.fetch_add(1, Ordering::Relaxed));
        Self { address, group: address, namespace: None }
    }
}

/// A `mariadbd` with its data directory. It may be running or not.
#[derive(Debug)]
pub struct Server {
    directory: PathBuf,
    pub site: Site,
    arguments: Vec<String>,
    process: Option<Started>,
}

impl Server {
    /// Creates a server with a copy of the data directory `template`. Does not start it.
    pub(crate) fn new(directory: &Path, site: Site, template: &Path, arguments: Vec<String>) -> Result<Self> {
        fs::create_dir_all(directory.join("tmp"))?;
        copy(template, &directory.join("data"))?;
        Ok(Self { directory: directory.to_owned(), site, arguments, process: None })
    }

    /// Starts the server, after killing it if it runs. Does not wait until it answers. `more` are
    /// additional arguments for this start.
    pub(crate) fn launch(&mut self, more: &[String]) -> Result<()> {
        self.kill();
        let log = File::options().append(true).create(true).open(self.log_path())?;
        let path = std::env::var("PATH").unwrap_or_default();
        let scripts = self.directory.parent().context("a server's directory is in its cluster's")?;
        let started = Started::within(self.site.namespace, &mariadbd()?, |command| {
            command
                .args(self.all_arguments())
                .args(more)
                .env("PATH", format!("{}:{path}", scripts.display()))
                .stdout(Stdio::null())
                .stderr(log);
        })?;
        self.process = Some(started);
        Ok(())
    }

    fn all_arguments(&self) -> Vec<String> {
        let inside = |name| self.directory.join(name).display().to_string();
        let mut all = vec![
            "--no-defaults".to_owned(),
            format!("--user={}", user_of_this_process().unwrap_or_default()),
            format!("--datadir={}", inside("data")),
            format!("--tmpdir={}", inside("tmp")),
            format!("--socket={}", inside("s.sock")),
            format!("--pid-file={}", inside("pid")),
            format!("--bind-address={}", self.site.address),
            format!("--port={PORT}"),
        ];
        all.extend(OPTIONS.map(ToOwned::to_owned));
        all.extend(self.arguments.iter().cloned());
        all
    }

    pub(crate) async fn run(&self, more: &[&str]) -> Result<String> {
        let output = Command::new(mariadbd()?)
            .args(self.all_arguments())
            .args(more)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(START_MAX, output).await.context("mariadbd takes too long")??;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Waits until [`Self::ask`] returns `expected` for `statement`. Returns an error if the server
    /// has ended, or after [`START_MAX`].
    pub(crate) async fn wait_for(&mut self, statement: &str, expected: &str) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        loop {
            if self.ask(statement).await.is_ok_and(|answer| answer == expected) {
                return Ok(());
            }
            if !self.is_running() {
                bail!("the database on {} has ended:\n{}", self.site.address, self.log_tail());
            }
            if Instant::now() > deadline {
                bail!("the database on {} is not ready:\n{}", self.site.address, self.log_tail());
            }
            sleep(PAUSE).await;
        }
    }

    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops the server by SIGTERM, and waits until it has shut down.
    pub async fn terminate(&mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.terminate(STOP_MAX).await,
            None => Ok(()),
        }
    }

    pub fn halt(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(Started::is_running)
    }

    pub fn address(&self) -> String {
        format!("{}:{PORT}", self.site.address)
    }

    pub fn url(&self) -> String {
        format!("mysql://{ACCOUNT}:{ACCOUNT}@{}", self.address())
    }

    /// Runs statements as root over the server's socket.
    pub async fn execute(&self, statements: &str) -> Result<()> {
        let work = async {
            let mut connection = Conn::new(self.options()).await?;
            connection.query_drop(statements).await?;
            connection.disconnect().await
        };
        timeout(STOP_MAX, work).await.context("the database does not answer")??;
        Ok(())
    }

    /// Returns a connection as root over the server's socket.
    pub async fn connect(&self) -> Result<Conn> {
        Ok(timeout(ANSWER_MAX, Conn::new(self.options())).await.context("the database does not answer")??)
    }

    /// Runs a statement as root, and returns the last column of its first row as text. Returns an
    /// empty text for NULL, and if there is no row.
    pub async fn ask(&self, statement: &str) -> Result<String> {
        let work = async {
            let mut connection = Conn::new(self.options()).await?;
            let row: Option<mysql_async::Row> = connection.query_first(statement).await?;
            let last = row.and_then(|row| row.unwrap().pop());
            connection.disconnect().await?;
            Ok::<_, mysql_async::Error>(last)
        };
        let value = timeout(ANSWER_MAX, work).await.context("the database does not answer")??;
        Ok(match value {
            Some(mysql_async::Value::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            None | Some(mysql_async::Value::NULL) => String::new(),
            Some(other) => other.as_sql(true),
        })
    }

    fn options(&self) -> Opts {
        let socket = self.directory.join("s.sock").display().to_string();
        OptsBuilder::default().socket(Some(socket)).user(Some("root")).into()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns the last 30 lines of the server's log.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

/// Creates a data directory at `data` with `mariadb-install-db`. It does not have [`ACCOUNT`] yet:
/// the caller starts a server on it and runs the SQL of [`accounts`].
pub(crate) async fn install(data: &Path) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let output = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", temporary.path().display()))
        .arg(format!("--user={}", user_of_this_process()?))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("mariadb-install-db (Debian: apt install mariadb-server-core)")?;
    if !output.status.success() {
        bail!("mariadb-install-db failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

pub(crate) fn accounts() -> String {
    format!(
        "DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES; \
         CREATE USER '{ACCOUNT}'@'%' IDENTIFIED BY '{ACCOUNT}'; \
         GRANT ALL PRIVILEGES ON *.* TO '{ACCOUNT}'@'%' WITH GRANT OPTION"
    )
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = std::process::Command::new("cp").args(["--archive", "--sparse=always"]).args([from, to]).status()?;
    if !copied.success() {
        bail!("{} can't be copied to {}", from.display(), to.display());
    }
    Ok(())
}

/// Returns the path of `mariadbd`, which may be in a directory that is not in `PATH`.
pub fn mariadbd() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")])
        .map(|folder| folder.join("mariadbd"))
        .find(|candidate| candidate.is_file())
        .context("mariadbd is not installed (Debian: apt install mariadb-server-core)")
}

/// Returns the name of this process's user, for `--user`: without it, MariaDB refuses to run as
/// root.
pub fn user_of_this_process() -> Result<String> {
    let uid = fs::metadata("/proc/self")?.uid();
    let users = fs::read_to_string("/etc/passwd")?;
    users
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid.to_string()))
        .and_then(|line| line.split(':').next())
        .map(ToOwned::to_owned)
        .context("this process's user has no name")
}
