//! MariaDB accounts that the operator has created for projects, for an admin account that may not create users:
//!
//! ```toml
//! [accounts.default]
//! rw = { user = "app", password = "…" }
//! ro = { user = "app_read", password = "…" }
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;

use super::ConfigError;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// MariaDB user name, without the host.
    pub user: String,
    pub password: SecretString,
}

/// The two MariaDB accounts that run the statements of a project's callers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAccounts {
    /// Account for requests with a full key or with a role that may write to a table.
    pub rw: Account,
    /// Account for requests with a read key or with a role that may not write to tables.
    pub ro: Account,
}

#[derive(Debug, Clone, Default)]
pub struct AccountsFile(pub BTreeMap<String, ProjectAccounts>);

impl AccountsFile {
    /// Removes the table `accounts` from the configuration file's content and parses it. Returns an empty map if there
    /// is no such table, and [`ConfigError::BadAccounts`] if it is malformed.
    pub(super) fn take(table: &mut toml::Table, path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(value) = table.remove("accounts") else {
            return Ok(Self::default());
        };
        value.try_into().map(Self).map_err(|error: toml::de::Error| ConfigError::BadAccounts {
            path: path.unwrap_or(Path::new("selkie.toml")).to_owned(),
            reason: error.message().to_owned(),
        })
    }
}
