//! An opened installation: its secret and the way to its MariaDB, which is started if it is the private
//! one. What `serve`, `dev` and every command that touches the database begin with.
//!
//! Only `serve`, `dev` and `init` may make what is missing: a command that is run with the wrong
//! settings must not make an installation of its own, and print a key that no origin accepts.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::address::DatabaseAddress;
use crate::config::Config;
use crate::database::admin::{Admin, AdminError};
use crate::embedded::{Embedded, EmbeddedError, Health, Role};
use crate::secret::{InstallationSecret, SecretError};

/// An opened installation. [`Installation::close`] it, so that a private MariaDB stops cleanly.
#[derive(Debug)]
pub struct Installation {
    /// What everything secret derives from.
    pub secret: Arc<InstallationSecret>,
    /// How to reach MariaDB as its administrator.
    pub database: DatabaseAddress,
    embedded: Option<Embedded>,
}

/// What an installation is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To serve: makes what is missing.
    Serve,
    /// To be made: makes what is missing, and ends.
    Init,
    /// To do one thing with an installation that exists: makes nothing.
    Command,
}

/// Why an installation can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// The secret can't be read or written.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The private MariaDB doesn't run.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The named MariaDB could not be asked whether it holds an installation.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// No MariaDB is named, and there is no private one.
    #[error(
        "no installation was found: SELKIE_DATABASE_URL is not set, {}, and the data directory {} \
         holds no private MariaDB",
        in_file(file.as_ref()),
        data_dir.display()
    )]
    Missing {
        /// The configuration file that was read.
        file: Option<PathBuf>,
        /// Where a private MariaDB would be.
        data_dir: PathBuf,
    },
    /// A command found no secret.
    #[error(
        "the secret of the installation was not found: SELKIE_SECRET is not set, and there is no file {}",
        path.display()
    )]
    NoSecret {
        /// Where it would be.
        path: PathBuf,
    },
    /// `serve` or `init` found an installation whose secret is missing.
    #[error(
        "{database} holds an installation already, but its secret was not found: SELKIE_SECRET is not \
         set, and there is no file {}",
        path.display()
    )]
    SecretLost {
        /// The MariaDB, in words.
        database: String,
        /// Where the secret would be.
        path: PathBuf,
    },
}

impl InstallationError {
    /// How to mend it, if that can be said.
    #[must_use]
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

    /// Whether the settings name the wrong place, rather than that something failed there.
    #[must_use]
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
    /// Reads the secret; starts the private MariaDB, or attaches to it, unless the configuration names
    /// another. Makes the secret and the private MariaDB if they are missing and `purpose` allows it.
    ///
    /// # Errors
    /// There is no secret or no private MariaDB, and none may be made; or one can't be used. A named
    /// MariaDB is contacted only before a secret is made.
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
            Purpose::Serve => Role::Service,
            Purpose::Init | Purpose::Command => Role::Command,
        };
        let embedded = Embedded::attach_or_start(config, &secret, role).await?;
        Ok(Self { secret, database: embedded.address().clone(), embedded: Some(embedded) })
    }

    /// Whether a private MariaDB that this process runs answers, as it changes.
    #[must_use]
    pub fn database_health(&self) -> Option<watch::Receiver<Health>> {
        self.embedded.as_ref().and_then(Embedded::health)
    }

    /// Stops what was started.
    pub async fn close(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }
}

/// Makes the secret of a new installation. An installation that exists never gets another one: with
/// it, an origin would change the passwords of all accounts, and no key would be valid.
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

/// The MariaDB of the configuration, in words, if it holds an installation.
async fn existing(config: &Config) -> Result<Option<String>, InstallationError> {
    let Some(address) = &config.database_url else {
        let data_dir = config.data_dir.display();
        return Ok(Embedded::exists(&config.data_dir).then(|| format!("the private MariaDB in {data_dir}")));
    };
    // Nothing that this secret derives reaches MariaDB: the version is only read.
    let admin = Admin::new(address, &InstallationSecret::temporary()?, config.connect_timeout);
    let version = admin.schema_version().await;
    admin.close().await;
    match version {
        Ok(version) => Ok(version.map(|_| format!("MariaDB at {}", address.endpoint))),
        // An account without any right on `selkie` may still be allowed to create it.
        Err(AdminError::Denied { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
