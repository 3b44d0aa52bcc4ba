//! The ledger of objects, and resumable uploads.

use mysql_async::prelude::Queryable;
use origin::clock::now;
use origin::database::media::{MediaTable, ObjectKey, UploadRow, WriteError};
use std::time::Duration;
use uuid::Uuid;

use super::{any_project, item, keys, library, path, picture, put, until_waiting, upload};
use crate::server::{Installation, Server, shared};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_is_told_until_it_is_settled() {
    let server = Server::start(None);
    let installation = Installation::new("");
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    let table = origin::database::media::MediaTable::new(&system.hosts, installation.config.connect_timeout);
    let [late, later, never] = [ObjectKey::new(), ObjectKey::new(), ObjectKey::new()];
    table.announce(&any_project(), &[late], now() - 10).await.unwrap();
    table.announce(&any_project(), &[later], now() - 5).await.unwrap();
    table.announce(&any_project(), &[never], now() + 3_600).await.unwrap();
    table.announce(&any_project(), &[], 1).await.unwrap();
    assert_eq!(table.mark_due(now(), 1).await.unwrap().len(), 1);
    let mut due = table.mark_due(now(), 10).await.unwrap();
    due.sort_unstable();
    assert_eq!(due, [late, later]);
    // Unmarked keys are not removed.
    table.remove_marked(None, &[late, never]).await.unwrap();
    assert_eq!(table.mark_due(now(), 10).await.unwrap(), [later]);
    let many: Vec<_> = (0..1_201).map(|_| ObjectKey::new()).collect();
    table.announce(&any_project(), &many, now() + 3_600).await.unwrap();
    let asked: Vec<_> = many.iter().copied().chain([never, late]).collect();
    let named = table.known(&asked).await.unwrap();
    assert_eq!(named.len(), 1_202);
    assert!(!named.contains(&late));
    assert_eq!(table.mark_for_deletion(&any_project(), &many).await.unwrap().len(), 1_201);
    table.remove_marked(None, &many).await.unwrap();
    assert_eq!(table.mark_due(now(), 10).await.unwrap(), [later]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_a_sweeper_overtook_fails_whole() {
    let (table, project) = library("media-swept").await;
    let files = upload(&project, "", vec![item("a"), picture("b")]);
    table.announce(&any_project(), &keys(&files), now() + 3_600).await.unwrap();
    assert_eq!(table.mark_for_deletion(&any_project(), &keys(&files)[2..]).await.unwrap().len(), 1);
    let refused = table.write(&files).await;
    assert!(matches!(refused, Err(WriteError::Swept)), "{refused:?}");
    for name in ["a", "b"] {
        let found = table.lookup(&path(&project, "", name)).await;
        assert_eq!(found.unwrap(), None);
    }
    // A file can't name an object that was not announced.
    let unannounced = upload(&project, "", vec![item("c")]);
    let refused = table.write(&unannounced).await;
    assert!(matches!(refused, Err(WriteError::Swept)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweeper_waits_for_a_transaction_that_is_naming_what_is_due() {
    let (table, project) = library("media-naming").await;
    let files = upload(&project, "", vec![item("a")]);
    table.announce(&any_project(), &keys(&files), 1).await.unwrap();
    // Blocks the write after it has removed the object from the ledger: its INSERT waits for this uncommitted row.
    let mut root = Server::shared().root().await;
    root.query_drop("BEGIN").await.unwrap();
    let holding = "INSERT INTO selkie.media (project, folder, name, kind, private, object, mime, size, \
         sha256, created_at, updated_at) VALUES (?, '', 'a', 'file', 0, ?, '', 0, '', 0, 0)";
    root.exec_drop(holding, (project.as_str(), Uuid::now_v7())).await.unwrap();
    let writer = tokio::spawn({
        let (table, files) = (table.clone(), files.clone());
        async move { table.write(&files).await }
    });
    until_waiting(&mut root, 1).await;
    let sweeper = tokio::spawn({
        let (table, keys) = (table.clone(), keys(&files));
        async move { table.mark_for_deletion(&any_project(), &keys).await.unwrap() }
    });
    until_waiting(&mut root, 2).await;
    root.query_drop("ROLLBACK").await.unwrap();
    let written = writer.await.unwrap().unwrap();
    assert_eq!(sweeper.await.unwrap(), []);
    let found = table.lookup(&path(&project, "", "a")).await.unwrap();
    assert_eq!(found.as_ref(), written.rows.first());
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_resumed_until_they_expire() {
    let (table, project) = library("media-resumed").await;
    let (_, other) = library("media-resumed-not").await;
    let row = UploadRow {
        id: Uuid::now_v7(),
        project: project.clone(),
        length: 1 << 40,
        received: 0,
        metadata: r#"{"name":"🦭"}"#.to_owned(),
        media_id: None,
        created_at: 1_000,
        expires_at: 2_000,
        uploader: None,
    };
    assert!(table.insert_upload(&row, 1, 1 << 40).await.unwrap());
    let another = UploadRow { id: Uuid::now_v7(), ..row.clone() };
    for (most, most_bytes) in [(1, 1 << 41), (2, (1 << 41) - 1)] {
        let recorded = table.insert_upload(&another, most, most_bytes).await;
        assert!(!recorded.unwrap(), "{most} uploads, {most_bytes} bytes");
    }
    assert_eq!(table.upload(&project, row.id).await.unwrap().as_ref(), Some(&row));
    assert_eq!(table.upload(&other, row.id).await.unwrap(), None);
    assert!(table.expired_uploads(1_999, 9).await.unwrap().is_empty());
    assert!(table.advance_upload(&row, 5, 3_000).await.unwrap());
    assert!(table.advance_upload(&row, 5, 3_000).await.unwrap());
    let found = table.upload(&project, row.id).await.unwrap().unwrap();
    assert_eq!((found.received, found.expires_at), (5, 3_000));
    assert!(table.expired_uploads(2_000, 9).await.unwrap().is_empty());
    assert_eq!(table.expired_uploads(3_000, 9).await.unwrap(), [row.id]);
    assert!(table.delete_upload(None, row.id).await.unwrap());
    assert!(!table.delete_upload(None, row.id).await.unwrap());
    assert!(!table.advance_upload(&row, 6, 4_000).await.unwrap());
    let again = put(&table, &upload(&project, "", vec![item("a")])).await;
    assert_eq!(again.unwrap().rows.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_a_share_of_the_connections_for_its_ledger_and_its_uploads() {
    let (_, project) = library("media-share").await;
    let (_, other) = library("media-share-other").await;
    let (_, _, system) = shared().await;
    // Longer than the test's locks are held.
    let table = MediaTable::new(&system.hosts, Duration::from_secs(60));
    let key = ObjectKey::new();
    let later = now() + 3_600;
    table.announce(&project, &[key], later).await.unwrap();
    let mut root = Server::shared().root().await;
    root.query_drop("BEGIN").await.unwrap();
    root.exec_drop("SELECT 1 FROM selkie.media_due WHERE object = ? FOR UPDATE", (key.as_uuid(),)).await.unwrap();
    // Two statements that wait for the lock take the project's whole share.
    let holders = [(); 2].map(|()| {
        let (table, project) = (table.clone(), project.clone());
        tokio::spawn(async move { table.mark_for_deletion(&project, &[key]).await.unwrap() })
    });
    let mut statements = 0;
    let waiting = loop {
        let own = tokio::spawn({
            let (table, project) = (table.clone(), project.clone());
            async move {
                table.announce(&project, &[ObjectKey::new()], later).await.unwrap();
                table.upload(&project, Uuid::nil()).await.unwrap()
            }
        });
        for _ in 0..10 {
            table.announce(&other, &[ObjectKey::new()], later).await.unwrap();
            assert_eq!(table.upload(&other, Uuid::nil()).await.unwrap(), None);
        }
        if !own.is_finished() {
            break own;
        }
        statements += 1;
        assert!(statements < 500, "the project's statements don't wait for its share");
    };
    root.query_drop("ROLLBACK").await.unwrap();
    for holder in holders {
        assert_eq!(holder.await.unwrap(), [key]);
    }
    assert_eq!(waiting.await.unwrap(), None);
    table.remove_marked(Some(&project), &[key]).await.unwrap();
}
