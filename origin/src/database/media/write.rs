//! Writes and deletes the rows of files; callers store and delete the objects. The same transaction updates the ledger
//! (`ledger.rs`), which lists the objects that no file refers to.
//!
//! A transaction that inserts or replaces files first locks its project's row. The lock is shared, or exclusive if a
//! folder becomes private: then no other transaction can add a public file to the folder meanwhile.

use crate::database::{errno, typed_rows};
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Transaction, TxOpts, Value};
use shared::ident::ProjectName;
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::operation::media::MediaId;
use shared::upload::{Existing, Visibility};
use uuid::Uuid;

use super::ObjectKey;
use super::error::{TableError, WriteError};
use super::row::{COLUMNS, MediaRow, StoredObject, read};
use super::{ChangeableFiles, MediaTable, Uploader, bound, marks};
use crate::clock::now;
use crate::crash_points::{self, Point};

/// The files of one upload request. Their objects are already stored and recorded in the ledger.
#[derive(Clone, Debug)]
pub struct NewRows {
    pub project: ProjectName,
    pub folder: FolderPath,
    pub existing: Existing,
    pub replaceable: ChangeableFiles,
    /// The files: at least one, with distinct names.
    pub items: Vec<NewRow>,
    /// The caller that uploads the files; `None` for full keys and the command line.
    pub uploader: Option<Uploader>,
    /// The resumable upload that becomes the file, the only one of `items`; `None` for an ordinary upload.
    pub upload: Option<FinishedUpload>,
}

impl NewRows {
    /// Returns whether a file requests [`Visibility::PrivateFolder`]. The upload then makes the folder private, with
    /// all files in it and below it.
    pub(crate) fn makes_folder_private(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.visibility == Visibility::PrivateFolder)
    }
}

/// A resumable upload that is marked as finished in the transaction that writes its file, so that the upload becomes a
/// file at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedUpload {
    pub id: Uuid,
    /// The time in seconds since 1970 from which the upload's row, which names the file, may be deleted.
    pub expires_at: u64,
}

#[derive(Clone, Debug)]
pub struct NewRow {
    pub name: MediaName,
    pub kind: MediaKind,
    /// The requested visibility. A file in or below a private folder is always private. A file that replaces a private
    /// file stays private unless [`Visibility::Public`] is requested.
    pub visibility: Visibility,
    /// The width in pixels; `None` unless the file is a picture.
    pub width: Option<u32>,
    /// The height in pixels; `None` unless the file is a picture.
    pub height: Option<u32>,
    pub original: StoredObject,
    pub thumbnail: Option<StoredObject>,
}

impl NewRow {
    fn objects(&self) -> impl Iterator<Item = ObjectKey> {
        std::iter::once(self.original.key).chain(self.thumbnail.as_ref().map(|small| small.key))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The files in the order of [`NewRows::items`].
    pub rows: Vec<MediaRow>,
    /// The keys of the replaced files' objects. The ledger has marked these keys for deletion; the caller deletes the
    /// objects.
    pub replaced: Vec<ObjectKey>,
}

impl MediaTable {
    /// Inserts or replaces the rows of all files or of none, and removes the keys of their objects from the ledger.
    /// After [`TableError::Unavailable`] or [`TableError::TimedOut`], the files may or may not have been recorded; if
    /// they were, [`mark_for_deletion`](Self::mark_for_deletion) marks none of their keys.
    pub async fn write(&self, files: &NewRows) -> Result<Written, WriteError> {
        self.retrying(|| self.write_once(files)).await
    }

