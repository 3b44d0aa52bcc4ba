//! Stores validated files as objects, after entering their keys in the ledger, and prepares the objects' rows.

use crate::clock::now;
use crate::crash_points::{self, Point};
use crate::database::media::ObjectKey;
use crate::database::media::{ChangeableFiles, FinishedUpload, MediaTable, NewRow, NewRows, StoredObject, Uploader};
use crate::media::intake::Examined;
use crate::media::store::{Staged, Store, StoreError};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::media::{FolderPath, MediaName};
use shared::upload::{Existing, Visibility};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time limit for storing all files of one upload: 10 GiB at 1 MB/s.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

/// [`PUBLISH_TIMEOUT`] and an hour for clock differences. Then regular sweeps delete the objects if they have no rows.
pub(super) const PUBLISH_GRACE: Duration = Duration::from_secs(4 * 60 * 60);

/// The maximum number of objects stored at a time. A bucket takes tens of milliseconds for each object.
const OBJECTS_AT_ONCE: usize = 4;

#[derive(Debug)]
pub struct Publication {
    pub project: ProjectName,
    pub folder: FolderPath,
    pub existing: Existing,
    pub replaceable: ChangeableFiles,
    pub files: Vec<Examined>,
    pub uploader: Option<Uploader>,
    pub upload: Option<FinishedUpload>,
}

impl Publication {
    pub fn makes_folder_private(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|file| file.visibility == Visibility::PrivateFolder)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &MediaName> {
        self.files.iter().map(|file| &file.name)
    }

    pub(super) fn into_parts(self) -> PublicationParts {
        let (mut items, mut objects) = (Vec::new(), Vec::new());
        for file in self.files {
            let (width, height) = file.picture.as_ref().map(|p| (p.width, p.height)).unzip();
            let original = StoredObject {
                key: ObjectKey::new(),
                mime: file.mime,
                size: file.staged.size(),
                sha256: file.staged.sha256(),
            };
            objects.push((original.key, Object::Original(file.staged)));
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
            items.push(NewRow {
                name: file.name,
                kind: file.kind,
                visibility: file.visibility,
                width,
                height,
                original,
                thumbnail,
            });
        }
        PublicationParts {
            objects,
            rows: NewRows {
                project: self.project,
                folder: self.folder,
                existing: self.existing,
                replaceable: self.replaceable,
                items,
                uploader: self.uploader,
                upload: self.upload,
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct PublicationParts {
    objects: Vec<(ObjectKey, Object)>,
    rows: NewRows,
}

#[derive(Debug)]
enum Object {
    Original(Staged),
    Thumbnail(Bytes),
}

impl PublicationParts {
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.objects.iter().map(|(key, _)| *key).collect()
    }

    /// Stores the objects. After an error, their keys stay in the ledger: an interrupted request may leave an object.
    pub(super) async fn store(self, store: &Store, table: &MediaTable) -> Result<NewRows, Problem> {
        let keys = self.keys();
        let due_at = now() + PUBLISH_GRACE.as_secs();
        table.announce(&self.rows.project, &keys, due_at).await?;
        crash_points::reach(Point::Announced);
        let storing = store_all(self.objects, store);
        let stored = match tokio::time::timeout(PUBLISH_TIMEOUT, storing).await {
            Ok(stored) => stored.map_err(Problem::from),
            Err(_) => Err(Problem::new(ErrorCode::StorageUnavailable, "Storing the files took too long.")),
        };
        if let Err(problem) = stored {
            if let Err(error) = store.delete(&keys).await {
                tracing::warn!(%error, "objects are left to the sweeper");
            }
            return Err(problem);
        }
        Ok(self.rows)
    }
}

/// Stores all objects. After an error, waits for the requests in flight: otherwise an object could be stored after the
/// caller has deleted it.
async fn store_all(objects: Vec<(ObjectKey, Object)>, store: &Store) -> Result<(), StoreError> {
    let has_failed = AtomicBool::new(false);
    let mut storing = stream::iter(objects)
        .take_while(|_| std::future::ready(!has_failed.load(Ordering::Relaxed)))
        .map(|(key, object)| object.store(store, key))
        .buffer_unordered(OBJECTS_AT_ONCE);
    let mut outcome = Ok(());
    while let Some(stored) = storing.next().await {
        match stored {
            Ok(()) => crash_points::reach(Point::ObjectPublished),
            Err(error) => {
                has_failed.store(true, Ordering::Relaxed);
                outcome = outcome.and(Err(error));
            }
        }
    }
    outcome
}

impl Object {
    async fn store(self, store: &Store, key: ObjectKey) -> Result<(), StoreError> {
        match self {
            Self::Original(staged) => store.publish(staged, key).await,
            Self::Thumbnail(bytes) => store.put(key, bytes).await,
        }
    }
}
