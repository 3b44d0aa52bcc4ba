//! Rows of `selkie.media_uploads`: resumable uploads. The bytes received so far are not in the database, but in a file
//! on the origin that received them.

use crate::database::typed_rows;
use crate::project_quota::beyond;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Value};
use shared::ident::ProjectName;
use shared::operation::media::MediaId;
use uuid::Uuid;

use super::error::TableError;
use super::{MediaTable, Uploader};

/// A resumable upload. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRow {
    pub id: Uuid,
    pub project: ProjectName,
    pub length: u64,
    /// The number of received bytes that were recorded here; the file may already hold more.
    pub received: u64,
    /// The `Upload-Metadata` header as it was sent.
    pub metadata: String,
    /// The file that the upload became; `None` while the upload is unfinished.
    pub media_id: Option<MediaId>,
    pub created_at: u64,
    /// The time from which the clean-up task may delete the upload.
    pub expires_at: u64,
    /// The caller that created the upload; `None` for full keys.
    pub uploader: Option<Uploader>,
}

type RawUpload = (Vec<u8>, String, u64, u64, String, Option<u64>, u64, u64, Option<Vec<u8>>);

impl MediaTable {
    /// Records an upload. Returns false and records nothing if the project would then have more than `most` unfinished,
    /// unexpired uploads, or if their declared sizes would exceed `most_bytes` together. An uploader with few uploads
    /// may go [`beyond`], as in [`ProjectQuota::with_callers`](crate::project_quota::ProjectQuota::with_callers).
    /// Uploads of full keys and uploads of callers with roles are counted apart. Concurrent calls may exceed both
    /// limits. `upload.length` must be at most `most_bytes`.
    pub async fn insert_upload(&self, upload: &UploadRow, most: usize, most_bytes: u64) -> Result<bool, TableError> {
        let statement = "INSERT INTO selkie.media_uploads
            (id, project, length, received, metadata, created_at, expires_at, uploader)
            SELECT ?, ?, ?, ?, ?, ?, ?, ? FROM (SELECT COUNT(*) AS uploads, COALESCE(SUM(length), 0) AS bytes,
            COALESCE(SUM(uploader <=> ?), 0) AS own, COALESCE(SUM(IF(uploader <=> ?, length, 0)), 0) AS own_bytes
            FROM selkie.media_uploads WHERE project = ? AND media_id IS NULL AND expires_at > ?
            AND (uploader IS NULL) = ?) AS open
            WHERE (open.uploads + 1 <= ? OR open.uploads + open.own + 1 <= ?)
            AND (open.bytes + ? <= ? OR open.bytes + open.own_bytes + ? <= ?)";
        let uploader = upload.uploader.as_ref().map(Uploader::as_bytes);
        let (project, length, most) = (upload.project.as_str(), upload.length, most as u64);
        let values: Vec<Value> = vec![
            upload.id.into(),
            project.into(),
            length.into(),
            upload.received.into(),
            upload.metadata.as_str().into(),
            upload.created_at.into(),
            upload.expires_at.into(),
            uploader.into(),
            uploader.into(),
            uploader.into(),
            project.into(),
            upload.created_at.into(),
            upload.uploader.is_none().into(),
            most.into(),
            (most + beyond(most)).into(),
            length.into(),
            most_bytes.into(),
            length.into(),
            most_bytes.saturating_add(beyond(most_bytes)).into(),
        ];
        Ok(self.run(Some(&upload.project), statement, &Params::Positional(values)).await? > 0)
    }

