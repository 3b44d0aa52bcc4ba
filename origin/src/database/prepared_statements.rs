//! Prepared statements of one connection, kept by their text.
//!
//! The driver's own cache parses each text for parameters by name before it looks it up, and can't be
//! passed by; this one does neither. A statement is closed when it leaves the cache, so that MariaDB
//! keeps no more of them than we do.

use lru::LruCache;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Statement};
use std::num::NonZeroUsize;

/// Statements kept by each connection. Like reads share a text, so few suffice; MariaDB keeps about
/// 10 KB for each.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(127);
/// Bytes of a text worth keeping: longer ones are batches and long lists, which seldom come again.
const KEPT_TEXT_MAX_BYTES: usize = 8 * 1024;

/// The statements.
#[derive(Debug)]
pub(super) struct PreparedStatements {
    kept: LruCache<Box<str>, Statement>,
    /// One that was not worth keeping, closed before the next. The statements of one batch follow each
    /// other with the same text.
    passing: Option<(Box<str>, Statement)>,
}

impl PreparedStatements {
    pub(super) fn new() -> Self {
        Self { kept: LruCache::new(KEPT), passing: None }
    }

    /// A statement for this text.
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

    /// MariaDB has forgotten them all: the session was reset.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.passing = None;
    }
}
