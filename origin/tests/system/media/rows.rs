//! Writing, replacing, finding and deleting rows of files.

use mysql_async::Row;
use mysql_async::prelude::Queryable;
use origin::database::media::{ChangeableFiles, TableError, Uploader, WriteError};
use shared::error::ErrorCode;
use shared::upload::{Existing, Visibility};

use super::{any_project, item, keys, library, path, picture, put, upload};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_found_by_path_and_by_id() {
    let (table, project) = library("media-found").await;
    let files = upload(&project, "a/b", vec![picture("x.png"), item("y.bin")]);
    let written = put(&table, &files).await.unwrap();
    assert!(written.replaced.is_empty());
    for (row, item) in written.rows.iter().zip(&files.items) {
        assert_eq!(row.name, item.name);
        assert_eq!(row.original, item.original);
        assert_eq!(row.thumbnail, item.thumbnail);
        let found = table.lookup(&path(&project, "a/b", item.name.as_str())).await;
        assert_eq!(found.unwrap().as_ref(), Some(row));
        let found = table.get(&project, row.id).await;
        assert_eq!(found.unwrap().as_ref(), Some(row));
    }
    let first = &written.rows[0];
    assert_eq!((first.width, first.height), (Some(640), Some(480)));
    for (folder, name) in [("a", "x.png"), ("a/b", "z"), ("", "x.png"), ("a/b/c", "x.png")] {
        let found = table.lookup(&path(&project, folder, name)).await;
        assert_eq!(found.unwrap(), None, "{folder}/{name}");
    }
    let (_, other) = library("media-other").await;
    assert_eq!(table.get(&other, first.id).await.unwrap(), None);
    assert_eq!(table.delete(&other, first.id, ChangeableFiles::All).await.unwrap(), None);
    // All objects have left the ledger.
    assert!(table.mark_for_deletion(&any_project(), &keys(&files)).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_differ_as_soon_as_their_bytes_do() {
    let (table, project) = library("media-names").await;
    let names = ["a", "a ", "a  ", "A", "á", "a\u{301}", "ａ", "🦭", "🦭 ", "🦈", "ß", "ss", "a\u{a0}", "a%", "a_"];
    let files = upload(&project, "", names.map(item).to_vec());
    let written = put(&table, &files).await.unwrap();
    for (row, name) in written.rows.iter().zip(names) {
        let found = table.lookup(&path(&project, "", name)).await.unwrap();
        assert_eq!(found.as_ref(), Some(row), "{name:?}");
    }
    for folder in ["f", "f ", "F"] {
        let files = upload(&project, folder, vec![item("same")]);
        put(&table, &files).await.unwrap();
    }
    assert_eq!(table.lookup(&path(&project, "f  ", "same")).await.unwrap(), None);
    let longest = "é".repeat(127) + "e";
    let files = upload(&project, &longest, vec![item(&longest)]);
    put(&table, &files).await.unwrap();
    let found = table.lookup(&path(&project, &longest, &longest)).await;
    assert!(found.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_name_refuses_the_whole_upload() {
    let (table, project) = library("media-taken").await;
    let first = upload(&project, "f", vec![item("b")]);
    let before = put(&table, &first).await.unwrap();
    let second = upload(&project, "f", vec![item("a"), picture("b"), item("c")]);
    let refused = put(&table, &second).await.unwrap_err();
    assert!(matches!(&refused, WriteError::Exists { name, .. } if name.as_str() == "b"));
    let problem = shared::error::Problem::from(refused);
    assert_eq!(problem.code(), ErrorCode::MediaExists);
    assert!(problem.message().contains("\"b\""), "{}", problem.message());
    for name in ["a", "c"] {
        let found = table.lookup(&path(&project, "f", name)).await;
        assert_eq!(found.unwrap(), None, "{name}");
    }
    let found = table.lookup(&path(&project, "f", "b")).await.unwrap();
    assert_eq!(found.as_ref(), before.rows.first());
    // The announced objects are still in the ledger.
    let mut marked = table.mark_for_deletion(&any_project(), &keys(&second)).await.unwrap();
    let mut announced = keys(&second);
    marked.sort_unstable();
    announced.sort_unstable();
    assert_eq!(marked, announced);
    let names: Vec<_> = second.items.iter().map(|item| item.name.clone()).collect();
    let taken = table.taken(&project, &second.folder, &names).await.unwrap();
    assert_eq!(taken.as_ref(), Some(&names[1]));
    let taken = table.taken(&project, &second.folder, &names[..1]).await;
    assert_eq!(taken.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_keeps_the_id_and_dooms_the_old_objects() {
    let (table, project) = library("media-replaced").await;
    let first = upload(&project, "", vec![picture("a"), item("b")]);
    let before = put(&table, &first).await.unwrap();
    let mut second = upload(&project, "", vec![item("c"), item("a")]);
    second.existing = Existing::IsReplaced;
    let after = put(&table, &second).await.unwrap();
    let (old, new) = (&before.rows[0], &after.rows[1]);
    assert_eq!((new.id, new.created_at), (old.id, old.created_at));
    assert_eq!(new.original, second.items[1].original);
    assert_eq!((new.thumbnail.as_ref(), new.width), (None, None));
    assert_eq!(table.get(&project, old.id).await.unwrap().as_ref(), Some(new));
    let gone: Vec<_> = old.objects().collect();
    assert_eq!(after.replaced, gone);
    let known = table.known(&gone).await.unwrap();
    assert_eq!(known, gone.iter().copied().collect());
    table.remove_marked(None, &gone).await.unwrap();
    assert!(table.known(&gone).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_replaced_and_deleted_only_in_the_scope_of_the_caller() {
    let (table, project) = library("media-scope").await;
    let [ann, bob] = ["ann", "bob"].map(|subject| Uploader::of_subject(&project, subject));
    let mut files = upload(&project, "f", vec![item("a")]);
    files.uploader = Some(ann);
    let first = put(&table, &files).await.unwrap().rows.remove(0);
    assert_eq!(first.uploader, Some(ann));
    assert_eq!(table.get(&project, first.id).await.unwrap().as_ref(), Some(&first));
    let replace = |uploader: Option<Uploader>, replaceable| {
        let mut files = upload(&project, "f", vec![item("other"), item("a")]);
        (files.existing, files.uploader, files.replaceable) = (Existing::IsReplaced, uploader, replaceable);
        files
    };
    for (uploader, scope) in [(bob, ChangeableFiles::Own(bob)), (ann, ChangeableFiles::None)] {
        let refused = put(&table, &replace(Some(uploader), scope)).await.unwrap_err();
        assert!(matches!(refused, WriteError::Forbidden), "{refused}");
        let refused = table.delete(&project, first.id, scope).await.unwrap_err();
        assert_eq!(shared::error::Problem::from(refused).code(), ErrorCode::RoleForbids);
    }
    // Nothing of the refused uploads was written.
    assert_eq!(table.lookup(&path(&project, "f", "other")).await.unwrap(), None);
    assert_eq!(table.get(&project, first.id).await.unwrap().as_ref(), Some(&first));
    let second = put(&table, &replace(Some(ann), ChangeableFiles::Own(ann))).await.unwrap().rows.remove(1);
    assert_eq!((second.id, second.uploader), (first.id, Some(ann)));
    // A file belongs to whoever uploaded its present bytes.
    let third = put(&table, &replace(None, ChangeableFiles::All)).await.unwrap().rows.remove(1);
    assert_eq!((third.id, third.uploader), (first.id, None));
    assert!(matches!(table.delete(&project, first.id, ChangeableFiles::Own(ann)).await, Err(WriteError::Forbidden)));
    assert_eq!(table.delete(&project, first.id, ChangeableFiles::All).await.unwrap(), Some(third));
    assert_eq!(table.delete(&project, first.id, ChangeableFiles::Own(ann)).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_of_one_name_exactly_one_wins() {
    let (table, project) = library("media-race").await;
    for round in 0..10 {
        let name = format!("round {round}");
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let files = upload(&project, "", vec![item("own name"), picture(&name)]);
                let mut files = files;
                // Each upload has a name of its own and a name that all uploads have.
                files.items[0] = item(&format!("{round} {}", keys(&files)[0]));
                let table = table.clone();
                tokio::spawn(async move { (put(&table, &files).await, files) })
            })
            .collect();
        let mut won = Vec::new();
        for writer in writers {
            let (outcome, files) = writer.await.unwrap();
            match outcome {
                Ok(written) => won.push(written),
                Err(WriteError::Exists { .. }) => {
                    let marked = table.mark_for_deletion(&any_project(), &keys(&files)).await.unwrap();
                    assert_eq!(marked.len(), 3);
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(won.len(), 1);
        let found = table.lookup(&path(&project, "", &name)).await.unwrap();
        assert_eq!(found.as_ref(), Some(&won[0].rows[1]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_replace_all_succeed_and_leave_one_row() {
    let (table, project) = library("media-replacers").await;
    for round in 0..10 {
        let names = [format!("{round} a"), format!("{round} b"), format!("{round} c")];
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let mut items: Vec<_> = names.iter().map(|name| item(name)).collect();
                items.rotate_left(writer % 3);
                let mut files = upload(&project, "", items);
                files.existing = Existing::IsReplaced;
                let table = table.clone();
                tokio::spawn(async move {
                    let written = put(&table, &files).await.unwrap();
                    (files, written)
                })
            })
            .collect();
        let (mut all, mut replaced) = (Vec::new(), Vec::new());
        for writer in writers {
            let (files, written) = writer.await.unwrap();
            assert_eq!(written.rows.len(), 3);
            all.extend(keys(&files));
            replaced.extend(written.replaced);
        }
        let mut live = Vec::new();
        for name in &names {
            let row = table.lookup(&path(&project, "", name)).await.unwrap();
            live.push(row.unwrap().original.key);
        }
        assert_eq!(replaced.len(), 21);
        // Each object is either named by a file or marked for deletion.
        let mut marked = table.mark_for_deletion(&any_project(), &all).await.unwrap();
        replaced.sort_unstable();
        marked.sort_unstable();
        assert_eq!(marked, replaced);
        assert!(live.iter().all(|key| all.contains(key) && !marked.contains(key)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_takes_the_row_and_dooms_its_objects_once() {
    let (table, project) = library("media-deleted").await;
    let files = upload(&project, "", vec![picture("a")]);
    let row = put(&table, &files).await.unwrap().rows.remove(0);
    let deleters: Vec<_> = (0..6)
        .map(|_| {
            let (table, project, id) = (table.clone(), project.clone(), row.id);
            tokio::spawn(async move { table.delete(&project, id, ChangeableFiles::All).await.unwrap() })
        })
        .collect();
    let mut deleted = Vec::new();
    for deleter in deleters {
        deleted.extend(deleter.await.unwrap());
    }
    assert_eq!(deleted, [row]);
    assert_eq!(table.lookup(&path(&project, "", "a")).await.unwrap(), None);
    assert_eq!(table.mark_for_deletion(&any_project(), &keys(&files)).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_folder_hides_what_is_in_it_and_what_comes_later() {
    let (table, project) = library("media-private").await;
    let names = ["p", "p/q", "p/q/r", "pp", "p0", "p-", "p ", "P", "", "o/p"];
    for folder in names {
        put(&table, &upload(&project, folder, vec![item("old")])).await.unwrap();
    }
    let mut hidden = upload(&project, "p", vec![item("secret")]);
    hidden.items[0].visibility = Visibility::PrivateFolder;
    assert!(put(&table, &hidden).await.unwrap().rows[0].private);
    for folder in names {
        put(&table, &upload(&project, folder, vec![item("new")])).await.unwrap();
        for name in ["old", "new"] {
            let row = table.lookup(&path(&project, folder, name)).await.unwrap();
            let is_below = folder == "p" || folder.starts_with("p/");
            assert_eq!(row.unwrap().private, is_below, "{folder:?} {name}");
        }
    }
    let mut alone = upload(&project, "o", vec![item("a"), item("b")]);
    alone.items[0].visibility = Visibility::Private;
    let rows = put(&table, &alone).await.unwrap().rows;
    assert_eq!((rows[0].private, rows[1].private), (true, false));
    // Replacing a private file keeps it private.
    let mut again = upload(&project, "o", vec![item("a"), item("b")]);
    again.existing = Existing::IsReplaced;
    let rows = put(&table, &again).await.unwrap().rows;
    assert_eq!((rows[0].private, rows[1].private), (true, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_slips_into_a_folder_that_is_being_hidden() {
    let (table, project) = library("media-hiding").await;
    for round in 0..20 {
        let folder = format!("f{round}");
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let below = if writer % 2 == 0 { "" } else { "/below" };
                let name = format!("{writer}");
                let mut files = upload(&project, &format!("{folder}{below}"), vec![item(&name)]);
                if writer == 4 {
                    files.items[0].visibility = Visibility::PrivateFolder;
                }
                let table = table.clone();
                tokio::spawn(async move { put(&table, &files).await.unwrap().rows.remove(0) })
            })
            .collect();
        let mut written = Vec::new();
        for writer in writers {
            written.push(writer.await.unwrap().id);
        }
        for id in written {
            let row = table.get(&project, id).await.unwrap().unwrap();
            assert!(row.private, "{row:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_for_a_project_that_is_not_there_is_refused() {
    let (table, _) = library("media-here").await;
    let nobody = shared::ident::ProjectName::parse("media-nobody").unwrap();
    let refused = put(&table, &upload(&nobody, "", vec![item("a")])).await;
    assert!(matches!(refused, Err(WriteError::NoProject)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_reads_one_row_by_the_unique_index() {
    let (table, project) = library("media-indexed").await;
    let items = (0..60).map(|number| item(&format!("{number}"))).collect();
    put(&table, &upload(&project, "f", items)).await.unwrap();
    let mut root = Server::shared().root().await;
    let plan: Vec<Row> = root
        .exec(
            "EXPLAIN SELECT * FROM selkie.media WHERE project = ? AND folder = ? AND name = ?",
            (project.as_str(), "f", "7"),
        )
        .await
        .unwrap();
    assert_eq!(plan.len(), 1);
    let cell = |name: &str| plan[0].get::<Option<String>, _>(name).unwrap();
    assert_eq!(cell("type").as_deref(), Some("const"));
    assert_eq!(cell("key").as_deref(), Some("by_path"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_a_problem_that_passes() {
    let server = Server::start(None);
    let mut address = server.address();
    address.endpoint = origin::address::Endpoint::Socket("/nonexistent/socket".into());
    let table = origin::database::media::MediaTable::new(
        &origin::database::Hosts::new(&address, origin::database::hosts::HostRole::Serving),
        std::time::Duration::from_secs(2),
    );
    let project = shared::ident::ProjectName::parse("default").unwrap();
    let failed = table.lookup(&path(&project, "", "a")).await.unwrap_err();
    assert!(matches!(failed, TableError::Unavailable(_)));
    assert_eq!(shared::error::Problem::from(failed).code(), ErrorCode::DatabaseUnavailable);
}