    async fn write_once(&self, files: &NewRows) -> Result<Written, WriteError> {
        let mut lent = self.conn_of(Some(&files.project)).await?;
        let mut transaction = lent.conn.start_transaction(TxOpts::default()).await?;
        let is_folder_private = lock_folder(&mut transaction, files).await?;
        take_from_ledger(&mut transaction, files).await?;
        let mut written: Vec<Option<MediaRow>> = vec![None; files.items.len()];
        let mut replaced = Vec::new();
        // Sorted by name, so that concurrent uploads of the same names wait for each other and don't deadlock.
        let mut places: Vec<usize> = (0..files.items.len()).collect();
        places.sort_by(|a, b| files.items[*a].name.cmp(&files.items[*b].name));
        for place in places {
            let item = &files.items[place];
            let mut row = new_row(files, item, is_folder_private);
            if let Some(old) = insert_or_replace(&mut transaction, files, item.visibility, &mut row).await? {
                replaced.extend(old);
            }
            written[place] = Some(row);
        }
        add_to_ledger(&mut transaction, &replaced).await?;
        if let (Some(upload), Some(Some(row))) = (files.upload, written.first()) {
            end_upload(&mut transaction, upload, row.id).await?;
        }

        crash_points::reach(Point::RowsWritten);
        transaction.commit().await?;
        Ok(Written { rows: written.into_iter().flatten().collect(), replaced })
    }

    /// Deletes the row of a project's file and returns the row; `None` if there is no such file. Marks the keys of the
    /// file's objects for deletion in the ledger; the caller deletes the objects.
    pub async fn delete(
        &self,
        project: &ProjectName,
        id: MediaId,
        scope: ChangeableFiles,
    ) -> Result<Option<MediaRow>, WriteError> {
        self.retrying(|| self.delete_once(project, id, scope)).await
    }

