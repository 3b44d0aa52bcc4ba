//! From files that may come in to objects in the store and the rows that are to name them.
//!
//! Writes no row: the ledger alone knows of what is stored here.

use crate::clock::now;
use crate::database::media::ObjectKey;
use crate::database::media::{FinishedUpload, MediaTable, NewRow, NewRows, StoredObject};
use crate::fault::{self, Point};
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

/// How long storing all files of one upload may take: 10 GiB at 1 MB/s.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

/// After how long objects that were announced are left-overs: when nobody stores them any more, with an hour for
/// clocks that disagree.
pub(super) const PUBLISH_GRACE: Duration = Duration::from_secs(4 * 60 * 60);

/// Objects of one upload that are stored at once: a bucket takes tens of milliseconds for each, however small.
const OBJECTS_AT_ONCE: usize = 4;

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

impl Publication {
    /// Whether its folder becomes private, with all files in it and below.
    #[must_use]
    pub fn makes_folder_private(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|file| file.visibility == Visibility::PrivateFolder)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &MediaName> {
        self.files.iter().map(|file| &file.name)
    }

    /// Gives each object its key.
    pub(super) fn into_parts(self) -> Parts {
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
        Parts {
            objects,
            rows: NewRows {
                project: self.project,
                folder: self.folder,
                existing: self.existing,
                items,
                upload: self.upload,
            },
        }
    }
}

/// Files in two halves: what the store gets, and what the rows say.
#[derive(Debug)]
pub(super) struct Parts {
    objects: Vec<(ObjectKey, Object)>,
    rows: NewRows,
}

#[derive(Debug)]
enum Object {
    Original(Staged),
    Thumbnail(Bytes),
}

impl Parts {
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.objects.iter().map(|(key, _)| *key).collect()
    }

    /// Announces all objects, then stores them; the rows are what is left to do. After a failure, what was stored is
    /// deleted; the ledger keeps it, since a step that was broken off may still end well in the store.
    pub(super) async fn store(self, store: &Store, table: &MediaTable) -> Result<NewRows, Problem> {
        let keys = self.keys();
        let due_at = now() + PUBLISH_GRACE.as_secs();
        let announced = table.announce(&keys, due_at).await;
        announced.map_err(|error| error.into_problem())?;
        fault::reach(Point::Announced);
        let storing = store_all(self.objects, store);
        let stored = match tokio::time::timeout(PUBLISH_TIMEOUT, storing).await {
            Ok(stored) => stored.map_err(StoreError::into_problem),
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

/// Stores objects, a few at once. After a failure no further one is begun; those that were end before this does, since
/// the store would finish them behind the back of whoever deletes them.
async fn store_all(objects: Vec<(ObjectKey, Object)>, store: &Store) -> Result<(), StoreError> {
    let has_failed = AtomicBool::new(false);
    let mut storing = stream::iter(objects)
        .take_while(|_| std::future::ready(!has_failed.load(Ordering::Relaxed)))
        .map(|(key, object)| object.store(store, key))
        .buffer_unordered(OBJECTS_AT_ONCE);
    let mut outcome = Ok(());
    while let Some(stored) = storing.next().await {
        match stored {
            Ok(()) => fault::reach(Point::ObjectPublished),
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
