//! Rows of `selkie.media_uploads`: uploads that can be resumed. Their bytes lie in the staging of the origin that takes them.

use crate::database::ask;
use mysql_async::prelude::Queryable;
use shared::ident::ProjectName;
use shared::operation::media::MediaId;
use uuid::Uuid;

use super::error::TableError;
use super::{MediaTable, within};

/// An upload that can be resumed. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRow {
    /// Its id, a UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub project: ProjectName,
    /// Bytes that it will have.
    pub length: u64,
    /// Bytes up to which it is known to be right.
    pub received: u64,
    /// What was said of the file: the `Upload-Metadata` as it was sent.
    pub metadata: String,
    /// The file that it has become; `None` while it is under way.
    pub media_id: Option<MediaId>,
    /// When it began.
    pub created_at: u64,
    /// When it may be swept.
    pub expires_at: u64,
}

type RawUpload = (Vec<u8>, String, u64, u64, String, Option<u64>, u64, u64);

impl MediaTable {
    /// Records an upload, unless its project then has more than `most` under way, or more than `most_bytes` in all of
    /// them. Whether it did; requests at the same moment may make it a few more.
    ///
    /// # Errors
    /// MariaDB failed, or the project is not there.
    pub async fn insert_upload(&self, upload: &UploadRow, most: usize, most_bytes: u64) -> Result<bool, TableError> {
        let statement = "INSERT INTO selkie.media_uploads
            (id, project, length, received, metadata, created_at, expires_at)
            SELECT ?, ?, ?, ?, ?, ?, ? FROM (SELECT COUNT(*) AS uploads, COALESCE(SUM(length), 0) AS bytes
            FROM selkie.media_uploads WHERE project = ? AND media_id IS NULL AND expires_at > ?) AS open
            WHERE open.uploads < ? AND open.bytes <= ?";
        let values = (
            upload.id,
            upload.project.as_str(),
            upload.length,
            upload.received,
            &upload.metadata,
            upload.created_at,
            upload.expires_at,
            upload.project.as_str(),
            upload.created_at,
            most,
            most_bytes.saturating_sub(upload.length),
        );
        Ok(self.run(statement, &values.into()).await? > 0)
    }

    /// The upload of an id, if it is the project's.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn upload(&self, project: &ProjectName, id: Uuid) -> Result<Option<UploadRow>, TableError> {
        let found: Option<RawUpload> = within(async {
            let mut lent = self.lookup_conn(project).await?;
            let statement = "SELECT id, project, length, received, metadata, media_id, created_at, expires_at
                FROM selkie.media_uploads WHERE id = ? AND project = ?";
            Ok::<_, TableError>(ask::first(lent.conn.exec_iter(statement, (id, project.as_str()))).await?)
        })
        .await?;
        found.map(upload_row).transpose()
    }

    /// Records that more was received. Whether the upload is still there.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn advance_upload(&self, id: Uuid, received: u64, expires_at: u64) -> Result<bool, TableError> {
        let statement = "UPDATE selkie.media_uploads SET received = ?, expires_at = ?
            WHERE id = ? AND media_id IS NULL";
        let found = self.run(statement, &(received, expires_at, id).into()).await?;
        Ok(found > 0)
    }

    /// Forgets an upload. Whether it was there.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn delete_upload(&self, id: Uuid) -> Result<bool, TableError> {
        let statement = "DELETE FROM selkie.media_uploads WHERE id = ?";
        Ok(self.run(statement, &(id,).into()).await? > 0)
    }

    /// Uploads that ended without being finished, `limit` at most.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn expired_uploads(&self, now: u64, limit: usize) -> Result<Vec<Uuid>, TableError> {
        let found: Vec<Vec<u8>> = within(async {
            let mut conn = self.conn().await?;
            let statement = "SELECT id FROM selkie.media_uploads WHERE expires_at <= ?
                ORDER BY expires_at LIMIT ?";
            Ok::<_, TableError>(ask::all(conn.exec_iter(statement, (now, limit))).await?)
        })
        .await?;
        found.iter().map(|bytes| upload_id(bytes)).collect()
    }
}

fn upload_row(raw: RawUpload) -> Result<UploadRow, TableError> {
    let (id, project, length, received, metadata, media_id, created_at, expires_at) = raw;
    Ok(UploadRow {
        id: upload_id(&id)?,
        project: ProjectName::parse(&project).map_err(|_| TableError::Corrupt("project"))?,
        length,
        received,
        metadata,
        media_id: media_id.map(MediaId::from),
        created_at,
        expires_at,
    })
}

fn upload_id(bytes: &[u8]) -> Result<Uuid, TableError> {
    Uuid::from_slice(bytes).map_err(|_| TableError::Corrupt("upload id"))
}