    async fn delete_once(
        &self,
        project: &ProjectName,
        id: MediaId,
        scope: ChangeableFiles,
    ) -> Result<Option<MediaRow>, WriteError> {
        let mut lent = self.conn_of(Some(project)).await?;
        let mut transaction = lent.conn.start_transaction(TxOpts::default()).await?;
        let statement = format!("SELECT {COLUMNS} FROM selkie.media WHERE id = ? AND project = ? FOR UPDATE");
        let found: Option<Row> =
            typed_rows::first(transaction.exec_iter(statement, (id.get(), project.as_str()))).await?;
        let Some(row) = found.map(read).transpose()? else {
            transaction.rollback().await?;
            return Ok(None);
        };
        if !scope.has(row.uploader) {
            transaction.rollback().await?;
            return Err(WriteError::Forbidden);
        }
        transaction.exec_drop("DELETE FROM selkie.media WHERE id = ?", (id.get(),)).await?;
        add_to_ledger(&mut transaction, &row.objects().collect::<Vec<_>>()).await?;
        crash_points::reach(Point::RowDeleted);
        transaction.commit().await?;
        Ok(Some(row))
    }
}

/// Marks a resumable upload as finished and records the id of its file. Fails with [`WriteError::NoUpload`] if the
/// upload is finished already or has no row. Does not check whether the upload has expired.
async fn end_upload(
    transaction: &mut Transaction<'_>,
    upload: FinishedUpload,
    file: MediaId,
) -> Result<(), WriteError> {
    let statement = "UPDATE selkie.media_uploads SET media_id = ?, received = length, expires_at = ?
        WHERE id = ? AND media_id IS NULL";
    let values = (file.get(), upload.expires_at, upload.id);
    transaction.exec_drop(statement, values).await?;
    if transaction.affected_rows() == 1 { Ok(()) } else { Err(WriteError::NoUpload) }
}

/// Locks the project's row, and makes the folder private if requested. Returns whether the folder or a folder above it
/// is private. Fails with [`WriteError::NoProject`] if the project has no row.
async fn lock_folder(transaction: &mut Transaction<'_>, files: &NewRows) -> Result<bool, WriteError> {
    let (project, folder) = (files.project.as_str(), files.folder.as_str());
    let makes_private = files.makes_folder_private();
    let lock = if makes_private {
        "SELECT 1 FROM selkie.projects WHERE name = ? FOR UPDATE"
    } else {
        "SELECT 1 FROM selkie.projects WHERE name = ? LOCK IN SHARE MODE"
    };
    let found: Option<u8> = typed_rows::first(transaction.exec_iter(lock, (project,))).await?;
    if found.is_none() {
        return Err(WriteError::NoProject);
    }
    if makes_private {
        make_private(transaction, project, folder).await?;
        return Ok(true);
    }
    let lineage: Vec<Value> = std::iter::once("").chain(files.folder.lineage()).map(Into::into).collect();
    // A locking read sees the latest committed state; a plain read would see the state at the transaction's start.
    let statement = format!(
        "SELECT 1 FROM selkie.media_folders WHERE project = ? AND folder IN ({}) AND private
         LIMIT 1 LOCK IN SHARE MODE",
        marks(lineage.len())
    );
    let values = std::iter::once(project.into()).chain(lineage).collect();
    let private: Option<u8> = typed_rows::first(transaction.exec_iter(statement, Params::Positional(values))).await?;
    Ok(private.is_some())
}

/// Makes a folder private, with all files in it and below it.
async fn make_private(transaction: &mut Transaction<'_>, project: &str, folder: &str) -> Result<(), TableError> {
    transaction
        .exec_drop(
            "INSERT INTO selkie.media_folders (project, folder, private) VALUES (?, ?, TRUE)
             ON DUPLICATE KEY UPDATE private = TRUE",
            (project, folder),
        )
        .await?;
    let hidden = "UPDATE selkie.media SET private = TRUE WHERE project = ? AND NOT private";
    if folder.is_empty() {
        transaction.exec_drop(hidden, (project,)).await?;
        return Ok(());
    }
    // All folders whose path begins with this folder and a slash: a range of the index, since `0` is the character
    // after `/`.
    let below = format!("{hidden} AND (folder = ? OR folder >= ? AND folder < ?)");
    let values = (project, folder, format!("{folder}/"), format!("{folder}0"));
    transaction.exec_drop(below, values).await?;
    Ok(())
}

/// Removes the keys of the new objects from the ledger. Fails with [`WriteError::Swept`] if the ledger lacks a key or
/// has marked a key for deletion.
async fn take_from_ledger(transaction: &mut Transaction<'_>, files: &NewRows) -> Result<(), WriteError> {
    let objects: Vec<ObjectKey> = files.items.iter().flat_map(NewRow::objects).collect();
    let statement = format!("DELETE FROM selkie.media_due WHERE object IN ({}) AND due_at > 0", marks(objects.len()));
    let values = Params::Positional(bound(&objects));
    transaction.exec_drop(statement, values).await?;
    if transaction.affected_rows() == objects.len() as u64 { Ok(()) } else { Err(WriteError::Swept) }
}

/// Enters keys of objects to which no file refers any more in the ledger, as due for deletion.
async fn add_to_ledger(transaction: &mut Transaction<'_>, objects: &[ObjectKey]) -> Result<(), TableError> {
    if objects.is_empty() {
        return Ok(());
    }
    let statement = format!(
        "INSERT INTO selkie.media_due (object, due_at) VALUES {} ON DUPLICATE KEY UPDATE due_at = 0",
        vec!["(?, 0)"; objects.len()].join(", ")
    );
    let values = Params::Positional(bound(objects));
    transaction.exec_drop(statement, values).await?;
    Ok(())
}

fn new_row(files: &NewRows, item: &NewRow, is_folder_private: bool) -> MediaRow {
    let now = now();
    MediaRow {
        id: 0.into(),
        project: files.project.clone(),
        folder: files.folder.clone(),
        name: item.name.clone(),
        kind: item.kind,
        private: is_folder_private || item.visibility.is_private(),
        width: item.width,
        height: item.height,
        original: item.original.clone(),
        thumbnail: item.thumbnail.clone(),
        created_at: now,
        updated_at: now,
        uploader: files.uploader,
    }
}

/// Inserts a row or, if `files` allows it, replaces the row of the same path, and sets the id in `row`. Returns the
/// keys of the replaced row's objects; `None` if a row was inserted. Returns [`TableError::Contended`] if another
/// transaction has just inserted the path.
async fn insert_or_replace(
    transaction: &mut Transaction<'_>,
    files: &NewRows,
    visibility: Visibility,
    row: &mut MediaRow,
) -> Result<Option<Vec<ObjectKey>>, WriteError> {
    if files.existing == Existing::IsReplaced {
        let statement =
            format!("SELECT {COLUMNS} FROM selkie.media WHERE project = ? AND folder = ? AND name = ? FOR UPDATE");
        let values = (row.project.as_str(), row.folder.as_str(), row.name.as_str());
        let found: Option<Row> = typed_rows::first(transaction.exec_iter(statement, values)).await?;
        if let Some(old) = found.map(read).transpose()? {
            if !files.replaceable.has(old.uploader) {
                return Err(WriteError::Forbidden);
            }
            row.id = old.id;
            row.created_at = old.created_at;
            // Replacing a private file keeps it private, unless publication is requested.
            row.private |= old.private && visibility != Visibility::Public;
            update(transaction, row).await?;
            return Ok(Some(old.objects().collect()));
        }
    }
    match insert(transaction, row).await.map_err(TableError::from) {
        Ok(id) => {
            row.id = id;
            Ok(None)
        }
        Err(error) if error.errno() == Some(errno::DUP_ENTRY) => Err(match files.existing {
            Existing::Stays => WriteError::Exists { folder: row.folder.clone(), name: row.name.clone() },
            // Another transaction inserted the row after the SELECT. The retry finds and replaces it.
            Existing::IsReplaced => TableError::Contended.into(),
        }),
        Err(error) => Err(error.into()),
    }
}

async fn insert(transaction: &mut Transaction<'_>, row: &MediaRow) -> mysql_async::Result<MediaId> {
    let statement = format!(
        "INSERT INTO selkie.media (kind, private, width, height, object, mime, size, sha256,
         thumbnail_object, thumbnail_mime, thumbnail_size, thumbnail_sha256, updated_at,
         uploader, created_at, project, folder, name) VALUES ({})",
        marks(18)
    );
    let place =
        [row.created_at.into(), row.project.as_str().into(), row.folder.as_str().into(), row.name.as_str().into()];
    let values = contents(row).into_iter().chain(place).collect();
    transaction.exec_drop(statement, Params::Positional(values)).await?;
    Ok(transaction.last_insert_id().unwrap_or_default().into())
}

