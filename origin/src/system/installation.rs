//! An opened installation: its secret and its MariaDB. Only `serve`, `dev`, `init` and `restore` create a missing
//! secret or private MariaDB: another command with wrong settings must not create a second installation and print keys
//! that no origin accepts.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::address::DatabaseAddress;
use crate::config::Config;
use crate::database::admin::{Admin, AdminError};
use crate::database::hosts::{HostRole, Hosts};
use crate::embedded::{Embedded, EmbeddedError, LockRole, MariadbHealth};
use crate::secret::{InstallationSecret, SecretError};

/// An opened installation. [`Installation::close`] must be called in the end, so that a private MariaDB stops cleanly.
#[derive(Debug)]
pub struct Installation {
    pub secret: Arc<InstallationSecret>,
    pub database: DatabaseAddress,
    embedded: Option<Embedded>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Serve,
    Init,
    Command,
}

#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(
        "no installation was found: SELKIE_DATABASE_URL is not set, {}, and the data directory {} \
         holds no private MariaDB",
        in_file(file.as_ref()),
        data_dir.display()
    )]
    Missing {
        file: Option<PathBuf>,
        /// The data directory, which contains no private MariaDB.
        data_dir: PathBuf,
    },
    #[error(
        "the secret of the installation was not found: SELKIE_SECRET is not set, and there is no file {}",
        path.display()
    )]
    NoSecret { path: PathBuf },
    #[error(
        "{database} holds an installation already, but its secret was not found: SELKIE_SECRET is not \
         set, and there is no file {}",
        path.display()
    )]
    SecretLost {
        /// The name of the MariaDB that holds the installation.
        database: String,
        path: PathBuf,
    },
}

impl InstallationError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Secret(_) => None,
            Self::Embedded(error) => error.hint().map(str::to_owned),
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Missing { .. } => Some(
                "set SELKIE_DATABASE_URL or SELKIE_DATA_DIR to what the origin has; `selkie init` \
                 makes a new installation with a private MariaDB"
                    .to_owned(),
            ),
            Self::NoSecret { .. } => Some(
                "set SELKIE_DATA_DIR to the origin's data directory, or SELKIE_SECRET to its secret; \
                 `selkie init` makes a new installation"
                    .to_owned(),
            ),
            Self::SecretLost { path, .. } => Some(format!(
                "set SELKIE_DATA_DIR to the directory that holds it, or copy it from there; if it is \
                 lost, `openssl rand -hex 32 > {}` makes another, and every key must be issued anew",
                path.display()
            )),
        }
    }

    /// Returns whether wrong settings are the usual cause of the error.
    pub fn is_misconfiguration(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::NoSecret { .. } | Self::SecretLost { .. })
    }
}

fn in_file(file: Option<&PathBuf>) -> String {
    file.map_or_else(
        || "there is no selkie.toml in the working directory".to_owned(),
        |path| format!("{} has no database_url", path.display()),
    )
}

impl Installation {
    /// Opens the installation. Doesn't contact a configured MariaDB, except to check, before creating a secret, that
    /// MariaDB holds no installation.
    pub async fn open(config: &Config, purpose: Purpose) -> Result<Self, InstallationError> {
        let is_private = config.database_url.is_none();
        if purpose == Purpose::Command && is_private && !Embedded::exists(&config.data_dir) {
            return Err(InstallationError::Missing { file: config.file.clone(), data_dir: config.data_dir.clone() });
        }
        let secret = match InstallationSecret::load(config.secret.as_ref(), &config.data_dir)? {
            Some(secret) => secret,
            None => new_secret(config, purpose).await?,
        };
        let secret = Arc::new(secret);
        if let Some(database) = config.database_url.clone() {
            return Ok(Self { secret, database, embedded: None });
        }
        let role = match purpose {
            Purpose::Serve => LockRole::Service,
            Purpose::Init | Purpose::Command => LockRole::Command,
        };
        let embedded = Embedded::attach_or_start(config, &secret, role).await?;
        Ok(Self { secret, database: embedded.address().clone(), embedded: Some(embedded) })
    }

    pub fn database_health(&self) -> Option<watch::Receiver<MariadbHealth>> {
        self.embedded.as_ref().and_then(Embedded::health)
    }

    /// Returns whether another process, such as a running origin, runs the private MariaDB.
    pub fn is_in_use(&self) -> bool {
        self.embedded.as_ref().is_some_and(|embedded| embedded.health().is_none())
    }

    pub async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }
}

async fn new_secret(config: &Config, purpose: Purpose) -> Result<InstallationSecret, InstallationError> {
    let path = InstallationSecret::path(&config.data_dir);
    if purpose == Purpose::Command {
        return Err(InstallationError::NoSecret { path });
    }
    if let Some(database) = existing(config).await? {
        return Err(InstallationError::SecretLost { database, path });
    }
    tracing::info!(path = %path.display(), "making the secret of a new installation");
    Ok(InstallationSecret::load_or_create(config.secret.as_ref(), &config.data_dir)?)
}

async fn existing(config: &Config) -> Result<Option<String>, InstallationError> {
    let Some(address) = &config.database_url else {
        let data_dir = config.data_dir.display();
        return Ok(Embedded::exists(&config.data_dir).then(|| format!("the private MariaDB in {data_dir}")));
    };
    // The temporary secret is not used: only the schema version is read.
    let admin =
        Admin::new(&Hosts::new(address, HostRole::Serving), &InstallationSecret::temporary()?, config.connect_timeout);
    let version = admin.schema_version().await;
    admin.close().await;
    match version {
        Ok(version) => Ok(version.map(|_| format!("MariaDB at {}", address.endpoint))),
        // An account without rights on the schema `selkie` may still be allowed to create the schema.
        Err(AdminError::Denied { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
