//! Rows of `selkie.media`, validated when they are read.

use mysql_async::prelude::FromValue;
use mysql_async::{FromValueError, Row, Value};
use shared::ident::ProjectName;
use shared::media::{FilePath, FolderPath, MediaKind, MediaName, Rendition};
use shared::operation::media::MediaId;
use uuid::Uuid;

use super::error::TableError;
use super::{ObjectKey, Uploader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub key: ObjectKey,
    pub mime: String,
    pub size: u64,
    pub sha256: [u8; 32],
}

/// A file of the media library. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaRow {
    /// The file's id, which stays the same when the file is replaced.
    pub id: MediaId,
    pub project: ProjectName,
    pub folder: FolderPath,
    pub name: MediaName,
    pub kind: MediaKind,
    /// Whether reading the file requires a key or a signed URL.
    pub private: bool,
    /// The width in pixels; `None` unless the file is a picture.
    pub width: Option<u32>,
    /// The height in pixels; `None` unless the file is a picture.
    pub height: Option<u32>,
    pub original: StoredObject,
    pub thumbnail: Option<StoredObject>,
    pub created_at: u64,
    /// The time of the latest upload that created or replaced the file.
    pub updated_at: u64,
    /// The caller that uploaded the file's present bytes; `None` for full keys and the command line.
    pub uploader: Option<Uploader>,
}

impl MediaRow {
    pub fn path(&self) -> FilePath {
        FilePath { project: self.project.clone(), folder: self.folder.clone(), name: self.name.clone() }
    }

    pub fn rendition(&self, rendition: Rendition) -> Option<&StoredObject> {
        match rendition {
            Rendition::Original => Some(&self.original),
            Rendition::Thumbnail => self.thumbnail.as_ref(),
        }
    }

    pub fn objects(&self) -> impl Iterator<Item = ObjectKey> {
        std::iter::once(self.original.key).chain(self.thumbnail.as_ref().map(|small| small.key))
    }
}

/// The columns of `selkie.media` in the order that [`read`] expects.
pub(super) const COLUMNS: &str = "id, project, folder, name, kind, private, width, height, \
     object, mime, size, sha256, thumbnail_object, thumbnail_mime, thumbnail_size, thumbnail_sha256, \
     created_at, updated_at, uploader";

/// Converts a row with the columns [`COLUMNS`]. Fails with [`TableError::Corrupt`] if the row holds a value that this
/// program never writes.
pub(super) fn read(row: Row) -> Result<MediaRow, TableError> {
    let mut cells = RowCells(row.unwrap_raw().into_iter().flatten());
    let id: u64 = cells.next("id")?;
    let project: String = cells.next("project")?;
    let folder: String = cells.next("folder")?;
    let name: String = cells.next("name")?;
    let kind: String = cells.next("kind")?;
    Ok(MediaRow {
        id: id.into(),
        project: ProjectName::parse(&project).map_err(|_| TableError::Corrupt("project"))?,
        folder: FolderPath::parse(&folder).map_err(|_| TableError::Corrupt("folder"))?,
        name: MediaName::parse(&name).map_err(|_| TableError::Corrupt("name"))?,
        kind: MediaKind::parse(&kind).ok_or(TableError::Corrupt("kind"))?,
        private: cells.next("private")?,
        width: cells.next("width")?,
        height: cells.next("height")?,
        original: cells.stored_object()?.ok_or(TableError::Corrupt("object"))?,
        thumbnail: cells.stored_object()?,
        created_at: cells.next("created_at")?,
        updated_at: cells.next("updated_at")?,
        uploader: Uploader::from_column(cells.next("uploader")?)?,
    })
}

struct RowCells<I>(I);

impl<I: Iterator<Item = Value>> RowCells<I> {
    fn next<T: FromValue>(&mut self, what: &'static str) -> Result<T, TableError> {
        let cell = self.0.next().ok_or(TableError::Corrupt(what))?;
        T::from_value_opt(cell).map_err(|FromValueError(_)| TableError::Corrupt(what))
    }

    /// Reads the four columns of an original or a thumbnail; `None` if a column is NULL. Fails with
    /// [`TableError::Corrupt`] if a column is missing or invalid.
    fn stored_object(&mut self) -> Result<Option<StoredObject>, TableError> {
        let key: Option<Vec<u8>> = self.next("object")?;
        let mime: Option<String> = self.next("media type")?;
        let size: Option<u64> = self.next("size")?;
        let sha256: Option<Vec<u8>> = self.next("SHA-256")?;
        let (Some(key), Some(mime), Some(size), Some(sha256)) = (key, mime, size, sha256) else {
            return Ok(None);
        };
        Ok(Some(StoredObject {
            key: object_key(&key)?,
            mime,
            size,
            sha256: sha256.try_into().map_err(|_| TableError::Corrupt("SHA-256"))?,
        }))
    }
}

pub(super) fn object_key(bytes: &[u8]) -> Result<ObjectKey, TableError> {
    let id = Uuid::from_slice(bytes).ok();
    id.and_then(ObjectKey::from_uuid).ok_or(TableError::Corrupt("object key"))
}
