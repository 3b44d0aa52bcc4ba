//! The media tables: names, races, folders, listing, and the table of objects to delete.

mod ledger;
mod library;
mod list;
mod rows;

use std::time::Duration;

use mysql_async::prelude::Queryable;
use origin::database::media::{ChangeableFiles, MediaTable, NewRow, NewRows, ObjectKey, StoredObject};
use origin::system::projects::NameClaim;
use shared::ident::ProjectName;
use shared::media::{FilePath, FolderPath, MediaKind, MediaName};
use shared::upload::{Existing, Visibility};

use crate::server::shared;

async fn library(project: &str) -> (MediaTable, ProjectName) {
    let (_, installation, system) = shared().await;
    let project = ProjectName::parse(project).unwrap();
    let made = system.projects.create(&project, NameClaim::Refuse).await;
    made.unwrap();
    let table = MediaTable::new(&system.hosts, installation.config.connect_timeout);
    (table, project)
}

fn any_project() -> ProjectName {
    ProjectName::parse("default").unwrap()
}

fn object() -> StoredObject {
    let key = ObjectKey::new();
    StoredObject { key, mime: "image/png".to_owned(), size: 7, sha256: [key.as_uuid().as_bytes()[15]; 32] }
}

fn item(name: &str) -> NewRow {
    NewRow {
        name: MediaName::parse(name).unwrap(),
        kind: MediaKind::File,
        visibility: Visibility::Undeclared,
        width: None,
        height: None,
        original: object(),
        thumbnail: None,
    }
}

fn picture(name: &str) -> NewRow {
    NewRow { kind: MediaKind::Image, width: Some(640), height: Some(480), thumbnail: Some(object()), ..item(name) }
}

fn upload(project: &ProjectName, folder: &str, items: Vec<NewRow>) -> NewRows {
    NewRows {
        project: project.clone(),
        folder: FolderPath::parse(folder).unwrap(),
        existing: Existing::Stays,
        replaceable: ChangeableFiles::All,
        uploader: None,
        items,
        upload: None,
    }
}

fn keys(files: &NewRows) -> Vec<ObjectKey> {
    files
        .items
        .iter()
        .flat_map(|item| [Some(&item.original), item.thumbnail.as_ref()])
        .flatten()
        .map(|object| object.key)
        .collect()
}

async fn put(
    table: &MediaTable,
    files: &NewRows,
) -> Result<origin::database::media::Written, origin::database::media::WriteError> {
    let due_at = origin::clock::now() + 3_600;
    table.announce(&files.project, &keys(files), due_at).await.unwrap();
    table.write(files).await
}

fn path(project: &ProjectName, folder: &str, name: &str) -> FilePath {
    FilePath {
        project: project.clone(),
        folder: FolderPath::parse(folder).unwrap(),
        name: MediaName::parse(name).unwrap(),
    }
}

/// Waits until at least `count` transactions wait for locks.
async fn until_waiting(root: &mut mysql_async::Conn, count: u64) {
    let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS";
    for _ in 0..40 {
        if root.query_first::<u64, _>(waiting).await.unwrap() >= Some(count) {
            return;
        }
        // InnoDB refreshes this table only if nobody has read it for 100 ms.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    panic!("nobody waits");
}
