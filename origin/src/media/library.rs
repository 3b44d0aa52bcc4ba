//! The order of things: announced, published, recorded; and taken back where a step fails.
//!
//! Whatever breaks off leaves a row that names whole objects, or none: what a ledger holds, a sweeper
//! deletes.

use super::intake::Examined;
use super::lookup::Lookups;
use super::store::{ObjectKey, Store};
use crate::clock::now;
use crate::db::media::{
    FinishedUpload, MediaRow, MediaTable, NewRow, NewRows, StoredObject, TableError,
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::media::{FilePath, FolderPath};
use shared::operation::media::{MediaId, MediaList};
use shared::upload::Existing;
use std::sync::Arc;

/// Seconds after which objects that were announced are left-overs: longer than publishing may take.
const PUBLISH_GRACE_SECONDS: u64 = 60 * 60;

/// Files that may come in together.
#[derive(Debug)]
pub struct Publication {
    /// Whose they are.
    pub project: ProjectName,
    /// Where they go.
    pub folder: FolderPath,
    /// What becomes of files that are there already.
    pub existing: Existing,
    /// The files.
    pub files: Vec<Examined>,
    /// The resumable upload that becomes the one file, if it came that way.
    pub upload: Option<FinishedUpload>,
}

/// Every project's files.
#[derive(Clone, Debug)]
pub struct Library {
    store: Store,
    table: MediaTable,
    lookups: Arc<Lookups>,
}

impl Library {
    /// The files in this store that this table records.
    #[must_use]
    pub fn new(store: Store, table: MediaTable) -> Self {
        Self {
            store,
            table,
            lookups: Arc::default(),
        }
    }

    /// Where bytes lie.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What is recorded.
    #[must_use]
    pub fn table(&self) -> &MediaTable {
        &self.table
    }

    /// Publishes files, all or none.
    ///
    /// # Errors
    /// `media_exists`; the store or MariaDB failed.
    pub async fn publish(&self, publication: Publication) -> Result<Vec<MediaRow>, Problem> {
        let mut items = Vec::new();
        let mut objects = Vec::new();
        for file in publication.files {
            let key = ObjectKey::new();
            let original = StoredObject {
                key,
                mime: file.mime,
                size: file.staged.size(),
                sha256: file.staged.sha256(),
            };
            let (width, height) = file.picture.as_ref().map(|p| (p.width, p.height)).unzip();
            let mut thumbnail = None;
            if let Some(small) = file.picture.and_then(|picture| picture.thumbnail) {
                let key = ObjectKey::new();
                thumbnail = Some(StoredObject {
                    key,
                    mime: small.mime.to_owned(),
                    size: small.bytes.len() as u64,
                    sha256: Sha256::digest(&small.bytes).into(),
                });
                objects.push((key, Object::Thumbnail(small.bytes.into())));
            }
            objects.push((key, Object::Original(file.staged)));
            items.push(NewRow {
                name: file.name,
                kind: file.kind,
                visibility: file.visibility,
                width,
                height,
                duration: file.duration,
                original,
                thumbnail,
            });
        }
        let keys: Vec<ObjectKey> = objects.iter().map(|(key, _)| *key).collect();
        let due = now() + PUBLISH_GRACE_SECONDS;
        self.table
            .announce(&keys, due)
            .await
            .map_err(|error| error.into_problem())?;
        for (key, object) in objects {
            let stored = match object {
                Object::Original(staged) => self.store.publish(staged, key).await,
                Object::Thumbnail(bytes) => self.store.put(key, bytes).await,
            };
            stored.map_err(|error| error.into_problem())?;
        }
        let rows = NewRows {
            project: publication.project,
            folder: publication.folder,
            existing: publication.existing,
            items,
            upload: publication.upload,
        };
        let written = match self.table.write(&rows).await {
            Ok(written) => written,
            Err(error) => {
                self.clear(&keys).await;
                return Err(error.into_problem());
            }
        };
        self.forget(&written.rows);
        self.clear(&written.replaced).await;
        Ok(written.rows)
    }

    /// Deletes objects that no row names; what fails is left to the sweeper.
    async fn clear(&self, keys: &[ObjectKey]) {
        if self.store.delete(keys).await.is_ok() {
            let _ = self.table.settle(keys).await;
        }
    }

    /// The file at a path, as it was a moment ago at most.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn find(&self, path: &FilePath) -> Result<Option<Arc<MediaRow>>, Problem> {
        let look_up = || async {
            let found = self.table.lookup(path).await;
            found.map_err(TableError::into_problem)
        };
        self.lookups.find(path, look_up).await
    }

    /// Has the table asked again for a file whose object is gone: it was replaced or deleted, perhaps by another origin.
    pub fn doubt(&self, path: &FilePath) {
        self.lookups.forget(path);
    }

    fn forget(&self, rows: &[MediaRow]) {
        for row in rows {
            self.lookups.forget(&row.path());
        }
    }

    /// A project's file.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn get(
        &self,
        project: &ProjectName,
        id: MediaId,
    ) -> Result<Option<MediaRow>, Problem> {
        let found = self.table.get(project, id).await;
        found.map_err(|error| error.into_problem())
    }

    /// A project's files, and how many there are in all if that was asked.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn list(
        &self,
        project: &ProjectName,
        list: &MediaList,
    ) -> Result<(Vec<MediaRow>, Option<u64>), Problem> {
        let found = self.table.list(project, list).await;
        found.map_err(|error| error.into_problem())
    }

    /// Deletes a project's file.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn delete(
        &self,
        project: &ProjectName,
        id: MediaId,
    ) -> Result<Option<MediaRow>, Problem> {
        let deleted = self.table.delete(project, id).await;
        let row = deleted.map_err(|error| error.into_problem())?;
        if let Some(row) = &row {
            self.forget(std::slice::from_ref(row));
            let keys: Vec<ObjectKey> = row.objects().collect();
            self.clear(&keys).await;
        }
        Ok(row)
    }
}

enum Object {
    Original(super::store::Staged),
    Thumbnail(Bytes),
}
