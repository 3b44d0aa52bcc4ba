//! Caches the prepared statements of one connection by their SQL text. Unlike the driver's own cache, does not parse
//! each text for named parameters. Closes a statement that leaves the cache, so that MariaDB holds no more statements.

use lru::LruCache;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Statement};
use std::num::NonZeroUsize;

/// The cache is per connection. MariaDB uses about 10 KB for each statement.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(127);
/// Longer texts are batches and long lists, which seldom recur.
const KEPT_TEXT_MAX_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct PreparedStatements {
    kept: LruCache<Box<str>, Statement>,
    /// The last statement whose text was too long to cache: the statements of one batch often have the same text.
    passing: Option<(Box<str>, Statement)>,
}

impl PreparedStatements {
    pub(super) fn new() -> Self {
        Self { kept: LruCache::new(KEPT), passing: None }
    }

    pub(super) async fn get(&mut self, conn: &mut Conn, text: &str) -> Result<Statement, mysql_async::Error> {
        if let Some(statement) = self.kept.get(text) {
            return Ok(statement.clone());
        }
        match self.passing.take() {
            Some((same, statement)) if *same == *text => {
                self.passing = Some((same, statement.clone()));
                return Ok(statement);
            }
            Some((_, statement)) => conn.close(statement).await?,
            None => {}
        }
        let statement = conn.prep(text).await?;
        if text.len() > KEPT_TEXT_MAX_BYTES {
            self.passing = Some((text.into(), statement.clone()));
        } else if let Some((_, oldest)) = self.kept.push(text.into(), statement.clone()) {
            conn.close(oldest).await?;
        }
        Ok(statement)
    }

    /// Does not close the statements: the reset of the session closes them in MariaDB.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.passing = None;
    }
}
