//! Reads, creates and corrects the two MariaDB accounts of each project: their passwords and grants.

mod end;
mod state;

use crate::database::{errno, typed_rows};
use std::collections::BTreeSet;
use std::fmt;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use secrecy::{ExposeSecret, SecretString};
use sha1::{Digest, Sha1};
use shared::ident::{DatabaseName, FieldName, ProjectName, TableName};
use shared::key::Access;

pub use self::state::{AccountState, Accounts, DatabaseRights};
use self::state::{GRANTS, Grant, split_grantee};
use super::projects::{DatabaseRow, Drops};
use super::quote::{exact, ident, own};
use super::{Admin, AdminError};
use crate::config::Account;

/// The privileges on a project's databases of the account for keys with full access. GRANT OPTION and server-wide
/// privileges such as FILE, SUPER and PROCESS are never granted.
const READ_WRITE: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "ALTER",
    "INDEX",
    "REFERENCES",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "EVENT",
    "TRIGGER",
    "DELETE HISTORY",
];

const READ_ONLY: &[&str] = &["SELECT", "SHOW VIEW"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(Access);

impl Rights {
    pub const fn of(access: Access) -> Self {
        Self(access)
    }

    /// Returns the privileges on the project's databases, in the words of GRANT. Does not consider [`Drops`]: includes
    /// DROP for [`Access::Full`].
    pub const fn privileges(self) -> &'static [&'static str] {
        match self.0 {
            Access::Full => READ_WRITE,
            Access::Read => READ_ONLY,
        }
    }

    /// Returns the privileges on one database, in the words of GRANT: without DROP for [`Drops::Nothing`].
    fn with(self, drops: Drops) -> BTreeSet<String> {
        self.privileges()
            .iter()
            .filter(|name| drops != Drops::Nothing || **name != "DROP")
            .map(|name| (*name).to_owned())
            .collect()
    }
}

/// The name of the account for a project's keys of one access: `selkie-<project>-rw` or `selkie-<project>-ro`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName(String);

