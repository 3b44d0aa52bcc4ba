//! The ledger: keys of objects that no row names, or not yet.
//!
//! A key is announced with the time by which its row will have been written. Once it is *doomed* (due at 0), no row may
//! name it any more, so that whoever finds it doomed may delete its object. Dooming and naming lock the same entry of
//! the ledger: one of them is first, and the other sees it, whatever the clocks of the origins say.

use crate::database::ask;
use std::collections::HashSet;

use mysql_async::Params;
use mysql_async::prelude::Queryable;

use super::ObjectKey;
use super::error::TableError;
use super::row::object_key;
use super::{KEYS_MAX_COUNT, MediaTable, bound, marks, within};

impl MediaTable {
    /// Enters the keys of objects that are about to be published. Without a row, they are doomed at `due_at`.
    ///
    /// # Errors
    /// MariaDB failed; some may have been entered.
    pub async fn announce(&self, keys: &[ObjectKey], due_at: u64) -> Result<(), TableError> {
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let statement = format!(
                "INSERT INTO selkie.media_due (object, due_at) VALUES {}",
                vec!["(?, ?)"; keys.len()].join(", ")
            );
            let pairs = keys.iter().flat_map(|key| [key.as_uuid().into(), due_at.max(1).into()]);
            let values = Params::Positional(pairs.collect());
            self.run(&statement, &values).await?;
        }
        Ok(())
    }

    /// Dooms those of these keys that are still in the ledger, and returns them. The others are named by rows, or settled.
    ///
    /// # Errors
    /// MariaDB failed; some may have been doomed.
    pub async fn doom(&self, keys: &[ObjectKey]) -> Result<Vec<ObjectKey>, TableError> {
        let mut doomed = Vec::new();
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let marks = marks(keys.len());
            let statement = format!("UPDATE selkie.media_due SET due_at = 0 WHERE object IN ({marks})");
            self.run(&statement, &Params::Positional(bound(keys))).await?;
            let statement = format!("SELECT object FROM selkie.media_due WHERE due_at = 0 AND object IN ({marks})");
            doomed.extend(self.keys(&statement, &Params::Positional(bound(keys))).await?);
        }
        Ok(doomed)
    }

    /// Dooms what is due, and returns doomed keys, `limit` at most.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn due(&self, now: u64, limit: usize) -> Result<Vec<ObjectKey>, TableError> {
        let doom = "UPDATE selkie.media_due SET due_at = 0 WHERE due_at BETWEEN 1 AND ?";
        self.run(doom, &(now,).into()).await?;
        let doomed = "SELECT object FROM selkie.media_due WHERE due_at = 0 LIMIT ?";
        self.keys(doomed, &(limit,).into()).await
    }

    /// Returns keys that are doomed, or due by then; dooms none.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn left_over(&self, by: u64) -> Result<Vec<ObjectKey>, TableError> {
        let left_over = "SELECT object FROM selkie.media_due WHERE due_at <= ?";
        self.keys(left_over, &(by,).into()).await
    }

    /// Returns the id of this installation, which marks its store.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn installation(&self) -> Result<String, TableError> {
        let mut conn = self.conn().await?;
        let id: Option<String> = within(async {
            let id = ask::first(conn.query_iter("SELECT uuid FROM selkie.installation"));
            Ok::<_, TableError>(id.await?)
        })
        .await?;
        id.ok_or(TableError::Corrupt("installation's id"))
    }

    /// Takes doomed keys out: their objects are gone. Others stay.
    ///
    /// # Errors
    /// MariaDB failed; some may have been taken out.
    pub async fn settle(&self, keys: &[ObjectKey]) -> Result<(), TableError> {
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let statement =
                format!("DELETE FROM selkie.media_due WHERE due_at = 0 AND object IN ({})", marks(keys.len()));
            self.run(&statement, &Params::Positional(bound(keys))).await?;
        }
        Ok(())
    }

    /// Which of these keys a row names, or the ledger holds.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn named(&self, keys: &[ObjectKey]) -> Result<HashSet<ObjectKey>, TableError> {
        let mut named = HashSet::new();
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let marks = marks(keys.len());
            // One statement sees one moment: a key on its way from the ledger into a row is not missed.
            let statement = format!(
                "SELECT object FROM selkie.media WHERE object IN ({marks})
                 UNION ALL SELECT thumbnail_object FROM selkie.media WHERE thumbnail_object IN ({marks})
                 UNION ALL SELECT object FROM selkie.media_due WHERE object IN ({marks})"
            );
            let values = [bound(keys), bound(keys), bound(keys)].concat();
            named.extend(self.keys(&statement, &Params::Positional(values)).await?);
        }
        Ok(named)
    }

    pub(super) async fn run(&self, statement: &str, values: &Params) -> Result<u64, TableError> {
        self.retrying(async || {
            let mut conn = self.conn().await?;
            conn.exec_drop(statement, values.clone()).await?;
            Ok(conn.affected_rows())
        })
        .await
    }

    async fn keys(&self, statement: &str, values: &Params) -> Result<Vec<ObjectKey>, TableError> {
        let found: Vec<Vec<u8>> = self
            .retrying(async || {
                let mut conn = self.conn().await?;
                Ok::<_, TableError>(ask::all(conn.exec_iter(statement, values.clone())).await?)
            })
            .await?;
        found.iter().map(|bytes| object_key(bytes)).collect()
    }
}
