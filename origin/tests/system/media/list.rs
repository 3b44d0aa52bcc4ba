//! Lists of files.

use origin::database::media::ReadableFiles;
use shared::ident::ProjectName;
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::operation::media::{MediaField, MediaList};
use shared::operation::read::Direction;

use super::{MediaTable, item, library, picture, put, upload};

async fn names(table: &MediaTable, project: &ProjectName, list: &MediaList) -> Vec<String> {
    let (rows, _) = table.list(project, list, &ReadableFiles::All).await.unwrap();
    rows.iter().map(|row| format!("{}/{}", row.folder, row.name)).collect()
}

async fn filled(name: &str) -> (MediaTable, ProjectName) {
    let (table, project) = library(name).await;
    let mut first = upload(&project, "a", vec![picture("1"), item("2"), item("3")]);
    first.items[1].original.size = 100;
    first.items[2].kind = MediaKind::Audio;
    put(&table, &first).await.unwrap();
    put(&table, &upload(&project, "b", vec![picture("1")])).await.unwrap();
    put(&table, &upload(&project, "", vec![item("9")])).await.unwrap();
    (table, project)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_come_first_and_only_the_own() {
    let (table, project) = filled("media-list").await;
    let (_, other) = filled("media-list-2").await;
    let list = MediaList { count: true, ..MediaList::default() };
    for project in [&project, &other] {
        let (rows, count) = table.list(project, &list, &ReadableFiles::All).await.unwrap();
        assert_eq!((rows.len(), count), (5, Some(5)));
        assert!(rows.iter().all(|row| row.project == *project));
    }
    let all = names(&table, &project, &MediaList::default()).await;
    assert_eq!(all[..2], ["/9", "b/1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_narrowed_ordered_and_cut() {
    let (table, project) = filled("media-lists").await;
    let mut list = MediaList { folder: Some(FolderPath::root()), ..MediaList::default() };
    assert_eq!(names(&table, &project, &list).await, ["/9"]);
    list.folder = None;
    list.kind = Some(MediaKind::Image);
    assert_eq!(names(&table, &project, &list).await, ["b/1", "a/1"]);
    list.kind = None;
    list.name = Some(MediaName::parse("1").unwrap());
    list.folder = Some(FolderPath::parse("a").unwrap());
    assert_eq!(names(&table, &project, &list).await, ["a/1"]);
    for (field, direction, expected) in [
        (MediaField::Size, Direction::Descending, "a/2"),
        (MediaField::Kind, Direction::Ascending, "a/3"),
        (MediaField::Width, Direction::Descending, "b/1"),
        (MediaField::Folder, Direction::Ascending, "/9"),
        (MediaField::Id, Direction::Ascending, "a/1"),
    ] {
        let ordered = MediaList { order: vec![(field, direction)], ..MediaList::default() };
        let found = names(&table, &project, &ordered).await;
        assert_eq!(found[0], expected, "{field:?}");
        assert_eq!(found.len(), 5);
    }
    for field in [MediaField::Name, MediaField::Mime, MediaField::Height, MediaField::Private, MediaField::CreatedAt] {
        let mut ordered = MediaList {
            order: vec![(field, Direction::Ascending), (MediaField::Size, Direction::Descending)],
            count: true,
            ..MediaList::default()
        };
        let whole = names(&table, &project, &ordered).await;
        ordered.span.limit = Some(2);
        ordered.span.offset = 3;
        assert_eq!(names(&table, &project, &ordered).await, whole[3..5], "{field:?}");
        let (_, count) = table.list(&project, &ordered, &ReadableFiles::All).await.unwrap();
        assert_eq!(count, Some(5));
        ordered.span.limit = Some(0);
        assert!(names(&table, &project, &ordered).await.is_empty());
    }
}
