//! The demo database's tables and rows.

use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::quote::ident;
use super::{Admin, AdminError};

impl Admin {
    /// Fills an empty database with the demo. Takes a second or two.
    ///
    /// # Errors
    /// MariaDB failed; what was there by then stays.
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
        // It would go back to the pool with this database selected.
        let _ = self.within(conn.disconnect()).await;
        outcome
    }
}
