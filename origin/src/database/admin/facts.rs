//! Reads properties of the MariaDB server, for the command `selkie doctor`, backups, metrics and limits.

use crate::database::typed_rows;
use mysql_async::Row;
use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::{Admin, AdminError};

#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    /// The version as the server writes it, for example `10.11.19-MariaDB-0+deb12u1`.
    pub version: String,
    /// The server's time, in seconds since 1970, with fractions.
    pub clock: f64,
    pub max_connections: u64,
    /// Enabled storage engines that read other servers or files, which any key that may create tables could use.
    pub far_reaching_engines: Vec<String>,
}

/// A finding about the server's grants: a privilege on databases that every account has, or an anonymous account, which
/// matches any user name without an account of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrangeGrant {
    /// The account or role, for example `''@'localhost'` or `PUBLIC`.
    pub grantee: String,
    /// The pattern of the databases that the privilege covers; `None` if the finding is the anonymous account itself.
    pub pattern: Option<String>,
}

impl StrangeGrant {
    /// Returns the host of an anonymous account; `None` if the finding is a privilege.
    pub fn nameless_host(&self) -> Option<&str> {
        let host = self.grantee.strip_prefix("''@'")?.strip_suffix('\'')?;
        self.pattern.is_none().then_some(host)
    }
}

impl ServerFacts {
    /// Returns MariaDB's major and minor version; `None` if the server is not MariaDB or its version can't be parsed.
    pub fn mariadb(&self) -> Option<(u32, u32)> {
        if !self.version.to_ascii_lowercase().contains("mariadb") {
            return None;
        }
        // For old replication clients, MariaDB prefixes its version with `5.5.5-`.
        let version = self.version.strip_prefix("5.5.5-").unwrap_or(&self.version);
        let mut numbers = version.split(['.', '-']).map_while(|part| part.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }
}

/// Selects views, routines, triggers and events that run with the rights of their definer. No other column of `VIEWS`
/// is read: MariaDB would open the views, and run functions of projects as the admin account.
const DEFINERS: &str = "SELECT CONCAT('view ', TABLE_SCHEMA, '.', TABLE_NAME), DEFINER FROM information_schema.VIEWS
    WHERE TABLE_SCHEMA = ? AND SECURITY_TYPE = 'DEFINER'
    UNION ALL SELECT CONCAT(LOWER(ROUTINE_TYPE), ' ', ROUTINE_SCHEMA, '.', ROUTINE_NAME), DEFINER
    FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ? AND SECURITY_TYPE = 'DEFINER'
    UNION ALL SELECT CONCAT('trigger ', TRIGGER_SCHEMA, '.', TRIGGER_NAME), DEFINER
    FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?
    UNION ALL SELECT CONCAT('event ', EVENT_SCHEMA, '.', EVENT_NAME), DEFINER
    FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ?";

impl Admin {
    /// Returns what runs with its definer's rights in a database, such as `view shop.sales`, each with the definer,
    /// such as `root@localhost`.
    pub async fn definers(&self, database: &DatabaseName) -> Result<Vec<(String, String)>, AdminError> {
        let mut conn = self.conn().await?;
        self.within(typed_rows::all(conn.exec_iter(DEFINERS, vec![database.as_str(); 4]))).await
    }

    pub async fn server_facts(&self) -> Result<ServerFacts, AdminError> {
        let mut conn = self.conn().await?;
        let row: Option<(String, f64, u64)> = self
            .within(typed_rows::first(
                conn.query_iter("SELECT VERSION(), CAST(UNIX_TIMESTAMP(NOW(6)) AS DOUBLE), @@max_connections"),
            ))
            .await?;
        let (version, clock, max_connections) = row.ok_or(AdminError::Corrupt("answer about the server"))?;
        let far_reaching_engines = self
            .within(typed_rows::all(conn.query_iter(
                "SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')
                 AND ENGINE IN ('FEDERATED', 'CONNECT', 'SPIDER', 'S3', 'OQGRAPH', 'SPHINX')",
            )))
            .await?;
        Ok(ServerFacts { version, clock, max_connections, far_reaching_engines })
    }

    pub async fn packet_max_bytes(&self) -> Result<usize, AdminError> {
        let mut conn = self.conn().await?;
        let bytes: Option<usize> =
            self.within(typed_rows::first(conn.query_iter("SELECT @@GLOBAL.max_allowed_packet"))).await?;
        bytes.ok_or(AdminError::Corrupt("answer about the server"))
    }

    /// Returns the number of prepared XA transactions. Each keeps its locks, even after a restart of MariaDB, until it
    /// is committed or rolled back.
    pub async fn prepared_xa(&self) -> Result<usize, AdminError> {
        let mut conn = self.conn().await?;
        let found: Vec<Row> = self.within(typed_rows::all(conn.query_iter("XA RECOVER"))).await?;
        Ok(found.len())
    }

    /// Returns all anonymous accounts and all privileges on databases that every account has; `None` if the admin
    /// account may not read `mysql.user` or `mysql.db`.
    pub async fn strange_grants(&self) -> Result<Option<Vec<StrangeGrant>>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Result<Vec<(String, String, Option<String>)>, _> = self
            .within(typed_rows::all(conn.query_iter(
                "SELECT User, Host, NULL FROM mysql.user WHERE User = ''
                 UNION ALL SELECT User, Host, Db FROM mysql.db WHERE User IN ('', 'PUBLIC')",
            )))
            .await;
        match rows {
            Ok(rows) => Ok(Some(rows.into_iter().map(strange).collect())),
            Err(AdminError::Denied { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn strange((user, host, pattern): (String, String, Option<String>)) -> StrangeGrant {
    let grantee = if user == "PUBLIC" { user } else { format!("'{user}'@'{host}'") };
    StrangeGrant { grantee, pattern }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(version: &str) -> ServerFacts {
        ServerFacts { version: version.to_owned(), clock: 0.0, max_connections: 1, far_reaching_engines: Vec::new() }
    }

    #[test]
    fn versions_are_read_and_other_servers_told_apart() {
        assert_eq!(facts("10.11.19-MariaDB-0+deb12u1").mariadb(), Some((10, 11)));
        assert_eq!(facts("5.5.5-10.6.1-MariaDB").mariadb(), Some((10, 6)));
        assert_eq!(facts("11.4.2-MariaDB-ubu2404-log").mariadb(), Some((11, 4)));
        assert_eq!(facts("8.0.36").mariadb(), None);
    }
}
