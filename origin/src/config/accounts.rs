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
    /// Without the host.
    pub user: String,
    pub password: SecretString,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAccounts {
    /// For full keys and roles that may write to a table.
    pub rw: Account,
    /// For read keys and roles that may not write to tables.
    pub ro: Account,
}

#[derive(Debug, Clone, Default)]
pub struct AccountsFile(pub BTreeMap<String, ProjectAccounts>);

impl AccountsFile {
    /// Removes the table `accounts` from the configuration file's content.
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
