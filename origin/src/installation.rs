//! An opened installation: its secret and the way to its MariaDB, which is started if it is the private
//! one. What `serve`, `dev` and every command that touches the database begin with.

use std::sync::Arc;

use tokio::sync::watch;

use crate::address::DatabaseAddress;
use crate::config::Config;
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

/// Why it can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// There is no secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The private MariaDB doesn't run.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
}

impl Installation {
    /// Loads or makes the secret; starts the private MariaDB, or attaches to it, unless the
    /// configuration names another.
    ///
    /// # Errors
    /// No secret, or no private MariaDB. A named MariaDB is not contacted.
    pub async fn open(config: &Config, role: Role) -> Result<Self, InstallationError> {
        let secret = Arc::new(InstallationSecret::load_or_create(config)?);
        if let Some(database) = config.database_url.clone() {
            return Ok(Self {
                secret,
                database,
                embedded: None,
            });
        }
        let embedded = Embedded::attach_or_start(config, &secret, role).await?;
        Ok(Self {
            secret,
            database: embedded.address().clone(),
            embedded: Some(embedded),
        })
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
