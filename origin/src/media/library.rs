//! Publishes, looks up and deletes media files, as objects in the store and rows in MariaDB. After a crash at any
//! moment, the objects of each row are complete, and the keys of other objects are in the ledger (see
//! `database::media`), by which sweeps delete the objects.

mod owner;
mod publication;
mod sweep;

use super::lookup::Lookups;
use super::store::{Store, StoreError};
use crate::config::Config;
use crate::crash_points::{self, Point};
use crate::database::media::ObjectKey;
use crate::database::media::{ChangeableFiles, MediaRow, MediaTable, ReadableFiles};
use crate::project_quota::ProjectQuota;
use publication::PublicationParts;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::media::FilePath;
use shared::operation::media::{MediaId, MediaList};
use shared::upload::Existing;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

pub use owner::Ownership;
pub use publication::Publication;
pub use sweep::{SweepError, SweepTerms, Swept};

/// The maximum number of publications and deletions at a time, with those whose clients have disconnected.
pub(crate) const FILE_CHANGES_MAX_COUNT: u64 = 256;

pub(crate) const FILE_CHANGES_PER_PROJECT_MAX_COUNT: u64 = 128;

const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Library {
    store: Store,
    table: MediaTable,
    lookups: Arc<Lookups>,
    slots: ProjectQuota,
    owner_checked: Arc<OnceCell<()>>,
}

impl Library {
    pub fn new(store: Store, table: MediaTable) -> Self {
        Self {
            store,
            table,
            lookups: Arc::default(),
            slots: ProjectQuota::new(FILE_CHANGES_MAX_COUNT, FILE_CHANGES_PER_PROJECT_MAX_COUNT),
            owner_checked: Arc::default(),
        }
    }

    /// Opens the store without a request to a bucket or MariaDB.
    pub fn open(config: &Config, table: MediaTable) -> Result<Self, StoreError> {
        let store = Store::open(&config.media_store, &config.media_dir())?;
        Ok(Self::new(store, table))
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn table(&self) -> &MediaTable {
        &self.table
    }

    /// Stores the files and writes their rows, all or none. After an error of MariaDB, the files may have been
    /// published.
    pub async fn publish(&self, publication: Publication) -> Result<Vec<MediaRow>, Problem> {
        check_folder(&publication)?;
        self.check_owner().await?;
        if publication.existing == Existing::Stays {
            let names: Vec<_> = publication.names().cloned().collect();
            if let Some(name) = self.table.taken(&publication.project, &publication.folder, &names).await? {
                return Err(crate::database::media::exists(&publication.folder, &name));
            }
        }
        let project = publication.project.clone();
        self.run_detached(&project, |library| async move { library.publish_parts(publication.into_parts()).await })
            .await
    }

    async fn publish_parts(self, parts: PublicationParts) -> Result<Vec<MediaRow>, Problem> {
        crash_points::reach(Point::Arrived);
        let keys = parts.keys();
        let rows = parts.store(&self.store, &self.table).await?;
        crash_points::reach(Point::Published);
        let outcome = self.table.write(&rows).await;
        // The transaction may have been committed in spite of an error.
        if rows.makes_folder_private() {
            self.lookups.forget_project(&rows.project);
        }
        let written = match outcome {
            Ok(written) => written,
            Err(error) => {
                self.delete_unrecorded(&rows.project, &keys).await;
                return Err(error.into());
            }
        };
        crash_points::reach(Point::RowsCommitted);
        self.forget(&written.rows);
        self.try_delete_marked(&rows.project, &written.replaced).await;
        Ok(written.rows)
    }

    /// Deletes objects after a failed publication. Objects of committed rows are not in the ledger any more, and stay.
    async fn delete_unrecorded(&self, project: &ProjectName, keys: &[ObjectKey]) {
        match self.table.mark_for_deletion(project, keys).await {
            Ok(marked) => {
                crash_points::reach(Point::DeletionRecorded);
                self.try_delete_marked(project, &marked).await;
            }
            Err(error) => tracing::warn!(%error, "objects are left to the sweeper"),
        }
    }

    async fn try_delete_marked(&self, project: &ProjectName, keys: &[ObjectKey]) {
        if let Err(error) = self.delete_marked(Some(project), keys).await {
            tracing::warn!(%error, "objects are left to the sweeper");
        }
    }

    async fn delete_marked(&self, project: Option<&ProjectName>, keys: &[ObjectKey]) -> Result<(), SweepError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.store.delete(keys).await?;
        crash_points::reach(Point::ObjectsDeleted);
        self.table.remove_marked(project, keys).await?;
        crash_points::reach(Point::LedgerCleared);
        Ok(())
    }

    /// Looks a file up. The result may lack changes that other processes made in about the last two seconds.
    pub async fn find(&self, path: &FilePath) -> Result<Option<Arc<MediaRow>>, Problem> {
        self.lookups.find(path, || async { Ok(self.table.lookup(path).await?) }).await
    }

    /// Removes a file from the cache, for callers that miss its object in the store: the row may be outdated.
    pub fn forget_cached(&self, path: &FilePath) {
        self.lookups.forget(path);
    }

    fn forget(&self, rows: &[MediaRow]) {
        for row in rows {
            self.lookups.forget(&row.path());
        }
    }

    pub async fn get(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        Ok(self.table.get(project, id).await?)
    }

    pub async fn list(
        &self,
        project: &ProjectName,
        list: &MediaList,
        readable: &ReadableFiles,
    ) -> Result<(Vec<MediaRow>, Option<u64>), Problem> {
        Ok(self.table.list(project, list, readable).await?)
    }

    /// Deletes a file. If the store fails, a later sweep deletes the file's objects. After an error of MariaDB, the
    /// file may have been deleted.
    pub async fn delete(
        &self,
        project: &ProjectName,
        id: MediaId,
        scope: ChangeableFiles,
    ) -> Result<Option<MediaRow>, Problem> {
        let of = project.clone();
        self.run_detached(project, |library| async move { library.delete_row(&of, id, scope).await }).await
    }

    async fn delete_row(
        self,
        project: &ProjectName,
        id: MediaId,
        scope: ChangeableFiles,
    ) -> Result<Option<MediaRow>, Problem> {
        let row = self.table.delete(project, id, scope).await?;
        crash_points::reach(Point::DeletionCommitted);
        if let Some(row) = &row {
            self.forget(std::slice::from_ref(row));
            self.try_delete_marked(project, &row.objects().collect::<Vec<_>>()).await;
        }
        Ok(row)
    }

    /// Runs `work` in a task, so that `work` continues when the client disconnects.
    async fn run_detached<T, F>(&self, project: &ProjectName, work: impl FnOnce(Self) -> F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let slot = tokio::time::timeout(SLOT_TIMEOUT, self.slots.take(project, 1));
        let Ok(slot) = slot.await else {
            return Err(Problem::new(ErrorCode::Overloaded, "Too many files are being stored already."));
        };
        let work = work(self.clone());
        let task = tokio::spawn(async move {
            let _slot = slot;
            work.await
        });
        task.await.unwrap_or_else(|error| {
            Err(Problem::internal("The media library failed.", format!("its task failed: {error}")))
        })
    }
}

/// Refuses to make the root folder private: that would irrevocably hide all files of the project.
fn check_folder(publication: &Publication) -> Result<(), Problem> {
    if publication.folder.as_str().is_empty() && publication.makes_folder_private() {
        return Err(Problem::new(ErrorCode::InvalidBody, "privateFolder needs a folder that it is to make private.")
            .with_hint("Name a folder, or use \"private\": true for the file alone."));
    }
    Ok(())
}
