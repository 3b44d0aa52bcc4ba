//! The order of things: announced, published, recorded; and taken back where a step fails.
//!
//! Whatever breaks off leaves rows that name whole objects, and a ledger of the others, which a sweeper deletes. What
//! has begun goes on to its end when its caller leaves.

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

/// Publications and deletions at once, also of callers who left: each may hold some staged files and thumbnails.
pub(crate) const DEEDS_MAX_COUNT: u64 = 256;

/// Those of one project.
pub(crate) const DEEDS_PER_PROJECT_MAX_COUNT: u64 = 128;

/// How long one waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);

/// Every project's files. Clones are cheap and share everything.
#[derive(Clone, Debug)]
pub struct Library {
    store: Store,
    table: MediaTable,
    lookups: Arc<Lookups>,
    turns: Shares,
    /// Set once the store is known to take files of this installation.
    owner_checked: Arc<OnceCell<()>>,
}

impl Library {
    /// The files in this store that this table records.
    #[must_use]
    pub fn new(store: Store, table: MediaTable) -> Self {
        Self {
            store,
            table,
            lookups: Arc::default(),
            turns: Shares::new(DEEDS_MAX_COUNT, DEEDS_PER_PROJECT_MAX_COUNT),
            owner_checked: Arc::default(),
        }
    }

    /// The files of an installation. Its directories are made; neither a bucket nor MariaDB is contacted yet.
    ///
    /// # Errors
    /// A directory can't be made, or the store's address can't be used.
    pub fn open(config: &Config, table: MediaTable) -> Result<Self, StoreError> {
        let store = Store::open(&config.media_store, &config.media_dir())?;
        Ok(Self::new(store, table))
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
    /// `media_exists`; `invalid_body` if the whole library is asked to be private; `storage_unavailable` if the store is
    /// another installation's; the store or MariaDB failed.
    pub async fn publish(&self, publication: Publication) -> Result<Vec<MediaRow>, Problem> {
        check_folder(&publication)?;
        self.check_owner().await?;
        // Told before anything is published, where it can be; the transaction decides.
        if publication.existing == Existing::Stays {
            let names: Vec<_> = publication.names().cloned().collect();
            let taken = self.table.taken(&publication.project, &publication.folder, &names).await;
            if let Some(name) = taken.map_err(|error| error.into_problem())? {
                return Err(crate::database::media::exists(&publication.folder, &name));
            }
        }
        let project = publication.project.clone();
        self.to_its_end(&project, |library| async move { library.publish_parts(publication.into_parts()).await }).await
    }

    async fn publish_parts(self, parts: Parts) -> Result<Vec<MediaRow>, Problem> {
        fault::reach(Point::Arrived);
        let keys = parts.keys();
        let rows = parts.store(&self.store, &self.table).await?;
        fault::reach(Point::Published);
        let outcome = self.table.write(&rows).await;
        // Also after a failure, since the transaction may be committed all the same.
        if rows.makes_folder_private() {
            self.lookups.forget_project(&rows.project);
        }
        let written = match outcome {
            Ok(written) => written,
            Err(error) => {
                self.take_back(&keys).await;
                return Err(error.into_problem());
            }
        };
        fault::reach(Point::RowsCommitted);
        self.forget(&written.rows);
        self.clear(&written.replaced).await;
        Ok(written.rows)
    }

    /// Deletes objects that were to be named by rows which were not written. Whether they were is not certain where MariaDB
    /// fell silent: those that are not in the ledger are named, and stay.
    async fn take_back(&self, keys: &[ObjectKey]) {
        match self.table.mark_for_deletion(keys).await {
            Ok(doomed) => {
                fault::reach(Point::Doomed);
                self.clear(&doomed).await;
            }
            Err(error) => tracing::warn!(%error, "objects are left to the sweeper"),
        }
    }

    /// Deletes doomed objects. What fails is left to the sweeper.
    async fn clear(&self, keys: &[ObjectKey]) {
        if let Err(error) = self.delete_doomed(keys).await {
            tracing::warn!(%error, "objects are left to the sweeper");
        }
    }

    async fn delete_doomed(&self, keys: &[ObjectKey]) -> Result<(), SweepError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.store.delete(keys).await?;
        fault::reach(Point::ObjectsDeleted);
        self.table.remove_marked(keys).await?;
        fault::reach(Point::Settled);
        Ok(())
    }

    /// The file at a path, as it was a moment ago at most.
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
    pub async fn get(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let found = self.table.get(project, id).await;
        found.map_err(|error| error.into_problem())
    }

    /// A project's files, and how many there are in all if that was asked.
    pub async fn list(&self, project: &ProjectName, list: &MediaList) -> Result<(Vec<MediaRow>, Option<u64>), Problem> {
        let found = self.table.list(project, list).await;
        found.map_err(|error| error.into_problem())
    }

    /// Deletes a project's file.
    pub async fn delete(&self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let of = project.clone();
        self.to_its_end(project, |library| async move { library.delete_row(&of, id).await }).await
    }

    async fn delete_row(self, project: &ProjectName, id: MediaId) -> Result<Option<MediaRow>, Problem> {
        let deleted = self.table.delete(project, id).await;
        let row = deleted.map_err(|error| error.into_problem())?;
        fault::reach(Point::DeletionCommitted);
        if let Some(row) = &row {
            self.forget(std::slice::from_ref(row));
            self.clear(&row.objects().collect::<Vec<_>>()).await;
        }
        Ok(row)
    }

    /// Runs a deed on a task of its own: a caller who leaves does not break it off.
    async fn to_its_end<T, F>(&self, project: &ProjectName, deed: impl FnOnce(Self) -> F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.turns.take(project, 1));
        let Ok(turn) = turn.await else {
            return Err(Problem::new(ErrorCode::Overloaded, "Too many files are being stored already."));
        };
        let deed = deed(self.clone());
        let task = tokio::spawn(async move {
            let _turn = turn;
            deed.await
        });
        task.await.unwrap_or_else(|error| {
            Err(Problem::internal("The media library failed.", format!("its task broke off: {error}")))
        })
    }
}

/// A private root would hide every file there is, which nobody means by it, and nothing takes back.
fn check_folder(publication: &Publication) -> Result<(), Problem> {
    if publication.folder.as_str().is_empty() && publication.makes_folder_private() {
        return Err(Problem::new(ErrorCode::InvalidBody, "privateFolder needs a folder that it is to make private.")
            .with_hint("Name a folder, or use \"private\": true for the file alone."));
    }
    Ok(())
}
