//! A `mariadbd` process: its data directory, arguments, start and stop. Talks to MariaDB only by signals, by a file of
//! SQL that MariaDB runs at its start, and by reading the first bytes of its greeting; only `database` uses the driver.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::EmbeddedError;
use super::layout::DataLayout;
use crate::config::ChangesConfig;
use crate::files::{create_private, private_directory, remove_directory, remove_file};
use crate::process::{self, LastSignal};

const INSTALL_LIMIT: Duration = Duration::from_secs(120);

/// The maximum time for a start. After a crash, MariaDB first replays its log.
pub(super) const START_LIMIT: Duration = Duration::from_secs(120);

/// The time until MariaDB, which first writes pages to disk, is killed.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// The time to stop a MariaDB that a killed Selkie process has left running.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(10);

const GREETING_LIMIT: Duration = Duration::from_secs(1);

pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The size from which the log is renamed at the next start. One older log is kept.
const LOG_MAX_BYTES: u64 = 10 * 1024 * 1024;

/// The number of last bytes of a log that are searched for an error.
const LOG_TAIL_BYTES: usize = 8 * 1024;

/// Creates the administrator, sets its password, and deletes anonymous accounts.
const ADMIN_STATEMENTS: &str = include_str!("admin.sql");

#[derive(Debug)]
pub(super) struct MariadbServer {
    pub(super) layout: DataLayout,
    pub(super) admin_password: SecretString,
    pub(super) buffer_pool_bytes: usize,
    pub(super) changes: ChangesConfig,
}

