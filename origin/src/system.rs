//! The system schema `selkie`, projects and keys of an installation, for `serve` and most commands.

pub mod edge_secret;
pub mod installation;
pub mod issuers;
pub mod keys;
pub mod projects;
pub mod roles;

use std::sync::Arc;
use std::time::Duration;

use crate::address::{DatabaseAddress, Endpoint};
use crate::config::Config;
use crate::database::admin::{Admin, AdminError};
use crate::database::hosts::{HostRole, Hosts};
use crate::database::retry::Retries;
use crate::media::sign::UrlSigner;
use crate::query::cursor::PageTokens;
use crate::secret::InstallationSecret;
use crate::system::edge_secret::EdgeSecret;
use crate::system::keys::{KeyError, Keys};
use crate::system::projects::{ProjectError, Projects};

/// Retries, since another process may migrate or prepare at the same time. Each step is idempotent.
const RETRIES: Retries = Retries { tries: 8, pause: Duration::from_millis(50) };

#[derive(Clone, Debug)]
pub struct System {
    pub hosts: Hosts,
    pub admin: Admin,
    pub projects: Projects,
    pub keys: Keys,
    pub pages: PageTokens,
    pub signer: UrlSigner,
    pub edge_secret: EdgeSecret,
    pub secret: Arc<InstallationSecret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialised {
    New,
    Existing,
}

#[derive(Debug, thiserror::Error)]
pub enum SystemSchemaError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("MariaDB at {0} holds no installation: it has no schema `selkie`")]
    NoSchema(Endpoint),
}

impl SystemSchemaError {
    fn is_contended(&self) -> bool {
        match self {
            Self::Admin(error)
            | Self::Project(ProjectError::Admin(error))
            | Self::Key(KeyError::Admin(error) | KeyError::Project(ProjectError::Admin(error))) => error.is_contended(),
            Self::Project(_) | Self::Key(_) | Self::NoSchema(_) => false,
        }
    }

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
    pub fn new(address: &DatabaseAddress, secret: Arc<InstallationSecret>, config: &Config) -> Self {
        let hosts = Hosts::new(address, HostRole::Serving);
        let admin = Admin::new(&hosts, &secret, config.connect_timeout);
        let projects = Projects::new(admin.clone(), Arc::clone(&secret), config.accounts.clone());
        let pages = PageTokens::new(&secret);
        let signer = UrlSigner::new(&secret);
        let edge_secret = EdgeSecret::new(&secret);
        let keys = Keys::new(admin.clone(), Arc::clone(&secret), projects.clone());
        Self { hosts, admin, projects, keys, pages, signer, edge_secret, secret }
    }

    pub async fn migrate(&self) -> Result<(), SystemSchemaError> {
        if self.admin.schema_version().await?.is_none() {
            return Err(SystemSchemaError::NoSchema(self.hosts.address().endpoint.clone()));
        }
        let migrate = async || {
            self.admin.migrate().await?;
            self.projects.ensure_default().await?;
            Ok(())
        };
        RETRIES.run(SystemSchemaError::is_contended, migrate).await
    }

    /// Creates the installation. Does not check accounts from the configuration: they may get rights only later.
    pub async fn init(&self) -> Result<Initialised, SystemSchemaError> {
        let before = self.admin.schema_version().await;
        let init = async || {
            self.admin.migrate().await?;
            self.projects.ensure_default().await?;
            self.keys.prepare().await?;
            Ok(())
        };
        RETRIES.run(SystemSchemaError::is_contended, init).await?;
        Ok(match before {
            Ok(Some(_)) => Initialised::Existing,
            _ => Initialised::New,
        })
    }

    /// Migrates and prepares the system schema. Safe if several origins start at once, even on nodes of a cluster.
    pub async fn prepare(&self) -> Result<(), SystemSchemaError> {
        let prepare = async || {
            self.admin.migrate().await?;
            self.projects.prepare().await?;
            self.keys.prepare().await?;
            Ok(())
        };
        RETRIES.run(SystemSchemaError::is_contended, prepare).await
    }

    pub async fn close(self) {
        self.admin.close().await;
    }
}
