//! Publication over a real store: what remains when a step fails, and what a sweep finds.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use mysql_async::prelude::Queryable;
use origin::clock::now;
use origin::config::StoreAddress;
use origin::database::media::{ChangeableFiles, MediaTable, ObjectKey};
use origin::media::image::{Picture, Thumbnail};
use origin::media::intake::Examined;
use origin::media::library::{Library, Ownership, Publication, SweepError, SweepTerms, Swept};
use origin::media::store::{Effect, Store};
use origin::system::projects::NameClaim;
use shared::error::ErrorCode;
use shared::ident::ProjectName;
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::upload::{Existing, Visibility};
use tempfile::TempDir;

use super::{any_project, path};
use crate::server::{Installation, Server, shared};

struct Shelf {
    library: Library,
    project: ProjectName,
    directory: TempDir,
}

impl Shelf {
    async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (_, installation, system) = shared().await;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let project = ProjectName::parse(&format!("shelf-{number}")).unwrap();
        let made = system.projects.create(&project, NameClaim::Refuse).await;
        made.unwrap();
        let table = MediaTable::new(&system.hosts, installation.config.connect_timeout);
        Self::over(table, project)
    }

    fn over(table: MediaTable, project: ProjectName) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = StoreAddress::Directory(directory.path().to_owned());
        let store = Store::open(&address, directory.path()).unwrap();
        Self { library: Library::new(store, table), project, directory }
    }

    async fn upload(&self, existing: Existing, files: &[(&str, &[u8])]) -> Publication {
        let mut examined = Vec::new();
        for (name, bytes) in files {
            let mut staging = self.library.store().stage();
            staging.write(bytes).await.unwrap();
            examined.push(Examined {
                staged: staging.finish().await.unwrap(),
                name: MediaName::parse(name).unwrap(),
                kind: MediaKind::Image,
                mime: "image/png".to_owned(),
                visibility: Visibility::Undeclared,
                picture: Some(Picture {
                    width: 1,
                    height: 1,
                    thumbnail: Some(Thumbnail { bytes: b"small".to_vec(), mime: "image/jpeg", width: 1, height: 1 }),
                }),
            });
        }
        Publication {
            project: self.project.clone(),
            folder: FolderPath::parse("f").unwrap(),
            existing,
            replaceable: ChangeableFiles::All,
            uploader: None,
            files: examined,
            upload: None,
        }
    }

    async fn stored(&self) -> Vec<ObjectKey> {
        let listed = self.library.store().list();
        let mut keys: Vec<_> = listed.try_filter_map(async |listed| Ok(listed.key)).try_collect().await.unwrap();
        keys.sort_unstable();
        keys
    }

    async fn named(&self, names: &[&str]) -> Vec<ObjectKey> {
        let mut keys = Vec::new();
        for name in names {
            let row = self.library.table().lookup(&path(&self.project, "f", name)).await;
            keys.extend(row.unwrap().into_iter().flat_map(|row| row.objects().collect::<Vec<_>>()));
        }
        keys.sort_unstable();
        keys
    }

    async fn bytes(&self, key: ObjectKey) -> Vec<u8> {
        let pieces = self.library.store().read(key, None).await.unwrap();
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        pieces.concat()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_uploads_of_one_name_one_is_stored_and_the_others_leave_nothing() {
    let shelf = Shelf::new().await;
    for round in 0..5 {
        let name = format!("{round}");
        let mut writers = Vec::new();
        for _ in 0..6 {
            let files: [(&str, &[u8]); 2] = [(&name, b"some"), (&format!("{round} b"), b"more")];
            let upload = shelf.upload(Existing::Stays, &files).await;
            let library = shelf.library.clone();
            writers.push(tokio::spawn(async move { library.publish(upload).await }));
        }
        let mut won = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(rows) => won += rows.len(),
                Err(problem) => assert_eq!(problem.code(), ErrorCode::MediaExists),
            }
        }
        assert_eq!(won, 2);
    }
    let names: Vec<String> = (0..5).flat_map(|n| [format!("{n}"), format!("{n} b")]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(shelf.stored().await, shelf.named(&names).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_and_deleted_files_leave_the_store() {
    let shelf = Shelf::new().await;
    let first = shelf.upload(Existing::Stays, &[("a", b"old"), ("b", b"kept")]).await;
    shelf.library.publish(first).await.unwrap();
    for round in 0..4_u8 {
        let next = shelf.upload(Existing::IsReplaced, &[("a", &[round])]).await;
        let row = shelf.library.publish(next).await.unwrap().remove(0);
        assert_eq!(shelf.bytes(row.original.key).await, [round]);
        assert_eq!(shelf.bytes(row.thumbnail.unwrap().key).await, b"small");
        assert_eq!(shelf.stored().await, shelf.named(&["a", "b"]).await);
    }
    let row = shelf.library.table().lookup(&path(&shelf.project, "f", "a")).await;
    let id = row.unwrap().unwrap().id;
    let deleted = shelf.library.delete(&shelf.project, id, ChangeableFiles::All).await.unwrap();
    assert_eq!(deleted.map(|row| row.id), Some(id));
    assert_eq!(shelf.library.delete(&shelf.project, id, ChangeableFiles::All).await.unwrap(), None);
    assert_eq!(shelf.stored().await.len(), 2);
    assert_eq!(shelf.stored().await, shelf.named(&["b"]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_leaves_no_row_and_no_object() {
    let shelf = Shelf::new().await;
    let upload = shelf.upload(Existing::Stays, &[("a", b"some"), ("b", b"more")]).await;
    let objects = shelf.directory.path().join("objects");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::write(&objects, "in the way").unwrap();
    let failed = shelf.library.publish(upload).await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::Internal);
    assert!(!failed.message().contains('/'), "{}", failed.message());
    std::fs::remove_file(&objects).unwrap();
    std::fs::create_dir(&objects).unwrap();
    assert!(shelf.named(&["a", "b"]).await.is_empty());
    assert!(shelf.stored().await.is_empty());
    let upload = shelf.upload(Existing::Stays, &[("a", b"some"), ("b", b"more")]).await;
    assert_eq!(shelf.library.publish(upload).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_who_leaves_has_begun_goes_on_to_its_end() {
    let shelf = Shelf::new().await;
    // Blocks the transaction until the caller has been cancelled.
    let mut root = Server::shared().root().await;
    root.query_drop("BEGIN").await.unwrap();
    let hold = "SELECT 1 FROM selkie.projects WHERE name = ? FOR UPDATE";
    root.exec_drop(hold, (shelf.project.as_str(),)).await.unwrap();
    let upload = shelf.upload(Existing::Stays, &[("a", b"some")]).await;
    let library = shelf.library.clone();
    let caller = tokio::spawn(async move { library.publish(upload).await });
    for _ in 0..2_000 {
        if shelf.stored().await.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(shelf.named(&["a"]).await.is_empty());
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    root.query_drop("ROLLBACK").await.unwrap();
    for _ in 0..1_000 {
        if !shelf.named(&["a"]).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(shelf.named(&["a"]).await, shelf.stored().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_upload_hides_the_whole_library() {
    let shelf = Shelf::new().await;
    let mut upload = shelf.upload(Existing::Stays, &[("a", b"some")]).await;
    upload.folder = FolderPath::root();
    upload.files[0].visibility = Visibility::PrivateFolder;
    let refused = shelf.library.publish(upload).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidBody);
    assert!(refused.hint().unwrap().contains("folder"));
    assert!(shelf.stored().await.is_empty());
}

/// Uses its own MariaDB server, since a sweep affects the ledger of all projects.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_finds_what_no_row_names_and_nothing_else() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let server = Server::start(None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let table = MediaTable::new(&system.hosts, installation.config.connect_timeout);
    let shelf = Shelf::over(table, ProjectName::parse("default").unwrap());
    let (library, store) = (&shelf.library, shelf.library.store());
    let kept = shelf.upload(Existing::Stays, &[("a", b"some"), ("b", b"more")]).await;
    library.publish(kept).await.unwrap();
    // Announced and published before a crash, one of them long ago.
    let (lately, long_ago) = (ObjectKey::new(), ObjectKey::new());
    library.table().announce(&any_project(), &[lately], now() + 4 * 3_600).await.unwrap();
    library.table().announce(&any_project(), &[long_ago], now() - 1).await.unwrap();
    // Never announced, for example restored from a backup.
    let many: Vec<_> = (0..1_100).map(|_| ObjectKey::new()).collect();
    for key in many.iter().chain([&lately, &long_ago]) {
        store.put(*key, Bytes::from_static(b"left over")).await.unwrap();
    }
    let stranger = shelf.directory.path().join("objects/readme.txt");
    std::fs::write(&stranger, "not ours").unwrap();
    std::fs::write(shelf.directory.path().join("staging/crashed"), "part").unwrap();

    // Announced, but never stored.
    let never = [ObjectKey::new()];
    library.table().announce(&any_project(), &never, now() - 1).await.unwrap();

    let swept = library.sweep().await.unwrap();
    assert_eq!((swept.due, swept.staged), (1, 1));
    assert_eq!(library.sweep().await.unwrap(), Swept::default());
    std::fs::write(shelf.directory.path().join("staging/crashed"), "part").unwrap();
    let sweep = async |grace, effect, share_max| library.sweep_all(terms(grace, effect, share_max)).await;
    let lying = 4 + 1 + 1_100;
    let all = Swept { due: 1, staged: 1, orphans: 1_100, strangers: 1, objects: lying as u64 };
    let young = Swept { due: 0, orphans: 0, ..all };
    for (grace, expected) in [(HOUR, young), (Duration::ZERO, all)] {
        let counted = sweep(grace, Effect::Counts, 50).await.unwrap();
        assert_eq!(counted, expected);
        assert_eq!(shelf.stored().await.len(), lying);
    }
    let swept = sweep(HOUR, Effect::Deletes, 50).await.unwrap();
    assert_eq!(swept, young);
    assert_eq!(shelf.stored().await.len(), lying);

    refuses_to_sweep(&shelf).await;

    let swept = sweep(Duration::ZERO, Effect::Deletes, 100).await.unwrap();
    assert_eq!(swept, Swept { staged: 0, ..all });
    assert_eq!(shelf.stored().await, shelf.named(&["a", "b"]).await);
    assert!(stranger.exists());
    let swept = sweep(Duration::ZERO, Effect::Deletes, 0).await.unwrap();
    let left = Swept { strangers: 1, objects: 4, ..Swept::default() };
    assert_eq!(swept, left);
}

fn terms(grace: Duration, effect: Effect, share_max: u8) -> SweepTerms {
    SweepTerms { effect, grace, share_max }
}

/// Sweeps a store of which nearly all objects have no row, then another installation's, then an unmarked one: nothing
/// is deleted.
async fn refuses_to_sweep(shelf: &Shelf) {
    let (library, store) = (&shelf.library, shelf.library.store());
    let stored = shelf.stored().await;
    let sweep = async |share_max| {
        let terms = terms(Duration::ZERO, Effect::Deletes, share_max);
        library.sweep_all(terms).await
    };
    let refused = sweep(50).await;
    assert!(matches!(refused, Err(SweepError::Implausible { orphans: 1_100, .. })), "{refused:?}");
    let own = store.owner().await.unwrap().unwrap();
    store.take_over("another".to_owned()).await.unwrap();
    let refused = sweep(100).await;
    assert!(matches!(refused, Err(SweepError::Another)), "{refused:?}");
    std::fs::remove_file(shelf.directory.path().join("owner")).unwrap();
    let refused = sweep(100).await;
    assert!(matches!(refused, Err(SweepError::Unmarked)), "{refused:?}");
    assert_eq!(shelf.stored().await, stored);
    store.take_over(own).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_marked_with_its_first_file_and_no_other_installation_stores_there() {
    let shelf = Shelf::new().await;
    let store = shelf.library.store();
    let upload = shelf.upload(Existing::Stays, &[("a", b"some")]).await;
    shelf.library.publish(upload).await.unwrap();
    assert_eq!(shelf.library.ownership().await.unwrap(), Ownership::Own);

    store.take_over("another".to_owned()).await.unwrap();
    let process = Library::new(store.clone(), shelf.library.table().clone());
    let upload = shelf.upload(Existing::Stays, &[("b", b"some")]).await;
    let refused = process.publish(upload).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StorageUnavailable);
    assert!(shelf.named(&["b"]).await.is_empty());
    process.take_over_store().await.unwrap();
    let upload = shelf.upload(Existing::Stays, &[("b", b"some")]).await;
    process.publish(upload).await.unwrap();
}
