//! Facts about the server that the doctor judges. Nothing is changed here.

use crate::database::ask;
use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::{Admin, AdminError};

/// The server as it presents itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    /// As it writes it, for example `10.11.19-MariaDB-0+deb12u1`.
    pub version: String,
    /// Its clock, seconds since 1970.
    pub clock: f64,
    /// Connections that it takes.
    pub max_connections: u64,
    /// Storage engines that reach beyond the server's own files: with one of them, a key that may
    /// create tables reads other servers or files.
    pub far_reaching_engines: Vec<String>,
}

/// A right that every account has, or an account that anybody may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrangeGrant {
    /// `''@'localhost'`, `PUBLIC` …
    pub grantee: String,
    /// The database pattern, or `None` for the account's mere being there.
    pub pattern: Option<String>,
}

impl StrangeGrant {
    /// The host of an account without a name; `None` for a right.
    #[must_use]
    pub fn nameless_host(&self) -> Option<&str> {
        let host = self.grantee.strip_prefix("''@'")?.strip_suffix('\'')?;
        self.pattern.is_none().then_some(host)
    }
}

impl ServerFacts {
    /// Major and minor of a MariaDB; `None` for another server.
    #[must_use]
    pub fn mariadb(&self) -> Option<(u32, u32)> {
        if !self.version.to_ascii_lowercase().contains("mariadb") {
            return None;
        }
        // Old replication protocols prefix 5.5.5-.
        let version = self.version.strip_prefix("5.5.5-").unwrap_or(&self.version);
        let mut numbers = version.split(['.', '-']).map_while(|part| part.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }
}

impl Admin {
    /// Asks the server about itself.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn server_facts(&self) -> Result<ServerFacts, AdminError> {
        let mut conn = self.conn().await?;
        let row: Option<(String, f64, u64)> = self
            .within(ask::first(
                conn.query_iter("SELECT VERSION(), CAST(UNIX_TIMESTAMP(NOW(6)) AS DOUBLE), @@max_connections"),
            ))
            .await?;
        let (version, clock, max_connections) = row.ok_or(AdminError::Corrupt("answer about the server"))?;
        let far_reaching_engines = self
            .within(ask::all(conn.query_iter(
                "SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')
                 AND ENGINE IN ('FEDERATED', 'CONNECT', 'SPIDER', 'S3', 'OQGRAPH', 'SPHINX')",
            )))
            .await?;
        Ok(ServerFacts { version, clock, max_connections, far_reaching_engines })
    }

    /// Bytes of the largest packet that the server takes.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn packet_max_bytes(&self) -> Result<usize, AdminError> {
        let mut conn = self.conn().await?;
        let bytes: Option<usize> =
            self.within(ask::first(conn.query_iter("SELECT @@GLOBAL.max_allowed_packet"))).await?;
        bytes.ok_or(AdminError::Corrupt("answer about the server"))
    }

    /// How many XA transactions the server holds prepared. Each keeps its locks, also over restarts, until
    /// somebody commits it or rolls it back.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn prepared_xa(&self) -> Result<usize, AdminError> {
        let mut conn = self.conn().await?;
        let found: Vec<Row> = self.within(ask::all(conn.query_iter("XA RECOVER"))).await?;
        Ok(found.len())
    }

    /// Accounts without a name, and rights that everybody has; `None` if the admin account may not look.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn strange_grants(&self) -> Result<Option<Vec<StrangeGrant>>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Result<Vec<(String, String, Option<String>)>, _> = self
            .within(ask::all(conn.query_iter(
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