impl AccountName {
    /// Returns the name of the account for a project's keys with `access`. The name needs no escaping in SQL strings,
    /// since project names have only lower-case letters, digits and hyphens.
    pub fn of(project: &ProjectName, access: Access) -> Self {
        let suffix = match access {
            Access::Full => "rw",
            Access::Read => "ro",
        };
        Self(format!("selkie-{project}-{suffix}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn at(&self, host: &str) -> String {
        format!("'{}'@'{}'", self.0, host.replace(['\'', '\\'], ""))
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the privileges that a project's account should have: on each of `databases`, the project's recorded ones,
/// and on all databases named `<project>_…`. If both patterns match a database, MariaDB uses the one without a
/// wildcard.
pub(crate) fn rights_on(project: &ProjectName, rights: Rights, databases: &[DatabaseRow]) -> DatabaseRights {
    let recorded = databases.iter().map(|row| (exact(&row.name), rights.with(row.drops)));
    recorded.chain([(own(project), rights.with(Drops::Database))]).collect()
}

pub(crate) fn exact_pattern(database: &DatabaseName) -> String {
    exact(database)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginCheck {
    /// MariaDB accepted the login. The state holds the account's rights, but no password hash.
    Welcome(AccountState),
    Refused(String),
}

impl Admin {
    /// Returns the MariaDB accounts of all projects, at every host, with their rights. Returns an empty map if the
    /// admin account may not read `mysql.user`.
    pub async fn accounts(&self) -> Result<Accounts, AdminError> {
        let mut conn = self.conn().await?;
        let mut accounts = Accounts::new();
        let users: Result<Vec<(String, String, Option<String>)>, _> = self
            .within(typed_rows::all(
                conn.query_iter(
                    "SELECT User, Host, authentication_string FROM mysql.user WHERE User LIKE 'selkie-%-r_'",
                ),
            ))
            .await;
        let users = match users {
            Ok(users) => users,
            Err(AdminError::Denied { .. }) => return Ok(accounts),
            Err(error) => return Err(error),
        };
        for (user, host, password_hash) in users {
            accounts.insert((user, host), AccountState { password_hash, ..AccountState::default() });
        }
        let grants: Vec<Grant> = self.within(typed_rows::all(conn.query_iter(GRANTS))).await?;
        for (grantee, kind, place, privilege) in grants {
            if let Some(state) = split_grantee(&grantee).and_then(|name| accounts.get_mut(&name)) {
                state.note(&kind, place, privilege);
            }
        }
        let roles: Vec<(String, String, String)> = self
            .within(typed_rows::all(
                conn.query_iter("SELECT User, Host, Role FROM mysql.roles_mapping WHERE User LIKE 'selkie-%-r_'"),
            ))
            .await?;
        for (user, host, role) in roles {
            if let Some(state) = accounts.get_mut(&(user, host)) {
                state.roles.insert(role);
            }
        }
        Ok(accounts)
    }

    /// Creates or corrects a project's account so that it has this password and exactly the rights `wanted`, at
    /// [`account_host`](Self::account_host) and at every other host in `accounts`, the result of
    /// [`accounts`](Self::accounts). Rights that `accounts` does not list are not revoked. After an error, some of the
    /// changes may have been made.
    pub async fn settle_account(
        &self,
        name: &AccountName,
        password: &SecretString,
        wanted: &DatabaseRights,
        accounts: &Accounts,
    ) -> Result<(), AdminError> {
        let here = self.account_host();
        let mut hosts: BTreeSet<&str> = BTreeSet::from([here]);
        let elsewhere = accounts
            .range((name.as_str().to_owned(), String::new())..)
            .map(|(account, _)| account)
            .take_while(|(user, _)| user == name.as_str());
        hosts.extend(elsewhere.map(|(_, host)| host.as_str()));
        for host in hosts {
            let key = (name.as_str().to_owned(), host.to_owned());
            let found = accounts.get(&key).cloned().unwrap_or_default();
            if found.password_hash.as_deref() != Some(&hash(password)) {
                self.set_password(name, host, password).await?;
            }
            self.settle_grants(name, host, &found, wanted).await?;
        }
        Ok(())
    }

    async fn set_password(&self, name: &AccountName, host: &str, password: &SecretString) -> Result<(), AdminError> {
        let account = name.at(host);
        let by_hash = format!("PASSWORD '{}'", hash(password));
        match self.identify(&account, &by_hash).await {
            // A server that checks the strength of passwords refuses a hash and needs the plain text, which its logs
            // may show: so the hash is tried first.
            Err(error) if error.errno() == Some(errno::OPTION_PREVENTS_STATEMENT) => {
                self.identify(&account, &format!("'{}'", password.expose_secret())).await
            }
            outcome => outcome,
        }
    }

    async fn identify(&self, account: &str, secret: &str) -> Result<(), AdminError> {
        self.run(format!("CREATE USER IF NOT EXISTS {account} IDENTIFIED BY {secret}")).await?;
        self.run(format!("ALTER USER {account} IDENTIFIED BY {secret}")).await
    }

    async fn settle_grants(
        &self,
        name: &AccountName,
        host: &str,
        found: &AccountState,
        wanted: &DatabaseRights,
    ) -> Result<(), AdminError> {
        let account = name.at(host);
        // Roles are revoked first: REVOKE ALL would revoke them too, and revoking a role again fails.
        for role in &found.roles {
            self.run(format!("REVOKE {} FROM {account}", ident(role))).await?;
        }
        if !found.global.is_empty() || !found.other.is_empty() {
            // The account has privileges that no project may have. The loop below grants the project's databases again.
            self.run(format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account}")).await?;
        }
        let untouched = found.global.is_empty() && found.other.is_empty();
        for (pattern, privileges) in &found.databases {
            let excess = wanted.get(pattern).is_none_or(|wanted| !privileges.is_subset(wanted));
            if untouched && excess {
                self.revoke(&account, pattern).await?;
            }
        }
        for (pattern, wanted) in wanted {
            if untouched && found.databases.get(pattern) == Some(wanted) {
                continue;
            }
            let list: Vec<&str> = wanted.iter().map(String::as_str).collect();
            self.run(format!("GRANT {} ON {}.* TO {account}", list.join(", "), ident(pattern))).await?;
        }
        Ok(())
    }

    pub async fn revoke_database(&self, project: &ProjectName, database: &DatabaseName) -> Result<(), AdminError> {
        let pattern = exact(database);
        let accounts = self.accounts().await?;
        for access in [Access::Full, Access::Read] {
            let name = AccountName::of(project, access);
            let hosts = accounts.iter().filter(|((user, _), _)| user == name.as_str());
            for ((_, host), state) in hosts {
                if state.databases.contains_key(&pattern) {
                    self.revoke(&name.at(host), &pattern).await?;
                }
            }
        }
        Ok(())
    }

    async fn revoke(&self, account: &str, pattern: &str) -> Result<(), AdminError> {
        let place = ident(pattern);
        match self.run(format!("REVOKE ALL PRIVILEGES ON {place}.* FROM {account}")).await {
            // Another origin has revoked the privileges in the meantime.
            Err(error) if error.errno() == Some(errno::NONEXISTING_GRANT) => Ok(()),
            outcome => outcome,
        }
    }

    /// Logs in as an account and reads its rights. Returns [`LoginCheck::Refused`] if MariaDB refuses the login.
    pub async fn check_login(&self, account: &Account) -> Result<LoginCheck, AdminError> {
        let mut conn = match self.log_in(account).await {
            Ok(conn) => conn,
            Err(AdminError::Login { message, .. }) => return Ok(LoginCheck::Refused(message)),
            Err(error) => return Err(error),
        };
        let mut state = AccountState::default();
        let grants: Vec<Grant> = self.within(typed_rows::all(conn.query_iter(GRANTS))).await?;
        for (_, kind, place, privilege) in grants {
            state.note(&kind, place, privilege);
        }
        let roles: Vec<String> = self
            .within(typed_rows::all(conn.query_iter("SELECT ROLE_NAME FROM information_schema.APPLICABLE_ROLES")))
            .await?;
        state.roles.extend(roles);
        // An error is ignored: the connection is dropped in any case.
        let _ = self.within(conn.disconnect()).await;
        Ok(LoginCheck::Welcome(state))
    }

    /// Logs in as an account and returns the columns of the tables and views that the account sees, sorted by database,
    /// table and position in the table. Leaves out system databases and tables, and names that the API can't serve.
    /// Returns [`AdminError::Login`] if MariaDB refused the login.
    pub async fn visible_columns(
        &self,
        account: &Account,
    ) -> Result<Vec<(DatabaseName, TableName, FieldName)>, AdminError> {
        let mut conn = self.log_in(account).await?;
        let rows: Vec<(String, String, String)> = self
            .within(typed_rows::all(conn.query_iter(
                "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
                 ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
            )))
            .await?;
        // An error is ignored: the connection is dropped in any case.
        let _ = self.within(conn.disconnect()).await;
        let parsed = rows.iter().filter_map(|(database, table, column)| {
            let database = DatabaseName::parse(database).ok().filter(|name| !name.is_system())?;
            let table = TableName::parse(table).ok().filter(|name| !name.is_system())?;
            Some((database, table, FieldName::parse(column).ok()?))
        });
        Ok(parsed.collect())
    }

    async fn log_in(&self, account: &Account) -> Result<Conn, AdminError> {
        let opened = self.connect(&account.user, &account.password).await?;
        opened.map_err(|error| AdminError::of(error, &account.user))
    }
}

/// Returns the hash that `mysql_native_password` stores: `*` and the hex SHA-1 of the SHA-1 of the password. The
/// passwords have 256 random bits, so the weak hash is safe. A password set by its hash stays out of MariaDB's logs.
fn hash(password: &SecretString) -> String {
    let once = Sha1::digest(password.expose_secret().as_bytes());
    let twice = Sha1::digest(once);
    let hex: String = twice.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("*{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_hash_is_the_one_that_mariadb_makes() {
        let hashed = hash(&SecretString::from("password"));
        assert_eq!(hashed, "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    }

    #[test]
    fn no_project_is_named_like_anothers_account() {
        let name =
            |project: &str, access| AccountName::of(&ProjectName::parse(project).unwrap(), access).as_str().to_owned();
        assert_eq!(name("a", Access::Full), "selkie-a-rw");
        assert_eq!(name("a-rw", Access::Read), "selkie-a-rw-ro");
        assert!(READ_WRITE.iter().all(|right| !["FILE", "SUPER", "PROCESS", "GRANT OPTION"].contains(right)));
    }
}
