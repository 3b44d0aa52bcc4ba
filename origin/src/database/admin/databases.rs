//! MariaDB's databases themselves: which exist, making and dropping one.

use crate::database::ask;
use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::quote::ident;
use super::{Admin, AdminError};

/// MariaDB's number for "database exists".
const EXISTS: u16 = 1007;

/// What came of creating a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    New,
    /// It was there already, and nothing was changed.
    Existing,
}

impl Admin {
    /// Every database that the server has and the admin account may see, by name.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn databases(&self) -> Result<Vec<DatabaseName>, AdminError> {
        let mut conn = self.conn().await?;
        let names: Vec<String> = self
            .within(ask::all(
                conn.query_iter("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME"),
            ))
            .await?;
        // What we can't name, we can't serve either.
        Ok(names.iter().filter_map(|name| DatabaseName::parse(name).ok()).collect())
    }

    /// Databases that have a table of this name, as far as the admin account may see them.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn databases_with(&self, table: &str) -> Result<Vec<DatabaseName>, AdminError> {
        let mut conn = self.conn().await?;
        let names: Vec<String> = self
            .within(ask::all(
                conn.exec_iter("SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = ?", (table,)),
            ))
            .await?;
        Ok(names.iter().filter_map(|name| DatabaseName::parse(name).ok()).collect())
    }

    /// Whether there is a database of this name.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn exists(&self, name: &str) -> Result<bool, AdminError> {
        let mut conn = self.conn().await?;
        let found: Option<u8> = self
            .within(ask::first(
                conn.exec_iter("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ? LIMIT 1", (name,)),
            ))
            .await?;
        Ok(found.is_some())
    }

    /// Makes a database, in utf8mb4: the server's own default may hold no more than Western Europe.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn create_database(&self, name: &DatabaseName) -> Result<Created, AdminError> {
        let created = self
            .run(format!("CREATE DATABASE {} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", ident(name.as_str())))
            .await;
        match created {
            Ok(()) => Ok(Created::New),
            Err(error) if error.errno() == Some(EXISTS) => Ok(Created::Existing),
            Err(error) => Err(error),
        }
    }

    /// Drops a database with all its tables. None of that name is no fault.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn drop_database(&self, name: &DatabaseName) -> Result<(), AdminError> {
        self.run(format!("DROP DATABASE IF EXISTS {}", ident(name.as_str()))).await
    }

    /// The name as the server keeps it: servers that fold case keep lower case.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn canonical(&self, name: &DatabaseName) -> Result<DatabaseName, AdminError> {
        let mut conn = self.conn().await?;
        let folds: Option<u8> = self.within(ask::first(conn.query_iter("SELECT @@lower_case_table_names"))).await?;
        match folds {
            Some(0) | None => Ok(name.clone()),
            Some(_) => {
                DatabaseName::parse(&name.as_str().to_lowercase()).map_err(|_| AdminError::Corrupt("database name"))
            }
        }
    }
}
