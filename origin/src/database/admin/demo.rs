//! Fills a database with the demo's tables and rows.

use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::quote::ident;
use super::{Admin, AdminError};

impl Admin {
    /// Creates and fills the demo tables in the database `name`, which must exist and be empty. Takes a second or two.
    ///
    /// # Errors
    /// MariaDB failed; the tables and rows written before stay.
    pub async fn fill_demo(&self, name: &DatabaseName) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        let chosen = format!("USE {}", ident(name.as_str()));
        let outcome = async {
            self.within(conn.query_drop(chosen)).await?;
            for statement in crate::demo::statements() {
                self.within(conn.query_drop(statement)).await?;
            }
            Ok(())
        }
        .await;
        // This connection must not return to the pool, since the database is now its default schema.
        let _ = self.within(conn.disconnect()).await;
        outcome
    }
}
