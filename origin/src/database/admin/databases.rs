//! Lists, creates and drops MariaDB's databases.

use crate::database::{errno, typed_rows};
use mysql_async::prelude::Queryable;
use shared::ident::{DatabaseName, folded};

use super::quote::ident;
use super::{Admin, AdminError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    Existing,
}

impl Admin {
    /// Returns the databases that the admin account can see, MariaDB's own included, sorted by name. Leaves out a
    /// database whose name is no valid [`DatabaseName`], since the API can't serve it.
    pub async fn databases(&self) -> Result<Vec<DatabaseName>, AdminError> {
        let mut conn = self.conn().await?;
        let names: Vec<String> = self
            .within(typed_rows::all(
                conn.query_iter("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME"),
            ))
            .await?;
        Ok(names.iter().filter_map(|name| DatabaseName::parse(name).ok()).collect())
    }

    /// Returns the databases that have a table or view of this name, as far as the admin account can see them, in no
    /// particular order. Leaves out a database whose name is no valid [`DatabaseName`].
    pub async fn databases_with(&self, table: &str) -> Result<Vec<DatabaseName>, AdminError> {
        let mut conn = self.conn().await?;
        let names: Vec<String> = self
            .within(typed_rows::all(
                conn.exec_iter("SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = ?", (table,)),
            ))
            .await?;
        Ok(names.iter().filter_map(|name| DatabaseName::parse(name).ok()).collect())
    }

    pub async fn exists(&self, name: &str) -> Result<bool, AdminError> {
        let mut conn = self.conn().await?;
        let found: Option<u8> = self
            .within(typed_rows::first(
                conn.exec_iter("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ? LIMIT 1", (name,)),
            ))
            .await?;
        Ok(found.is_some())
    }

    /// Creates a database with character set utf8mb4, since the server's default may be latin1. Returns
    /// [`Created::Existing`] and changes nothing if the database exists.
    pub async fn create_database(&self, name: &DatabaseName) -> Result<Created, AdminError> {
        self.create_commented(name, "").await
    }

    /// Creates a database as [`Admin::create_database`] does, with a comment without quotes and backslashes.
    pub(super) async fn create_commented(
        &self,
        name: &DatabaseName,
        comment: &'static str,
    ) -> Result<Created, AdminError> {
        let name = ident(name.as_str());
        let character_set = "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci";
        match self.run(format!("CREATE DATABASE {name} {character_set} COMMENT '{comment}'")).await {
            Ok(()) => Ok(Created::New),
            Err(error) if error.errno() == Some(errno::DB_CREATE_EXISTS) => Ok(Created::Existing),
            Err(error) => Err(error),
        }
    }

    pub async fn drop_database(&self, name: &DatabaseName) -> Result<(), AdminError> {
        self.run(format!("DROP DATABASE IF EXISTS {}", ident(name.as_str()))).await
    }

    /// Returns the name in lower case if the server compares names without case (`lower_case_table_names` is not 0),
    /// otherwise the name as given.
    pub async fn canonical(&self, name: &DatabaseName) -> Result<DatabaseName, AdminError> {
        let mut conn = self.conn().await?;
        let folds: Option<u8> =
            self.within(typed_rows::first(conn.query_iter("SELECT @@lower_case_table_names"))).await?;
        match folds {
            Some(0) | None => Ok(name.clone()),
            Some(_) => DatabaseName::parse(&folded(name.as_str())).map_err(|_| AdminError::Corrupt("database name")),
        }
    }
}
