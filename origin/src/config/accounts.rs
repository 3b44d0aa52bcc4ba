//! MariaDB accounts that the operator has created for projects, for an admin account that may not create users: tables
//! such as `[accounts.default]`, each with `rw` and `ro`.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;

use super::ConfigError;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub user: String,
    pub password: SecretString,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectAccounts {
    /// Runs requests with a full key or a role that may write to a table.
    pub rw: Account,
    pub ro: Account,
}

#[derive(Debug, Clone, Default)]
pub struct AccountsFile(pub BTreeMap<String, ProjectAccounts>);

impl AccountsFile {
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
