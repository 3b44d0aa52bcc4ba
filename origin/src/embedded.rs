//! A private MariaDB, for installations without a `database_url`: installs, starts, monitors and stops it. Clients
//! connect through a socket that only this user can open. The only SQL here is a file that MariaDB runs at its start,
//! which sets up the administrator's account and deletes anonymous accounts.

mod layout;
mod lock;
mod server;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch as channel;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::layout::DataLayout;
pub use self::lock::LockRole;
use self::lock::{Holder, LockAttempt, OwnerLock};
use self::server::MariadbServer;
pub use self::watch::MariadbHealth;
use crate::address::{DatabaseAddress, Endpoint};
use crate::config::Config;
use crate::files::private_directory;
use crate::secret::InstallationSecret;

const ADMIN_USER: &str = "selkie-admin";

/// Label from which [`InstallationSecret`] derives the administrator's password.
const ADMIN_LABEL: &str = "account:admin";

#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error("`{0}` isn't installed on this machine")]
    NotInstalled(&'static str),
    /// Another process, which runs as a service, runs the private MariaDB of this data directory.
    #[error("the data directory {data_dir} is in use by process {pid}", data_dir = data_dir.display())]
    InUse { data_dir: PathBuf, pid: u32 },
    /// Another process held the data directory's lock until the timeout.
    #[error("the data directory {data_dir} stayed in use by another process", data_dir = data_dir.display())]
    StayedInUse { data_dir: PathBuf },
    #[error("{path} can't be used: {source}", path = path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("MariaDB couldn't be started: {0}")]
    Spawn(#[source] io::Error),
    #[error("MariaDB couldn't make its data directory: {0}")]
    Install(String),
    /// MariaDB ended during its start, or didn't answer in time.
    #[error("the private MariaDB didn't start: {reason} (see {log})", log = log.display())]
    Start {
        /// The last error in MariaDB's log, or a text that says that there is none.
        reason: String,
        log: PathBuf,
    },
}

impl EmbeddedError {
    fn files(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Files { path, source }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotInstalled(_) => Some(
                "install it (Debian: `apt install mariadb-server`), or name a MariaDB of yours in SELKIE_DATABASE_URL",
            ),
            Self::InUse { .. } | Self::StayedInUse { .. } => {
                Some("stop that one, or set another directory (--data-dir, SELKIE_DATA_DIR)")
            }
            _ => None,
        }
    }
}

/// A private MariaDB. `run` is `None` if a service runs it.
#[derive(Debug)]
pub struct Embedded {
    address: DatabaseAddress,
    run: Option<Run>,
}

/// A MariaDB that this process runs.
#[derive(Debug)]
struct Run {
    health: channel::Receiver<MariadbHealth>,
    stop: CancellationToken,
    watcher: JoinHandle<()>,
    _lock: OwnerLock,
}

impl Embedded {
    pub fn exists(data_dir: &Path) -> bool {
        DataLayout::new(data_dir).data().is_dir()
    }

    /// Attaches to the MariaDB that a service runs in this data directory, or starts MariaDB. A [`LockRole::Service`]
    /// always starts MariaDB itself.
    pub async fn attach_or_start(
        config: &Config,
        secret: &InstallationSecret,
        role: LockRole,
    ) -> Result<Self, EmbeddedError> {
        let layout = DataLayout::new(&config.data_dir);
        private_directory(layout.root()).map_err(EmbeddedError::files(layout.root()))?;
        let server = MariadbServer {
            admin_password: secret.derive_password(ADMIN_LABEL),
            buffer_pool_bytes: config.mariadb_buffer_pool_bytes,
            changes: config.changes,
            layout,
        };
        match Self::claim(config, &server, role).await? {
            LockAttempt::Mine(lock) => Self::start(server, lock).await,
            LockAttempt::Held(holder) => {
                Ok(Self { address: address(&server, holder.map(|holder| holder.socket)), run: None })
            }
        }
    }

    /// Waits until this process holds the data directory's lock or, for a command, until the MariaDB of a service that
    /// holds the lock answers. Fails at once if both processes are services, and after [`server::START_LIMIT`]
    /// otherwise.
    async fn claim(config: &Config, server: &MariadbServer, role: LockRole) -> Result<LockAttempt, EmbeddedError> {
        let path = server.layout.lock();
        let socket = server.layout.socket();
        let deadline = Instant::now() + server::START_LIMIT;
        while Instant::now() < deadline {
            let claim = lock::claim(&path, role, &socket).map_err(EmbeddedError::files(&path))?;
            let LockAttempt::Held(Some(holder)) = &claim else {
                if matches!(claim, LockAttempt::Mine(_)) {
                    return Ok(claim);
                }
                sleep(server::POLL_INTERVAL).await;
                continue;
            };
            match (role, holder.role) {
                (LockRole::Service, LockRole::Service) => return Err(in_use(config, holder)),
                (LockRole::Command, LockRole::Service) if server::answers(&holder.socket).await => {
                    return Ok(claim);
                }
                // If a command holds the lock, it usually releases it soon; if a service is starting, its MariaDB will
                // soon answer.
                _ => sleep(server::POLL_INTERVAL).await,
            }
        }
        Err(EmbeddedError::StayedInUse { data_dir: config.data_dir.clone() })
    }

    async fn start(server: MariadbServer, lock: OwnerLock) -> Result<Self, EmbeddedError> {
        server.install().await?;
        let child = server.start().await?;
        tracing::info!("the private MariaDB answers");
        let address = address(&server, None);
        let (sender, health) = channel::channel(MariadbHealth::Up);
        let stop = CancellationToken::new();
        let watching = watch::watch(Arc::new(server), child, sender, stop.clone());
        Ok(Self { address, run: Some(Run { health, stop, watcher: tokio::spawn(watching), _lock: lock }) })
    }

    pub fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    /// Returns the state of MariaDB; `None` if another process runs MariaDB.
    pub fn health(&self) -> Option<channel::Receiver<MariadbHealth>> {
        self.run.as_ref().map(|run| run.health.clone())
    }

    /// Stops MariaDB, unless another process runs it.
    pub async fn stop(self) {
        if let Some(run) = self.run {
            run.stop.cancel();
            // The cancelled token ends the task; a panic in the task has been reported.
            let _ = run.watcher.await;
        }
    }
}

fn address(server: &MariadbServer, socket: Option<PathBuf>) -> DatabaseAddress {
    DatabaseAddress {
        endpoint: Endpoint::Socket(socket.unwrap_or_else(|| server.layout.socket())),
        others: Vec::new(),
        admin_user: ADMIN_USER.to_owned(),
        admin_password: server.admin_password.clone(),
    }
}

fn in_use(config: &Config, holder: &Holder) -> EmbeddedError {
    EmbeddedError::InUse { data_dir: config.data_dir.clone(), pid: holder.pid }
}

#[cfg(test)]
mod tests;
