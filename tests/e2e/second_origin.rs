//! A second origin on the MariaDB of a running service, for tests of properties on which several origins must agree.

use crate::service::{Service, binary, clear_settings, find_socket, free_port, is_alive, kill};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum time of a start. The origin creates nothing, but may have to wait for the installation's lock.
const START_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
const USER: &str = "second-admin";

pub(crate) struct Through {
    directory: TempDir,
    task: AbortHandle,
}

impl Through {
    pub(crate) fn start(service: &Service) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-through-").tempdir();
        let directory = directory.expect("a directory");
        let task = forward(&directory, service, None);
        Self { directory, task }
    }

    /// Starts a proxy that reports another version of MariaDB to clients. The version must be as long as the real one.
    pub(crate) fn announcing(service: &Service, version: &'static str) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-through-").tempdir();
        let directory = directory.expect("a directory");
        let task = forward(&directory, service, Some(version));
        Self { directory, task }
    }

    pub(crate) fn database_url(&self) -> String {
        let socket = path(&self.directory);
        format!("mysql://{USER}:{USER}@localhost?socket={}", socket.display())
    }

    /// Closes all connections, and accepts no further ones.
    pub(crate) fn stop(&self) {
        self.task.abort();
        std::fs::remove_file(path(&self.directory)).expect("a socket");
    }

    pub(crate) fn go_on(&mut self, service: &Service) {
        self.task = forward(&self.directory, service, None);
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join("through.sock")
}

fn forward(directory: &TempDir, service: &Service, version: Option<&'static str>) -> AbortHandle {
    let listener = UnixListener::bind(path(directory)).expect("a socket");
    let socket = find_socket(&service.data_dir()).expect("a socket in the data directory");
    let forwarding = tokio::spawn(async move {
        // Dropping the set at the task's end closes the connections.
        let mut open = JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            let socket = socket.clone();
            open.spawn(async move {
                let mut far = UnixStream::connect(socket).await?;
                if let Some(version) = version {
                    near.write_all(&greeting(&mut far, version).await?).await?;
                }
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    forwarding.abort_handle()
}

/// Reads MariaDB's first packet and replaces the version in it. The version follows the header of 4 bytes, the protocol
/// number, and `5.5.5-` for old clients.
async fn greeting(mariadb: &mut UnixStream, version: &str) -> std::io::Result<Vec<u8>> {
    const VERSION_AT: usize = 4 + 1 + "5.5.5-".len();
    let mut packet = vec![0; 4];
    mariadb.read_exact(&mut packet).await?;
    let length = usize::from(packet[0]) | usize::from(packet[1]) << 8;
    packet.resize(4 + length, 0);
    mariadb.read_exact(&mut packet[4..]).await?;
    packet[VERSION_AT..][..version.len()].copy_from_slice(version.as_bytes());
    Ok(packet)
}

pub(crate) struct SecondOrigin {
    child: Child,
    log: NamedTempFile,
    pub(crate) origin: String,
}

impl SecondOrigin {
    /// Starts an origin with the service's secret and MariaDB, and waits until it answers.
    pub(crate) fn start(service: &Service) -> Result<Self, String> {
        let mut second = Self::launch(service, &[])?;
        second.wait_until_ready()?;
        Ok(second)
    }

    /// Starts an origin with these additional settings, without waiting until it answers.
    pub(crate) fn launch(service: &Service, settings: &[(&str, &str)]) -> Result<Self, String> {
        service.root_sql(&format!(
            "CREATE USER IF NOT EXISTS '{USER}'@'localhost' IDENTIFIED BY '{USER}'; \
             GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'localhost' WITH GRANT OPTION"
        ))?;
        let socket = find_socket(&service.data_dir()).ok_or("no socket in the data directory")?;
        let url = format!("mysql://{USER}:{USER}@localhost?socket={}", socket.display());
        let port = free_port();
        let log = NamedTempFile::new().map_err(|error| error.to_string())?;
        let output = log.reopen().map_err(|error| error.to_string())?;
        let mut command = Command::new(binary()?);
        clear_settings(&mut command);
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(service.data_dir())
            .args(["--listen", &format!("127.0.0.1:{port}"), "--webhook-allow", "127.0.0.0/8"])
            .env("SELKIE_DATABASE_URL", url)
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(|error| error.to_string())?)
            .stderr(output);
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Self { child, log, origin: format!("http://127.0.0.1:{port}") })
    }

    /// Waits until the origin ends by itself.
    pub(crate) fn wait_until_dead(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() > deadline {
                return Err(format!("the second origin still runs after {START_MAX:?}"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits until the origin answers.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        while !is_alive(&self.origin) {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the second origin ended at once: {status}"));
            }
            if Instant::now() > deadline {
                return Err(format!("the second origin is not ready after {START_MAX:?}"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.log.path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn terminate(&self) {
        kill(self.child.id().cast_signed(), Signal::TERM);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for SecondOrigin {
    fn drop(&mut self) {
        self.kill();
    }
}
