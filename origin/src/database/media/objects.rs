//! Lists the objects of files, for backups, and removes files without an object, for restores.

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row};

use super::error::TableError;
use super::row::{COLUMNS, StoredObject, read};
use super::{KEYS_MAX_COUNT, MediaTable, ObjectKey, bound, marks};

const PAGE_ROWS: u64 = 10_000;

impl MediaTable {
    /// Returns the objects (originals and thumbnails) of the next files, at most 10,000, whose id is above `after`, and
    /// the `after` of the next call; `None` if there are no further files.
    pub async fn objects_after(&self, after: u64) -> Result<(Vec<StoredObject>, Option<u64>), TableError> {
        let statement = format!("SELECT {COLUMNS} FROM selkie.media WHERE id > ? ORDER BY id LIMIT {PAGE_ROWS}");
        let rows: Vec<Row> = self
            .retrying(async || {
                let mut lent = self.conn_of(None).await?;
                Ok::<_, TableError>(typed_rows::all(lent.conn.exec_iter(&statement, (after,))).await?)
            })
            .await?;
        let is_last = (rows.len() as u64) < PAGE_ROWS;
        let rows = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let last = rows.last().map(|row| row.id.get()).filter(|_| !is_last);
        Ok((rows.into_iter().flat_map(|row| [Some(row.original), row.thumbnail]).flatten().collect(), last))
    }

    /// Deletes the rows of files whose original is one of `keys`. Clears the thumbnail of other files whose thumbnail
    /// is one of `keys`. Returns the number of deleted rows.
    pub async fn remove_rows_of(&self, keys: &[ObjectKey]) -> Result<u64, TableError> {
        let mut removed = 0;
        for keys in keys.chunks(KEYS_MAX_COUNT) {
            let (marks, values) = (marks(keys.len()), Params::Positional(bound(keys)));
            removed += self.run(None, &format!("DELETE FROM selkie.media WHERE object IN ({marks})"), &values).await?;
            let update = format!(
                "UPDATE selkie.media SET thumbnail_object = NULL, thumbnail_mime = NULL, thumbnail_size = NULL, \
                 thumbnail_sha256 = NULL WHERE thumbnail_object IN ({marks})"
            );
            self.run(None, &update, &values).await?;
        }
        Ok(removed)
    }
}