    /// Finds the caller with a role that has the most unfinished uploads in a project at `now` (seconds since 1970),
    /// and deletes that caller's oldest upload without a byte. Returns its id, if there is such an upload.
    pub async fn take_empty_upload(&self, project: &ProjectName, now: u64) -> Result<Option<Uuid>, TableError> {
        let found: Option<(Vec<u8>, bool)> = self
            .within(async {
                let mut lent = self.lookup_conn(project).await?;
                let statement = "SELECT id, received = 0 FROM (SELECT id, received, COUNT(*) OVER (PARTITION BY uploader) AS open
                FROM selkie.media_uploads WHERE project = ? AND media_id IS NULL AND expires_at > ? AND uploader IS NOT NULL)
                AS uploads ORDER BY open DESC, received > 0, id LIMIT 1";
                Ok::<_, TableError>(typed_rows::first(lent.conn.exec_iter(statement, (project.as_str(), now))).await?)
            })
            .await?;
        let Some((id, true)) = found else {
            return Ok(None);
        };
        let id = upload_id(&id)?;
        let statement = "DELETE FROM selkie.media_uploads WHERE id = ? AND received = 0";
        let deleted = self.run(Some(project), statement, &(id,).into()).await?;
        Ok((deleted > 0).then_some(id))
    }

    /// Returns the upload with this id; `None` if there is none or if it belongs to another project.
    pub async fn upload(&self, project: &ProjectName, id: Uuid) -> Result<Option<UploadRow>, TableError> {
        let found: Option<RawUpload> = self
            .within(async {
                let mut lent = self.lookup_conn(project).await?;
                let statement =
                    "SELECT id, project, length, received, metadata, media_id, created_at, expires_at, uploader
                FROM selkie.media_uploads WHERE id = ? AND project = ?";
                Ok::<_, TableError>(typed_rows::first(lent.conn.exec_iter(statement, (id, project.as_str()))).await?)
            })
            .await?;
        found.map(upload_row).transpose()
    }

    /// Sets the number of bytes received so far and the time of expiry of an unfinished upload. Returns false, and
    /// changes nothing, if the upload does not exist or is finished.
    pub async fn advance_upload(&self, upload: &UploadRow, received: u64, expires_at: u64) -> Result<bool, TableError> {
        let statement = "UPDATE selkie.media_uploads SET received = ?, expires_at = ?
            WHERE id = ? AND media_id IS NULL";
        let found = self.run(Some(&upload.project), statement, &(received, expires_at, upload.id).into()).await?;
        Ok(found > 0)
    }

    /// Deletes the row of an upload, for a request of `project` or, with `None`, because it has expired. Returns
    /// whether the row existed.
    pub async fn delete_upload(&self, project: Option<&ProjectName>, id: Uuid) -> Result<bool, TableError> {
        let statement = "DELETE FROM selkie.media_uploads WHERE id = ?";
        Ok(self.run(project, statement, &(id,).into()).await? > 0)
    }

    /// Returns the ids of at most `limit` uploads, finished or not, that expired at `now` (in seconds since 1970) or
    /// before, in the order of their expiry.
    pub async fn expired_uploads(&self, now: u64, limit: usize) -> Result<Vec<Uuid>, TableError> {
        let found: Vec<Vec<u8>> = self
            .within(async {
                let mut lent = self.conn_of(None).await?;
                let statement = "SELECT id FROM selkie.media_uploads WHERE expires_at <= ?
                ORDER BY expires_at LIMIT ?";
                Ok::<_, TableError>(typed_rows::all(lent.conn.exec_iter(statement, (now, limit))).await?)
            })
            .await?;
        found.iter().map(|bytes| upload_id(bytes)).collect()
    }
}

fn upload_row(raw: RawUpload) -> Result<UploadRow, TableError> {
    let (id, project, length, received, metadata, media_id, created_at, expires_at, uploader) = raw;
    Ok(UploadRow {
        id: upload_id(&id)?,
        project: ProjectName::parse(&project).map_err(|_| TableError::Corrupt("project"))?,
        length,
        received,
        metadata,
        media_id: media_id.map(MediaId::from),
        created_at,
        expires_at,
        uploader: Uploader::from_column(uploader)?,
    })
}

fn upload_id(bytes: &[u8]) -> Result<Uuid, TableError> {
    Uuid::from_slice(bytes).map_err(|_| TableError::Corrupt("upload id"))
}