async fn update(transaction: &mut Transaction<'_>, row: &MediaRow) -> mysql_async::Result<()> {
    let statement = "UPDATE selkie.media SET kind = ?, private = ?, width = ?, height = ?,
        object = ?, mime = ?, size = ?, sha256 = ?, thumbnail_object = ?, thumbnail_mime = ?,
        thumbnail_size = ?, thumbnail_sha256 = ?, updated_at = ?, uploader = ? WHERE id = ?";
    let values = contents(row).into_iter().chain([row.id.get().into()]);
    transaction.exec_drop(statement, Params::Positional(values.collect())).await
}

/// Returns the values that both INSERT and UPDATE write, in the order of the columns in those statements.
fn contents(row: &MediaRow) -> Vec<Value> {
    let small = row.thumbnail.as_ref();
    vec![
        row.kind.as_str().into(),
        row.private.into(),
        row.width.into(),
        row.height.into(),
        row.original.key.as_uuid().into(),
        row.original.mime.as_str().into(),
        row.original.size.into(),
        row.original.sha256.as_slice().into(),
        small.map(|small| small.key.as_uuid()).into(),
        small.map(|small| small.mime.as_str()).into(),
        small.map(|small| small.size).into(),
        small.map(|small| small.sha256.as_slice()).into(),
        row.updated_at.into(),
        row.uploader.as_ref().map(Uploader::as_bytes).into(),
    ]
}
