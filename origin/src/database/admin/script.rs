//! Runs the statements of an operator's file of SQL, under the account of a project. The driver sends no local files to
//! MariaDB and has no commands of a client.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::dump::StatementRefusal;
use super::quote::ident;
use super::{Admin, AdminError};
use crate::config::Account;
use crate::database::typed_rows;
use crate::query::sql::script::Quoting;

pub struct ScriptSession {
    admin: Admin,
    conn: Conn,
    user: String,
    /// MariaDB's `max_allowed_packet`: a larger statement ends the connection.
    pub statement_max_bytes: usize,
}

impl Admin {
    pub async fn open_script(&self, account: &Account) -> Result<ScriptSession, AdminError> {
        let mut conn = self.connect_for_dump(&account.user, &account.password).await?;
        self.within(conn.query_drop("SET NAMES utf8mb4")).await?;
        let packet: Option<usize> =
            self.within(typed_rows::first(conn.query_iter("SELECT @@max_allowed_packet"))).await?;
        let statement_max_bytes = packet.ok_or(AdminError::Corrupt("answer about the server"))?;
        Ok(ScriptSession { admin: self.clone(), conn, user: account.user.clone(), statement_max_bytes })
    }
}

impl ScriptSession {
    /// Runs a statement; its rows are discarded. The inner error is MariaDB's refusal.
    pub async fn run(&mut self, statement: Vec<u8>) -> Result<Result<(), StatementRefusal>, AdminError> {
        self.admin.try_within(&self.user, self.conn.query_drop(statement)).await
    }

    pub async fn choose(&mut self, database: &DatabaseName) -> Result<Result<(), StatementRefusal>, AdminError> {
        self.run(format!("USE {}", ident(database.as_str())).into_bytes()).await
    }

    pub async fn quoting(&mut self) -> Result<Quoting, AdminError> {
        let mode: Option<String> =
            self.admin.within(typed_rows::first(self.conn.query_iter("SELECT @@sql_mode"))).await?;
        let mode = mode.unwrap_or_default();
        let has = |name: &str| mode.split(',').any(|word| word == name);
        Ok(Quoting { ansi: has("ANSI_QUOTES"), no_escapes: has("NO_BACKSLASH_ESCAPES") })
    }

    pub async fn close(self) {
        // An error is ignored: all statements have ended.
        let _ = self.admin.within(self.conn.disconnect()).await;
    }
}
