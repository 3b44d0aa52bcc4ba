//! Drops accounts and kills their connections.

use std::collections::BTreeSet;

use mysql_async::prelude::Queryable;
use shared::ident::{DatabaseName, ProjectName};
use shared::key::Access;

use super::AccountName;
use crate::database::admin::{Admin, AdminError};
use crate::database::{errno, typed_rows};

impl Admin {
    /// Drops both accounts of a project, as far as they exist: at [`account_host`](Self::account_host) and at every
    /// host that [`accounts`](Self::accounts) lists, which is none if the admin account may not read `mysql.user`.
    pub async fn drop_accounts(&self, project: &ProjectName) -> Result<(), AdminError> {
        let accounts = self.accounts().await?;
        for access in [Access::Full, Access::Read] {
            let name = AccountName::of(project, access);
            let found = accounts.keys().filter(|(user, _)| user == name.as_str());
            let hosts: BTreeSet<&str> = found.map(|(_, host)| host.as_str()).chain([self.account_host()]).collect();
            for host in hosts {
                self.run(format!("DROP USER IF EXISTS {}", name.at(host))).await?;
            }
        }
        Ok(())
    }

    /// Kills the connections of the MariaDB users `users`: all connections, or only those whose default schema is
    /// `database`, which would keep their privileges on that schema after a REVOKE. Returns false if the admin account
    /// may not kill one of the connections; further connections then stay open. Returns true even if connections stay
    /// open that MariaDB does not show to the admin account, for lack of the privilege PROCESS.
    pub async fn end_connections(&self, users: &[String], database: Option<&DatabaseName>) -> Result<bool, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(u64, String, Option<String>)> = self
            .within(typed_rows::all(conn.query_iter("SELECT ID, USER, DB FROM information_schema.PROCESSLIST")))
            .await?;
        for (id, user, schema) in rows {
            let is_in_it = database.is_none_or(|name| schema.as_deref() == Some(name.as_str()));
            if !users.contains(&user) || !is_in_it {
                continue;
            }
            match self.run(format!("KILL CONNECTION {id}")).await {
                Err(error) if error.errno() == Some(errno::NO_SUCH_THREAD) => {}
                Err(AdminError::Denied { .. }) => return Ok(false),
                outcome => outcome?,
            }
        }
        Ok(true)
    }
}
