//! Publishes and deletes files: announces objects, stores them, writes rows, and undoes this if a step fails. A crash
//! at any moment leaves rows that name complete objects, and a ledger of all other objects for the sweeper. Work that
//! has begun continues when its client disconnects.

mod owner;
mod publication;
mod sweep;

use super::lookup::Lookups;
use super::store::{Store, StoreError};
use crate::config::Config;
use crate::database::media::ObjectKey;
use crate::database::media::{MediaRow, MediaTable, TableError};
use crate::fault::{self, Point};
use crate::shares::Shares;
use publication::Parts;
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

/// The maximum number of concurrent publications and deletions, including those of disconnected clients: each may hold
/// staged files and thumbnails.
pub(crate) const DEEDS_MAX_COUNT: u64 = 256;

/// The maximum number of concurrent publications and deletions of one project.
pub(crate) const DEEDS_PER_PROJECT_MAX_COUNT: u64 = 128;

/// How long a publication or deletion may wait for others to end.
const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// The media files of all projects. Clones share everything.
#[derive(Clone, Debug)]
pub struct Library {
    store: Store,
    table: MediaTable,
    lookups: Arc<Lookups>,
    slots: Shares,
    /// Set once the store is known to accept files of this installation.
    owner_checked: Arc<OnceCell<()>>,
}

impl Library {
    #[must_use]
    pub fn new(store: Store, table: MediaTable) -> Self {
        Self {
            store,
            table,
            lookups: Arc::default(),
            slots: Shares::new(DEEDS_MAX_COUNT, DEEDS_PER_PROJECT_MAX_COUNT),
            owner_checked: Arc::default(),
        }
    }

    /// Opens the store that `config` names. Makes directories, but contacts neither a bucket nor MariaDB.
    ///
    /// # Errors
    /// A directory can't be made, or the store's address can't be used.
    pub fn open(config: &Config, table: MediaTable) -> Result<Self, StoreError> {
        let store = Store::open(&config.media_store, &config.media_dir())?;
        Ok(Self::new(store, table))
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    #[must_use]
    pub fn table(&self) -> &MediaTable {
        &self.table
    }

    /// Publishes files, all or none.
    ///
    /// # Errors
    /// `media_exists`; `invalid_body` if the root folder is to become private; `storage_unavailable` if the store
    /// belongs to another installation; errors of the store or MariaDB.
    pub async fn publish(&self, publication: Publication) -> Result<Vec<MediaRow>, Problem> {
        check_folder(&publication)?;
        self.check_owner().await?;
        // An early check that saves storing the files; the transaction decides.
        if publication.existing == Existing::Stays {
            let names: Vec<_> = publication.names().cloned().collect();
            let taken = self.table.taken(&publication.project, &publication.folder, &names).await;
            if let Some(name) = taken.map_err(|error| error.into_problem())? {
                return Err(crate::database::media::exists(&publication.folder, &name));
            }
        }
        let project = publication.project.clone();
        self.run_detached(&project, |library| async move { library.publish_parts(publication.into_parts()).await })
            .await
    }

    async fn publish_parts(self, parts: Parts) -> Result<Vec<MediaRow>, Problem> {
        fault::reach(Point::Arrived);
        let keys = parts.keys();
        let rows = parts.store(&self.store, &self.table).await?;
        fault::reach(Point::Published);
        let outcome = self.table.write(&rows).await;
        // Also after an error, since the transaction may have been committed.
        if rows.makes_folder_private() {
            self.lookups.forget_project(&rows.project);
        }
        let written = match outcome {
            Ok(written) => written,
            Err(error) => {
                self.delete_unrecorded(&keys).await;
                return Err(error.into_problem());
            }
        };
        fault::reach(Point::RowsCommitted);
        self.forget(&written.rows);
        self.try_delete_marked(&written.replaced).await;
        Ok(written.rows)
    }

    /// Deletes objects whose rows may not have been written: those that are still in the ledger. Objects that a
    /// committed transaction has named are no longer there, and stay.
    async fn delete_unrecorded(&self, keys: &[ObjectKey]) {
        match self.table.mark_for_deletion(keys).await {
            Ok(marked) => {
                fault::reach(Point::DeletionRecorded);
                self.try_delete_marked(&marked).await;
            }
            Err(error) => tracing::warn!(%error, "objects are left to the sweeper"),
        }
    }

    /// Deletes objects that are marked for deletion. After an error, they are left to the sweeper.
    async fn try_delete_marked(&self, keys: &[ObjectKey]) {
        if let Err(error) = self.delete_marked(keys).await {
            tracing::warn!(%error, "objects are left to the sweeper");
        }
    }

    async fn delete_marked(&self, keys: &[ObjectKey]) -> Result<(), SweepError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.store.delete(keys).await?;
        fault::reach(Point::ObjectsDeleted);
        self.table.remove_marked(keys).await?;
        fault::reach(Point::LedgerCleared);
        Ok(())
    }

    /// Returns the file at a path, possibly from the cache of [`Lookups`]; `None` if there is none.
    pub async fn find(&self, path: &FilePath) -> Result<Option<Arc<MediaRow>>, Problem> {
        let look_up = || async {
            let found = self.table.lookup(path).await;
            found.map_err(TableError::into_problem)
        };
        self.lookups.find(path, look_up).await
    }

    /// Drops the cached look-up of a file whose object is missing, since the file was replaced or deleted, perhaps by
    /// another origin.
    pub fn doubt(&self, path: &FilePath) {
        self.lookups.forget(path);
    }

    fn forget(&self, rows: &[MediaRow]) {
        for row in rows {
            self.lookups.forget(&row.path());
        }
    }

    /// Returns the file with this id; `None` if there is none or if it belongs to another project.
    pub async fn get(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let found = self.table.get(project, id).await;
        found.map_err(|error| error.into_problem())
    }

    /// Returns a project's files and, if `list.count` is set, the number of files without limit and offset.
    pub async fn list(&self, project: &ProjectName, list: &MediaList) -> Result<(Vec<MediaRow>, Option<u64>), Problem> {
        let found = self.table.list(project, list).await;
        found.map_err(|error| error.into_problem())
    }

    /// Deletes a project's file and returns its row; `None` if there is none.
    pub async fn delete(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let of = project.clone();
        self.run_detached(project, |library| async move { library.delete_row(&of, id).await }).await
    }

    async fn delete_row(self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let deleted = self.table.delete(project, id).await;
        let row = deleted.map_err(|error| error.into_problem())?;
        fault::reach(Point::DeletionCommitted);
        if let Some(row) = &row {
            self.forget(std::slice::from_ref(row));
            self.try_delete_marked(&row.objects().collect::<Vec<_>>()).await;
        }
        Ok(row)
    }

    /// Runs `work` on a task of its own, so that it continues when its client disconnects.
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

/// Refuses to make the root folder private: that would hide all files of the project, and can't be undone.
fn check_folder(publication: &Publication) -> Result<(), Problem> {
    if publication.folder.as_str().is_empty() && publication.makes_folder_private() {
        return Err(Problem::new(ErrorCode::InvalidBody, "privateFolder needs a folder that it is to make private.")
            .with_hint("Name a folder, or use \"private\": true for the file alone."));
    }
    Ok(())
}
