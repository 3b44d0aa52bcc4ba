//! Lists a project's media files by an SQL query built from typed options.

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};
use shared::ident::ProjectName;
use shared::limits::MEDIA_LIST_MAX_ITEMS;
use shared::operation::media::{MediaField, MediaList};
use shared::operation::read::Direction;

use super::error::TableError;
use super::row::{COLUMNS, MediaRow, read};
use super::{MediaTable, ProjectConn, ReadableFiles};

impl MediaTable {
    /// Returns the page that `list` asks for of those files of a project that are `readable`, at most one more than
    /// [`MEDIA_LIST_MAX_ITEMS`]. Also returns the number of readable files on all pages that match the filters of
    /// `list`; `None` unless `list.count` is set.
    pub async fn list(
        &self,
        project: &ProjectName,
        list: &MediaList,
        readable: &ReadableFiles,
    ) -> Result<(Vec<MediaRow>, Option<u64>), TableError> {
        let (conditions, values) = conditions(project, list, readable);
        let ProjectConn { conn, _share } = &mut self.conn_of(Some(project)).await?;
        let count = if list.count {
            let statement = format!("SELECT COUNT(*) FROM selkie.media WHERE {conditions}");
            let values = Params::Positional(values.clone());
            let count: Option<u64> = self
                .within(async { Ok::<_, TableError>(typed_rows::first(conn.exec_iter(statement, values)).await?) })
                .await?;
            Some(count.ok_or(TableError::Corrupt("count"))?)
        } else {
            None
        };
        let statement =
            format!("SELECT {COLUMNS} FROM selkie.media WHERE {conditions} ORDER BY {} LIMIT ? OFFSET ?", order(list));
        let limit = list.span.limit.unwrap_or(MEDIA_LIST_MAX_ITEMS);
        let span = [limit.min(MEDIA_LIST_MAX_ITEMS + 1), list.span.offset].map(Value::from);
        let values = Params::Positional(values.into_iter().chain(span).collect());
        let rows: Vec<Row> = self
            .within(async { Ok::<_, TableError>(typed_rows::all(conn.exec_iter(statement, values)).await?) })
            .await?;
        let rows = rows.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok((rows, count))
    }
}

fn conditions(project: &ProjectName, list: &MediaList, readable: &ReadableFiles) -> (String, Vec<Value>) {
    let given = [
        ("project = ?", Some(project.as_str())),
        ("folder = ?", list.folder.as_ref().map(|it| it.as_str())),
        ("name = ?", list.name.as_ref().map(|it| it.as_str())),
        ("kind = ?", list.kind.map(|it| it.as_str())),
    ];
    let given = given.into_iter().filter_map(|(text, value)| Some((text, value?)));
    let (mut texts, mut values): (Vec<_>, Vec<_>) = given.map(|(text, value)| (text.to_owned(), value.into())).unzip();
    if let Some((text, more)) = readable.condition() {
        texts.push(text);
        values.extend(more);
    }
    (texts.join(" AND "), values)
}

/// Returns the ORDER BY list. The list ends with the id, so that no two files are equal in the order. The id has the
/// direction of the last field; without a field, it is descending.
fn order(list: &MediaList) -> String {
    let last = list.order.last().map_or(Direction::Descending, |step| step.1);
    let whole = (MediaField::Id, last);
    let steps: Vec<_> = list.order.iter().chain([&whole]).map(step).collect();
    steps.join(", ")
}

fn step((field, direction): &(MediaField, Direction)) -> String {
    let column = match field {
        MediaField::Id => "id",
        MediaField::Name => "name",
        MediaField::Folder => "folder",
        MediaField::Kind => "kind",
        MediaField::Size => "size",
        MediaField::Mime => "mime",
        MediaField::Width => "width",
        MediaField::Height => "height",
        MediaField::Private => "private",
        MediaField::CreatedAt => "created_at",
    };
    match direction {
        Direction::Ascending => column.to_owned(),
        Direction::Descending => format!("{column} DESC"),
    }
}
