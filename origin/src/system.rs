//! The system as a whole: its schema at this program's version, projects and keys over one
//! administrator. What `serve` and every command begin with once MariaDB answers.

pub mod edge_secret;
pub mod installation;
pub mod keys;
pub mod projects;

use std::sync::Arc;
use std::time::Duration;

use crate::address::{DatabaseAddress, Endpoint};
use crate::config::Config;
use crate::database::admin::{Admin, AdminError};
use crate::database::retry::Retries;
use crate::media::sign::Signer;
use crate::query::cursor::PageTokens;
use crate::secret::InstallationSecret;
use crate::system::edge_secret::EdgeSecret;
use crate::system::keys::{KeyError, Keys};
use crate::system::projects::{ProjectError, Projects};

/// For origins that start at the same time on different nodes of a cluster. Each step may be done twice.
const RETRIES: Retries = Retries { tries: 8, pause: Duration::from_millis(50) };

/// The system of one installation.
#[derive(Clone, Debug)]
pub struct System {
    /// Where MariaDB is.
    pub address: DatabaseAddress,
    /// The administrator.
    pub admin: Admin,
    /// Projects, databases and accounts.
    pub projects: Projects,
    /// Keys.
    pub keys: Keys,
    /// Tokens of pages.
    pub pages: PageTokens,
    /// Signatures of private files' URLs.
    pub signer: Signer,
    /// By what the edge proves itself.
    pub edge_secret: EdgeSecret,
}

/// What [`System::init`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialised {
    /// There was no system schema.
    New,
    /// There was one.
    Existing,
}

/// Why the system could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// MariaDB, or the way to it.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// Projects and their accounts.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// Keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// MariaDB holds no installation.
    #[error("MariaDB at {0} holds no installation: it has no schema `selkie`")]
    NoSchema(Endpoint),
}

impl SystemError {
    /// Whether others did the same at the same time, so that it may succeed if it is tried again.
    fn is_contended(&self) -> bool {
        match self {
            Self::Admin(error)
            | Self::Project(ProjectError::Admin(error))
            | Self::Key(KeyError::Admin(error) | KeyError::Project(ProjectError::Admin(error))) => error.is_contended(),
            Self::Project(_) | Self::Key(_) | Self::NoSchema(_) => false,
        }
    }

    /// How to mend it, if that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Project(error) => error.hint(),
            Self::Key(error) => error.hint(),
            Self::NoSchema(_) => Some(
                "check that SELKIE_DATABASE_URL names the MariaDB of the installation; \
                 `selkie init` makes a new installation there"
                    .to_owned(),
            ),
        }
    }
}

impl System {
    /// Puts the parts together; contacts nothing.
    #[must_use]
    pub fn new(address: &DatabaseAddress, secret: Arc<InstallationSecret>, config: &Config) -> Self {
        let admin = Admin::new(address, &secret, config.connect_timeout);
        let projects = Projects::new(admin.clone(), Arc::clone(&secret), config.accounts.clone());
        let pages = PageTokens::new(&secret);
        let signer = Signer::new(&secret);
        let edge_secret = EdgeSecret::new(&secret);
        let keys = Keys::new(admin.clone(), secret, projects.clone());
        Self { address: address.clone(), admin, projects, keys, pages, signer, edge_secret }
    }

    /// Brings the schema of an installation that exists to this program's version and sees that the
    /// default project is there: enough for a command, which sets up no more than it touches.
    ///
    /// # Errors
    /// There is no system schema; MariaDB is out of reach or denies a right; the schema is newer.
    pub async fn migrate(&self) -> Result<(), SystemError> {
        if self.admin.schema_version().await?.is_none() {
            return Err(SystemError::NoSchema(self.address.endpoint.clone()));
        }
        let migrate = async || {
            self.admin.migrate().await?;
            self.projects.ensure_default().await?;
            Ok(())
        };
        RETRIES.run(SystemError::is_contended, migrate).await
    }

    /// Makes the system schema, the default project and the first signing key where they are missing.
    /// Leaves the accounts of other projects alone: ready-made accounts may have rights on databases
    /// that are still to be adopted.
    ///
    /// # Errors
    /// MariaDB is out of reach or denies a right; the schema is newer.
    pub async fn init(&self) -> Result<Initialised, SystemError> {
        let before = self.admin.schema_version().await;
        let init = async || {
            self.admin.migrate().await?;
            self.projects.ensure_default().await?;
            self.keys.prepare().await?;
            Ok(())
        };
        RETRIES.run(SystemError::is_contended, init).await?;
        Ok(match before {
            Ok(Some(_)) => Initialised::Existing,
            _ => Initialised::New,
        })
    }

    /// Brings the schema to this program's version, makes the default project and the first signing
    /// key, and sets every project's accounts right. Safe when several origins start at once, also on
    /// different nodes of a cluster, which have no lock in common; quick when there is nothing to do.
    ///
    /// # Errors
    /// MariaDB is out of reach or denies a right; the schema is newer; a ready-made account is wrong.
    pub async fn prepare(&self) -> Result<(), SystemError> {
        let prepare = async || {
            self.admin.migrate().await?;
            self.projects.prepare().await?;
            self.keys.prepare().await?;
            Ok(())
        };
        RETRIES.run(SystemError::is_contended, prepare).await
    }

    /// Closes the connections.
    pub async fn close(self) {
        self.admin.close().await;
    }
}
