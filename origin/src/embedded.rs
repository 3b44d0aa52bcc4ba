//! A private MariaDB, for installations without a `database_url`: made, started, watched and stopped by
//! us, reached through a socket that only this user can open.
//!
//! Knows no SQL but the administrator's account, and no driver.

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

use self::layout::Layout;
pub use self::lock::Role;
use self::lock::{Claim, Holder, OwnerLock};
use self::server::Server;
pub use self::watch::Health;
use crate::address::{DatabaseAddress, Endpoint};
use crate::config::Config;
use crate::files::private_directory;
use crate::secret::InstallationSecret;

/// The administrator's user name.
const ADMIN_USER: &str = "selkie-admin";

/// What its password is derived from.
const ADMIN_LABEL: &str = "account:admin";

/// Why there is no private MariaDB.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// A program is missing.
    #[error("`{0}` isn't installed on this machine")]
    NotInstalled(&'static str),
    /// Another service has it.
    #[error("the data directory {data_dir} is in use by process {pid}", data_dir = data_dir.display())]
    InUse {
        /// The directory.
        data_dir: PathBuf,
        /// Who has it.
        pid: u32,
    },
    /// Another process had it for too long.
    #[error("the data directory {data_dir} stayed in use by another process", data_dir = data_dir.display())]
    StayedInUse {
        /// The directory.
        data_dir: PathBuf,
    },
    /// Files couldn't be read or made.
    #[error("{path} can't be used: {source}", path = path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program couldn't be started or waited for.
    #[error("MariaDB couldn't be started: {0}")]
    Spawn(#[source] io::Error),
    /// The data directory couldn't be made.
    #[error("MariaDB couldn't make its data directory: {0}")]
    Install(String),
    /// It ended, or didn't answer in time.
    #[error("the private MariaDB didn't start: {reason} (see {log})", log = log.display())]
    Start {
        /// The last fault in its log.
        reason: String,
        /// The log.
        log: PathBuf,
    },
}

impl EmbeddedError {
    fn files(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Files { path, source }
    }

    /// How to mend it, if that can be said.
    #[must_use]
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

/// A private MariaDB that answers: run by this process, or by a service that this one attached to.
#[derive(Debug)]
pub struct Embedded {
    address: DatabaseAddress,
    run: Option<Run>,
}

/// What the process that runs it holds.
#[derive(Debug)]
struct Run {
    health: channel::Receiver<Health>,
    stop: CancellationToken,
    watcher: JoinHandle<()>,
    _lock: OwnerLock,
}

impl Embedded {
    /// Whether this data directory holds a private MariaDB, running or not.
    #[must_use]
    pub fn exists(data_dir: &Path) -> bool {
        Layout::new(data_dir).data().is_dir()
    }

    /// Attaches to the MariaDB of a service that runs on this data directory, or runs one. A service
    /// always runs its own.
    ///
    /// # Errors
    /// MariaDB isn't installed or doesn't start, or another service has the data directory.
    pub async fn attach_or_start(
        config: &Config,
        secret: &InstallationSecret,
        role: Role,
    ) -> Result<Self, EmbeddedError> {
        let layout = Layout::new(&config.data_dir);
        private_directory(layout.root()).map_err(EmbeddedError::files(layout.root()))?;
        let server = Server {
            admin_password: secret.derive_password(ADMIN_LABEL),
            buffer_pool_bytes: config.mariadb_buffer_pool_bytes,
            layout,
        };
        match Self::claim(config, &server, role).await? {
            Claim::Mine(lock) => Self::start(server, lock).await,
            Claim::Held(holder) => {
                Ok(Self { address: address(&server, holder.map(|holder| holder.socket)), run: None })
            }
        }
    }

    /// Waits until the data directory is ours, or a service's MariaDB in it answers.
    async fn claim(config: &Config, server: &Server, role: Role) -> Result<Claim, EmbeddedError> {
        let path = server.layout.lock();
        let socket = server.layout.socket();
        let deadline = Instant::now() + server::START_LIMIT;
        while Instant::now() < deadline {
            let claim = lock::claim(&path, role, &socket).map_err(EmbeddedError::files(&path))?;
            let Claim::Held(Some(holder)) = &claim else {
                if matches!(claim, Claim::Mine(_)) {
                    return Ok(claim);
                }
                sleep(server::LOOK_AGAIN).await;
                continue;
            };
            match (role, holder.role) {
                (Role::Service, Role::Service) => return Err(in_use(config, holder)),
                (Role::Command, Role::Service) if server::answers(&holder.socket).await => {
                    return Ok(claim);
                }
                // A command is done soon, and a service that doesn't answer yet will, or ends.
                _ => sleep(server::LOOK_AGAIN).await,
            }
        }
        Err(EmbeddedError::StayedInUse { data_dir: config.data_dir.clone() })
    }

    async fn start(server: Server, lock: OwnerLock) -> Result<Self, EmbeddedError> {
        server.install().await?;
        let child = server.start().await?;
        tracing::info!("the private MariaDB answers");
        let address = address(&server, None);
        let (sender, health) = channel::channel(Health::Up);
        let stop = CancellationToken::new();
        let watching = watch::watch(Arc::new(server), child, sender, stop.clone());
        Ok(Self { address, run: Some(Run { health, stop, watcher: tokio::spawn(watching), _lock: lock }) })
    }

    /// How to reach it.
    #[must_use]
    pub fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    /// Whether it answers, as it changes; `None` where another process runs it.
    #[must_use]
    pub fn health(&self) -> Option<channel::Receiver<Health>> {
        self.run.as_ref().map(|run| run.health.clone())
    }

    /// Stops it, if this process runs it, and returns when it has ended.
    pub async fn stop(self) {
        if let Some(run) = self.run {
            run.stop.cancel();
            // It ends by the token; a panic in it has been reported.
            let _ = run.watcher.await;
        }
    }
}

fn address(server: &Server, socket: Option<PathBuf>) -> DatabaseAddress {
    DatabaseAddress {
        endpoint: Endpoint::Socket(socket.unwrap_or_else(|| server.layout.socket())),
        admin_user: ADMIN_USER.to_owned(),
        admin_password: server.admin_password.clone(),
    }
}

fn in_use(config: &Config, holder: &Holder) -> EmbeddedError {
    EmbeddedError::InUse { data_dir: config.data_dir.clone(), pid: holder.pid }
}

#[cfg(test)]
mod tests;
