//! The ledger (`selkie.media_due`): keys of objects that are stored or about to be stored, and that no row of
//! `selkie.media` refers to. Each entry has the time `due_at` from which its object may be deleted. `due_at` = 0 marks
//! an entry for deletion: no file may refer to its object any more. A transaction that marks an entry and one that
//! creates a file from it lock the same row, so only the first succeeds, whatever the origins' clocks say.

use crate::database::typed_rows;
use std::collections::HashSet;

use mysql_async::Params;
use mysql_async::prelude::Queryable;
use shared::ident::ProjectName;

use super::ObjectKey;
use super::error::TableError;
use super::row::object_key;
use super::{KEYS_MAX_COUNT, MediaTable, bound, marks};

impl MediaTable {
    /// Adds new keys to the ledger, before the caller stores their objects. From `due_at` (in seconds since 1970), an
    /// object to which no file refers may be deleted. After an error, some keys may have been added.
    pub async fn announce(&self, project: &ProjectName, keys: &[ObjectKey], due_at: u64) -> Result<(), TableError> {
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let statement = format!(
                "INSERT INTO selkie.media_due (object, due_at) VALUES {}",
                vec!["(?, ?)"; keys.len()].join(", ")
            );
            let pairs = keys.iter().flat_map(|key| [key.as_uuid().into(), due_at.max(1).into()]);
            let values = Params::Positional(pairs.collect());
            self.run(Some(project), &statement, &values).await?;
        }
        Ok(())
    }

    /// Marks for deletion those of `keys` that are in the ledger, whatever their `due_at`, and returns them. A file
    /// refers to the object of a key that is not returned, or the object was deleted already. After an error, some keys
    /// may have been marked.
    pub async fn mark_for_deletion(
        &self,
        project: &ProjectName,
        keys: &[ObjectKey],
    ) -> Result<Vec<ObjectKey>, TableError> {
        let mut marked = Vec::new();
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let marks = marks(keys.len());
            let statement = format!("UPDATE selkie.media_due SET due_at = 0 WHERE object IN ({marks})");
            self.run(Some(project), &statement, &Params::Positional(bound(keys))).await?;
            let statement = format!("SELECT object FROM selkie.media_due WHERE due_at = 0 AND object IN ({marks})");
            marked.extend(self.keys(Some(project), &statement, &Params::Positional(bound(keys))).await?);
        }
        Ok(marked)
    }

    /// Marks for deletion all keys whose `due_at` is at most `now` (in seconds since 1970), and returns at most `limit`
    /// marked keys, which may have been marked earlier.
    pub async fn mark_due(&self, now: u64, limit: usize) -> Result<Vec<ObjectKey>, TableError> {
        let mark = "UPDATE selkie.media_due SET due_at = 0 WHERE due_at BETWEEN 1 AND ?";
        self.run(None, mark, &(now,).into()).await?;
        let marked = "SELECT object FROM selkie.media_due WHERE due_at = 0 LIMIT ?";
        self.keys(None, marked, &(limit,).into()).await
    }

    /// Returns the keys that are marked for deletion, or whose `due_at` is at most `by` (in seconds since 1970),
    /// without marking any.
    pub async fn deletable_by(&self, by: u64) -> Result<Vec<ObjectKey>, TableError> {
        let deletable_by = "SELECT object FROM selkie.media_due WHERE due_at <= ?";
        self.keys(None, deletable_by, &(by,).into()).await
    }

    /// Returns the UUID of this installation, which is also stored in its media store. Fails with
    /// [`TableError::Corrupt`] if `selkie.installation` has no row.
    pub async fn installation(&self) -> Result<String, TableError> {
        let mut lent = self.conn_of(None).await?;
        let id: Option<String> = self
            .within(async {
                let id = typed_rows::first(lent.conn.query_iter("SELECT uuid FROM selkie.installation"));
                Ok::<_, TableError>(id.await?)
            })
            .await?;
        id.ok_or(TableError::Corrupt("installation's id"))
    }

    /// Removes from the ledger those of `keys` that are marked for deletion. Called after their objects were deleted,
    /// for a request of `project` or, with `None`, for a sweep.
    pub async fn remove_marked(&self, project: Option<&ProjectName>, keys: &[ObjectKey]) -> Result<(), TableError> {
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let statement =
                format!("DELETE FROM selkie.media_due WHERE due_at = 0 AND object IN ({})", marks(keys.len()));
            self.run(project, &statement, &Params::Positional(bound(keys))).await?;
        }
        Ok(())
    }

    /// Returns those of `keys` that are in the ledger, or to whose object a file refers.
    pub async fn known(&self, keys: &[ObjectKey]) -> Result<HashSet<ObjectKey>, TableError> {
        let mut known = HashSet::new();
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let marks = marks(keys.len());
            // One statement reads one snapshot, so that a key that moves from the ledger to a file meanwhile is not
            // missed.
            let statement = format!(
                "SELECT object FROM selkie.media WHERE object IN ({marks})
                 UNION ALL SELECT thumbnail_object FROM selkie.media WHERE thumbnail_object IN ({marks})
                 UNION ALL SELECT object FROM selkie.media_due WHERE object IN ({marks})"
            );
            let values = [bound(keys), bound(keys), bound(keys)].concat();
            known.extend(self.keys(None, &statement, &Params::Positional(values)).await?);
        }
        Ok(known)
    }

    /// Runs a statement in the share of `project`, or without a share if `project` is `None`, and returns the number of
    /// affected rows. Runs it again after [`TableError::Contended`], as `retrying` does.
    pub(super) async fn run(
        &self,
        project: Option<&ProjectName>,
        statement: &str,
        values: &Params,
    ) -> Result<u64, TableError> {
        self.retrying(async || {
            let mut lent = self.conn_of(project).await?;
            lent.conn.exec_drop(statement, values.clone()).await?;
            Ok(lent.conn.affected_rows())
        })
        .await
    }

    async fn keys(
        &self,
        project: Option<&ProjectName>,
        statement: &str,
        values: &Params,
    ) -> Result<Vec<ObjectKey>, TableError> {
        let found: Vec<Vec<u8>> = self
            .retrying(async || {
                let mut lent = self.conn_of(project).await?;
                Ok::<_, TableError>(typed_rows::all(lent.conn.exec_iter(statement, values.clone())).await?)
            })
            .await?;
        found.iter().map(|bytes| object_key(bytes)).collect()
    }
}
