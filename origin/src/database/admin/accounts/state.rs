//! The rights of accounts, parsed from `information_schema`.

use std::collections::{BTreeMap, BTreeSet};

/// The privileges of an account, in the words of GRANT, by the database pattern of their GRANT.
pub type DatabaseRights = BTreeMap<String, BTreeSet<String>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// The column `authentication_string` of `mysql.user`; `None` if the column is NULL or was not read.
    pub password_hash: Option<String>,
    /// Privileges on the whole server, without USAGE.
    pub global: BTreeSet<String>,
    pub databases: DatabaseRights,
    pub roles: BTreeSet<String>,
    /// Other rights, as text: privileges on single tables and columns, GRANT OPTION.
    pub other: BTreeSet<String>,
}

pub type Accounts = BTreeMap<(String, String), AccountState>;

pub(super) type Grant = (String, String, String, String);

/// Selects all visible privileges on the server, databases, tables and columns, as rows of grantee, kind (`global`,
/// `database`, `table`, or `grantable` for GRANT OPTION), object and privilege.
pub(super) const GRANTS: &str = "SELECT GRANTEE, 'global', '', PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
    UNION ALL SELECT GRANTEE, 'grantable', '*.*', PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
        WHERE IS_GRANTABLE = 'YES'
    UNION ALL SELECT GRANTEE, 'database', TABLE_SCHEMA, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES
    UNION ALL SELECT GRANTEE, 'grantable', TABLE_SCHEMA, PRIVILEGE_TYPE
        FROM information_schema.SCHEMA_PRIVILEGES WHERE IS_GRANTABLE = 'YES'
    UNION ALL SELECT GRANTEE, 'table', CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), PRIVILEGE_TYPE
        FROM information_schema.TABLE_PRIVILEGES
    UNION ALL SELECT GRANTEE, 'table', CONCAT(TABLE_SCHEMA, '.', TABLE_NAME, '.', COLUMN_NAME), PRIVILEGE_TYPE
        FROM information_schema.COLUMN_PRIVILEGES";

impl AccountState {
    pub(super) fn note(&mut self, kind: &str, place: String, privilege: String) {
        match kind {
            // USAGE means "no privileges".
            "global" | "grantable" if privilege == "USAGE" => {}
            "global" => {
                self.global.insert(privilege);
            }
            "database" => {
                self.databases.entry(place).or_default().insert(privilege);
            }
            "grantable" => {
                self.other.insert(format!("GRANT OPTION on {place}"));
            }
            _ => {
                self.other.insert(format!("{privilege} on {place}"));
            }
        }
    }
}

/// Splits a grantee of `information_schema`, `'user'@'host'`, into user and host; `None` for other texts, such as
/// `PUBLIC`.
pub(super) fn split_grantee(grantee: &str) -> Option<(String, String)> {
    let inner = grantee.strip_prefix('\'')?.strip_suffix('\'')?;
    let (user, host) = inner.rsplit_once("'@'")?;
    Some((user.to_owned(), host.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grantee_is_taken_apart() {
        let (user, host) = split_grantee("'selkie-a-rw'@'%'").unwrap();
        assert_eq!((user.as_str(), host.as_str()), ("selkie-a-rw", "%"));
        assert_eq!(split_grantee("PUBLIC"), None);
    }
}
