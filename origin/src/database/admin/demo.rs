//! Creates the demo's database with its tables and rows.

use mysql_async::prelude::Queryable;
use shared::ident::DatabaseName;

use super::quote::ident;
use super::{Admin, AdminError, Created, typed_rows};

/// The comment of the demo's database until it is filled, by which a demo that was left unfinished is recognised.
const UNFINISHED: &str = "Selkie has not filled its demo yet";

impl Admin {
    /// Creates the demo's database and fills it, which takes a second or two. Returns [`Created::Existing`] and changes
    /// nothing if another database has the name. A demo that an interrupted call left unfinished is dropped first.
    /// After an error, an unfinished demo stays.
    pub async fn create_demo(&self, name: &DatabaseName) -> Result<Created, AdminError> {
        let mut conn = self.conn().await?;
        let unfinished =
            "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ? AND SCHEMA_COMMENT = ? LIMIT 1";
        let asked = conn.exec_iter(unfinished, (name.as_str(), UNFINISHED));
        let unfinished: Option<u8> = self.within(typed_rows::first(asked)).await?;
        drop(conn);
        if unfinished.is_some() {
            self.drop_database(name).await?;
        }
        if self.create_commented(name, UNFINISHED).await? == Created::Existing {
            return Ok(Created::Existing);
        }
        self.fill_demo(name).await?;
        self.run(format!("ALTER DATABASE {} COMMENT ''", ident(name.as_str()))).await?;
        Ok(Created::New)
    }

    async fn fill_demo(&self, name: &DatabaseName) -> Result<(), AdminError> {
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
