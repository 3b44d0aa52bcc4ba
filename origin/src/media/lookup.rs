//! Short-lived cache of media rows by path. A change by another process is visible within [`FOUND_FOR`], or after a
//! slow look-up of the path that is in progress. A change by this process is visible at once, if its commit is known.

use crate::database::media::MediaRow;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::media::FilePath;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub const FOUND_FOR: Duration = Duration::from_secs(2);

/// The age up to which a missing file is cached. Short, since the file may be uploaded at any moment. Private
/// files are cached for the same time: otherwise the time of a response would tell a caller without rights whether a file
/// exists.
pub const ABSENT_FOR: Duration = Duration::from_millis(500);

/// The maximum number of cached paths. A look-up takes up to 1 KB.
const PATHS_MAX_COUNT: usize = 10_000;

/// The time limit of a look-up, with the wait for another request's look-up of the same path.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Lookups {
    entries: Cache<FilePath, CachedFile>,
    /// The number of `forget_project` calls for each project. Entries that were read at an earlier number are invalid.
    generations: RwLock<HashMap<ProjectName, u64>>,
}

#[derive(Clone)]
struct CachedFile {
    file: Option<Arc<MediaRow>>,
    read_at: Instant,
    generation: u64,
}

impl CachedFile {
    fn is_fresh(&self, generation: u64) -> bool {
        let lifetime = match &self.file {
            Some(file) if !file.private => FOUND_FOR,
            _ => ABSENT_FOR,
        };
        self.generation == generation && self.read_at.elapsed() < lifetime
    }
}

impl Default for Lookups {
    fn default() -> Self {
        Self { entries: Cache::new(PATHS_MAX_COUNT), generations: RwLock::default() }
    }
}

impl Lookups {
    /// Returns the cached row, or calls `look_up` once for concurrent misses of one path. Errors are not cached.
    pub async fn find<F>(&self, path: &FilePath, look_up: impl FnOnce() -> F) -> Result<Option<Arc<MediaRow>>, Problem>
    where
        F: Future<Output = Result<Option<MediaRow>, Problem>>,
    {
        let generation = self.generation(&path.project);
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, async {
            loop {
                self.entries.remove_if(path, |entry| !entry.is_fresh(generation));
                match self.entries.get_value_or_guard_async(path).await {
                    Ok(entry) if entry.generation < generation => {}
                    Ok(entry) => return Ok(entry.file),
                    Err(guard) => {
                        let read_at = Instant::now();
                        let file = look_up().await?.map(Arc::new);
                        // The guard inserts nothing if `forget` has removed the path meanwhile.
                        let _ = guard.insert(CachedFile { file: file.clone(), read_at, generation });
                        return Ok(file);
                    }
                }
            }
        });
        found.await.unwrap_or_else(|_| {
            Err(Problem::new(ErrorCode::DatabaseUnavailable, "The file could not be looked up in time."))
        })
    }

    /// Removes a path from the cache. Must be called after each commit that adds, replaces or deletes the file.
    pub fn forget(&self, path: &FilePath) {
        self.entries.remove(path);
    }

    /// Removes a project from the cache. Must be called after commits that make a folder private.
    pub fn forget_project(&self, project: &ProjectName) {
        let mut generations = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        *generations.entry(project.clone()).or_default() += 1;
    }

    fn generation(&self, project: &ProjectName) -> u64 {
        let generations = self.generations.read().unwrap_or_else(PoisonError::into_inner);
        generations.get(project).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::media::ObjectKey;
    use crate::database::media::StoredObject;
    use shared::media::MediaKind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn path() -> FilePath {
        FilePath::parse("/media/default/a/b.png").unwrap()
    }

    fn file() -> MediaRow {
        let path = path();
        MediaRow {
            id: 1.into(),
            project: path.project,
            folder: path.folder,
            name: path.name,
            kind: MediaKind::Image,
            private: false,
            width: None,
            height: None,
            original: StoredObject { key: ObjectKey::new(), mime: "image/png".to_owned(), size: 1, sha256: [1; 32] },
            thumbnail: None,
            created_at: 1,
            updated_at: 1,
            uploader: None,
        }
    }

    #[tokio::test]
    async fn many_who_ask_at_once_ask_the_table_once() {
        let (lookups, asked) = (Lookups::default(), AtomicUsize::new(0));
        let file = file();
        let path = path();
        let find = || {
            lookups.find(&path, || async {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(Some(file.clone()))
            })
        };
        let all = futures_util::future::join_all((0..100).map(|_| find())).await;
        for found in all {
            assert_eq!(*found.unwrap().unwrap(), file);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        lookups.forget(&path);
        find().await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn what_was_read_before_it_was_forgotten_is_not_remembered() {
        let (lookups, path) = (Lookups::default(), path());
        let stale = lookups
            .find(&path, || async {
                lookups.forget(&path);
                Ok(Some(file()))
            })
            .await;
        assert!(stale.unwrap().is_some());
        let fresh = lookups.find(&path, || async { Ok(None) }).await;
        assert_eq!(fresh.unwrap(), None);
    }

    #[tokio::test]
    async fn a_forgotten_project_is_looked_up_again_and_others_are_not() {
        let (lookups, path) = (Arc::new(Lookups::default()), path());
        let ask = |file: Option<MediaRow>| lookups.find(&path, || async { Ok(file) });
        assert!(ask(Some(file())).await.unwrap().is_some());
        lookups.forget_project(&ProjectName::parse("other").unwrap());
        assert!(ask(None).await.unwrap().is_some());
        lookups.forget_project(&path.project);
        assert!(ask(None).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_look_up_under_way_does_not_answer_who_asks_after_the_project_was_forgotten() {
        let (lookups, path) = (Lookups::default(), path());
        let (goes_on, held) = tokio::sync::oneshot::channel::<()>();
        let early = lookups.find(&path, || async {
            let _ = held.await;
            Ok(Some(file()))
        });
        let late = async {
            tokio::task::yield_now().await;
            lookups.forget_project(&path.project);
            let found = lookups.find(&path, || async { Ok(None) });
            let release = async {
                tokio::task::yield_now().await;
                let _ = goes_on.send(());
            };
            tokio::join!(found, release).0
        };
        let (early, late) = tokio::join!(early, late);
        assert!(early.unwrap().is_some());
        assert_eq!(late.unwrap(), None);
    }

    #[tokio::test]
    async fn a_failure_is_nobody_elses() {
        let (lookups, path) = (Lookups::default(), path());
        let failed = lookups.find(&path, || async { Err(Problem::new(ErrorCode::DatabaseUnavailable, "down")) }).await;
        assert!(failed.is_err());
        let found = lookups.find(&path, || async { Ok(Some(file())) }).await;
        assert!(found.unwrap().is_some());
    }

    #[test]
    fn an_absence_and_a_private_file_are_remembered_for_less_time_than_a_public_file() {
        let Some(read_at) = Instant::now().checked_sub(ABSENT_FOR) else {
            return;
        };
        let entry = |file: Option<MediaRow>| CachedFile { file: file.map(Arc::new), read_at, generation: 0 };
        assert!(!entry(None).is_fresh(0));
        assert!(!entry(Some(MediaRow { private: true, ..file() })).is_fresh(0));
        assert!(entry(Some(file())).is_fresh(0));
    }
}
