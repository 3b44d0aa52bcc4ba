//! Ready-made MariaDB accounts, for installations whose admin account may not create users:
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

/// A MariaDB account: name and password.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User name, without host.
    pub user: String,
    /// Its password.
    pub password: SecretString,
}

/// The two accounts of one project.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAccounts {
    /// For full access.
    pub rw: Account,
    /// For reading.
    pub ro: Account,
}

/// Accounts by project name.
#[derive(Debug, Clone, Default)]
pub struct AccountsFile(pub BTreeMap<String, ProjectAccounts>);

impl AccountsFile {
    /// Takes the `accounts` table out of the file's.
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
