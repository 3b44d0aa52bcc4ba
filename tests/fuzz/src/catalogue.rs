//! Tables that the requests are about. `demo.posts` is that of the golden file, so that its requests mean the
//! same here.

use origin::catalog::{Charset, Column, Kind, Table, Traits};
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::operation::TablePath;
use std::sync::LazyLock;

/// The fields of `demo.posts`.
pub const POSTS: [(&str, Kind); 12] = [
    ("id", Kind::Integer),
    ("title", Kind::Text),
    ("price", Kind::Decimal),
    ("ratio", Kind::Float),
    ("views", Kind::Integer),
    ("meta", Kind::Json),
    ("raw", Kind::Bytes),
    ("place", Kind::Geometry),
    ("at", Kind::DateTime),
    ("old", Kind::Text),
    ("a`b", Kind::Text),
    ("computed", Kind::Integer),
];

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    vec![
        table("posts", &POSTS, &["id"], Traits::default()),
        table(
            "post_tags",
            &[
                ("post_id", Kind::Integer),
                ("tag", Kind::Text),
                ("share", Kind::Double),
                ("bits", Kind::Bit),
            ],
            &["post_id", "tag"],
            Traits::default(),
        ),
        table(
            "a`b?",
            &[("x?", Kind::Date), ("`", Kind::Time), ("?", Kind::Integer)],
            &[],
            Traits {
                view: true,
                stored_code: true,
            },
        ),
    ]
});

/// The table of that name, if there is one.
#[must_use]
pub fn find(path: &TablePath) -> Option<&'static Table> {
    TABLES
        .iter()
        .find(|table| *table.name() == path.table && *table.database() == path.database)
}

fn table(name: &str, fields: &[(&str, Kind)], key: &[&str], traits: Traits) -> Table {
    let columns: Vec<Column> = fields
        .iter()
        .map(|(name, kind)| column(name, *kind, key.contains(name), key.len()))
        .collect();
    let primary = (0..columns.len())
        .filter(|at| columns[*at].primary)
        .collect();
    Table::new(
        DatabaseName::parse("demo").expect("a name"),
        TableName::parse(name).expect("a name"),
        columns,
        primary,
        traits,
    )
}

fn column(name: &str, kind: Kind, primary: bool, key_fields: usize) -> Column {
    let alone = primary && key_fields == 1;
    Column {
        name: FieldName::parse(name).expect("a name"),
        kind,
        charset: if name == "old" {
            Charset::Limited
        } else {
            Charset::Unicode
        },
        type_text: format!("{kind:?}").to_lowercase(),
        nullable: true,
        default: None,
        auto_increment: alone,
        generated: name == "computed",
        primary,
        unique: alone,
        values: Vec::new(),
        references: None,
        comment: String::new(),
        sorted_chars: None,
    }
}