impl MariadbServer {
    /// Creates the data directory, under a temporary name until complete, in case of an interruption.
    pub(super) async fn install(&self) -> Result<(), EmbeddedError> {
        if self.layout.data().is_dir() {
            return Ok(());
        }
        let installer = find(&["mariadb-install-db", "mysql_install_db"])?;
        let staged = self.layout.staged_data();
        self.clear_temporary()?;
        remove_directory(&staged).map_err(EmbeddedError::files(&staged))?;
        let mut command = process::tied(&installer, LastSignal::Kill);
        command
            .arg("--no-defaults")
            .arg(path_argument("--datadir", &staged))
            .arg(path_argument("--tmpdir", &self.layout.temporary()))
            .args(["--skip-test-db", "--skip-name-resolve"])
            .args(["--auth-root-authentication-method=socket"])
            .args(as_root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = process::spawn(command).await.map_err(EmbeddedError::Spawn)?;
        let output = timeout(INSTALL_LIMIT, child.wait_with_output())
            .await
            .map_err(|_| EmbeddedError::Install("it took too long".to_owned()))?
            .map_err(EmbeddedError::Spawn)?;
        if !output.status.success() {
            return Err(EmbeddedError::Install(reason(&output.stderr)));
        }
        let data = self.layout.data();
        std::fs::rename(&staged, &data).map_err(EmbeddedError::files(&data))
    }

    /// Starts MariaDB, after stopping a MariaDB that a killed Selkie process has left running.
    pub(super) async fn start(&self) -> Result<Child, EmbeddedError> {
        self.end_leftover().await;
        self.prepare().map_err(EmbeddedError::files(self.layout.root()))?;
        let command = self.command()?;
        let mut child = process::spawn(command).await.map_err(EmbeddedError::Spawn)?;
        let answered = self.wait_until_it_answers(&mut child).await;
        // The init file contains a password and is not needed any more: MariaDB has read it, or has failed to start.
        let _ = remove_file(&self.layout.init_file());
        match answered {
            Ok(()) => Ok(child),
            Err(error) => {
                // Uses SIGKILL, for the reason in `command`. An error means that the process has already ended.
                let _ = child.kill().await;
                Err(error)
            }
        }
    }

    fn clear_temporary(&self) -> Result<(), EmbeddedError> {
        let path = self.layout.temporary();
        remove_directory(&path).and_then(|()| private_directory(&path)).map_err(EmbeddedError::files(&path))
    }

    fn prepare(&self) -> io::Result<()> {
        if let Some(directory) = self.layout.socket().parent() {
            private_directory(directory)?;
            check_owner(directory)?;
        }
        private_directory(&self.layout.files())?;
        let long = std::fs::metadata(self.layout.log()).is_ok_and(|log| log.len() > LOG_MAX_BYTES);
        if long {
            std::fs::rename(self.layout.log(), self.layout.old_log())?;
        }
        let path = self.layout.init_file();
        remove_file(&path)?;
        let password = self.admin_password.expose_secret();
        create_private(&path, &ADMIN_STATEMENTS.replace("{password}", password))
    }

    /// Returns the command that starts MariaDB, which ignores the configuration files of this machine.
    fn command(&self) -> Result<Command, EmbeddedError> {
        let layout = &self.layout;
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(layout.log())
            .map_err(EmbeddedError::files(&layout.log()))?;
        // MariaDB hangs if it gets a SIGTERM during its start, so it gets a SIGKILL, which only costs a replay of
        // InnoDB's log.
        let mut command = process::tied(&find(&["mariadbd", "mysqld"])?, LastSignal::Kill);
        command
            .arg("--no-defaults")
            .arg(layout.data_argument())
            .arg(path_argument("--tmpdir", &layout.temporary()))
            .arg(path_argument("--secure-file-priv", &layout.files()))
            .arg(path_argument("--socket", &layout.socket()))
            .arg(path_argument("--pid-file", &layout.pid()))
            .arg(path_argument("--log-error", &layout.log()))
            .arg(path_argument("--init-file", &layout.init_file()))
            .arg(format!("--innodb-buffer-pool-size={}", self.buffer_pool_bytes))
            .args(SETTINGS)
            .args(match self.changes {
                ChangesConfig::Served => &BINARY_LOG[..],
                ChangesConfig::Off => &["--skip-log-bin"],
            })
            .args(as_root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // The log also gets MariaDB's output from before it opens the log itself.
            .stderr(log);
        Ok(command)
    }

    async fn wait_until_it_answers(&self, child: &mut Child) -> Result<(), EmbeddedError> {
        let socket = self.layout.socket();
        let deadline = Instant::now() + START_LIMIT;
        while !answers(&socket).await {
            let ended = child.try_wait().map_err(EmbeddedError::Spawn)?;
            if ended.is_some() || Instant::now() > deadline {
                return Err(EmbeddedError::Start {
                    reason: reason(&std::fs::read(self.layout.log()).unwrap_or_default()),
                    log: self.layout.log(),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn end_leftover(&self) {
        let argument = self.layout.data_argument();
        let left = std::fs::read_to_string(self.layout.pid())
            .ok()
            .and_then(|text| Pid::from_raw(text.trim().parse().ok()?))
            .filter(|pid| process::runs_with(*pid, &argument));
        let Some(pid) = left else { return };
        let deadline = Instant::now() + LEFTOVER_LIMIT;
        // An error means that the process has ended, which the loop notices too.
        let _ = kill_process(pid, Signal::TERM);
        while test_kill_process(pid).is_ok() && process::runs_with(pid, &argument) {
            if Instant::now() > deadline {
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// The binary log, from which changes are read. Files are short, since MariaDB searches a file from its beginning for the
/// place where a reader goes on.
const BINARY_LOG: [&str; 10] = [
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--max-binlog-size=64M",
    "--binlog-expire-logs-seconds=259200",
    // MariaDB 11.4 and later would delete old files only while a replica is connected.
    "--loose-slave-connections-needed-for-purge=0",
    // InnoDB asks the log which transactions are committed after a crash, so the log must be as durable as InnoDB.
    "--sync-binlog=1",
    "--server-id=1",
    // With a log, MariaDB demands SUPER for triggers and functions, which could make a log of statements wrong.
    "--log-bin-trust-function-creators=ON",
];

/// MariaDB's fixed options, for security, a small memory footprint, a quick start, and properties that clients depend
/// on.
const SETTINGS: [&str; 20] = [
    // No TCP. Accounts are matched by user name, without looking up host names.
    "--skip-networking",
    "--skip-name-resolve",
    // Properties that clients depend on.
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_unicode_ci",
    "--default-time-zone=+00:00",
    "--max-allowed-packet=64M",
    // Each account has a connection pool of its own, and an idle connection costs little.
    "--max-connections=1000",
    // Each connection caches prepared statements. With the default of 16,382, one project could use up the statements
    // of all.
    "--max-prepared-stmt-count=1048576",
    // The performance schema would cost 10 % of the throughput and 100 MB of memory.
    "--performance-schema=OFF",
    // Half of the default size, since the whole file is written at the first start. It holds some minutes of inserts.
    "--innodb-log-file-size=48M",
    // Caches for MyISAM and Aria, which are mostly used for system tables and temporary tables.
    "--key-buffer-size=8M",
    "--aria-pagecache-buffer-size=32M",
    // No statement may read a client's files (LOAD DATA LOCAL) or create tables outside the data directory.
    "--local-infile=OFF",
    "--skip-symbolic-links",
    // Logs only errors and warnings, but not when clients disconnect.
    "--log-warnings=1",
    "--skip-slow-query-log",
    "--skip-general-log",
    "--event-scheduler=OFF",
    "--core-file=OFF",
    "--skip-slave-start",
];

/// Returns whether a server listens at `socket` and sends MariaDB's greeting.
pub(super) async fn answers(socket: &Path) -> bool {
    let greeting = async {
        let mut stream = UnixStream::connect(socket).await?;
        let mut head = [0_u8; 5];
        stream.read_exact(&mut head).await?;
        io::Result::Ok(head)
    };
    /// Version of MariaDB's protocol: byte 5 of the greeting, after the length (3 bytes) and a sequence number.
    const PROTOCOL: u8 = 10;
    timeout(GREETING_LIMIT, greeting).await.is_ok_and(|greeting| greeting.is_ok_and(|head| head[4] == PROTOCOL))
}

/// Stops MariaDB with SIGTERM, and kills it with SIGKILL after [`STOP_LIMIT`].
pub(super) async fn stop(child: &mut Child) {
    process::stop(child, STOP_LIMIT).await;
}

fn find(names: &[&'static str]) -> Result<PathBuf, EmbeddedError> {
    let missing = names.first().copied().unwrap_or_default();
    process::find_program(names).ok_or(EmbeddedError::NotInstalled(missing))
}

/// Returns the argument that MariaDB requires to run as root.
fn as_root() -> Option<&'static str> {
    geteuid().is_root().then_some("--user=root")
}

fn path_argument(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push("=");
    argument.push(path);
    argument
}

/// Checks the socket's directory: if another user owns it, as is possible in `/tmp`, that user could get the passwords.
fn check_owner(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::symlink_metadata(directory)?.uid();
    if owner == geteuid().as_raw() { Ok(()) } else { Err(io::Error::other("it belongs to another user")) }
}

/// Returns the last error in the log, except "Aborting", which MariaDB writes after the actual error.
fn reason(log: &[u8]) -> String {
    let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let mut faults = text.lines().rev().filter_map(|line| line.split_once("[ERROR] "));
    let fault = faults.find(|(_, fault)| fault.trim() != "Aborting");
    fault.map_or_else(|| "it gave no reason".to_owned(), |(_, fault)| fault.trim().to_owned())
}
