//! The tables to which requests refer: the tables of the golden file, so that its requests mean the same here, and
//! further tables with more names and types.

use origin::query::catalog::relations::{ForeignKey, Relations};
use origin::query::catalog::{CaseSensitivity, Charset, CharsetCoverage, Column, Kind, Table, Traits};
use shared::ident::{DatabaseName, FieldName, TableName};
use std::sync::{Arc, LazyLock};

/// The fields of table `posts` in database `demo`.
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

static TABLES: LazyLock<Vec<Arc<Table>>> = LazyLock::new(|| {
    vec![
        table("posts", &POSTS, &["id"], Traits::default()),
        table(
            "users",
            &[("id", Kind::Integer), ("name", Kind::Text), ("boss_id", Kind::Integer), ("note", Kind::Text)],
            &["id"],
            Traits::default(),
        ),
        table(
            "links",
            &[("post_id", Kind::Integer), ("user_id", Kind::Integer), ("state", Kind::Text)],
            &["post_id", "user_id"],
            Traits::default(),
        ),
        table("log", &[("post_id", Kind::Integer), ("line", Kind::Text)], &[], Traits::default()),
        table(
            "post_tags",
            &[("post_id", Kind::Integer), ("tag", Kind::Text), ("share", Kind::Double), ("bits", Kind::Bit)],
            &["post_id", "tag"],
            Traits::default(),
        ),
        table(
            "a`b?",
            &[("x?", Kind::Date), ("`", Kind::Time), ("?", Kind::Integer)],
            &[],
            Traits { view: true, stored_code: true, ..Traits::default() },
        ),
    ]
});

/// The foreign keys of the golden file's tables.
static RELATIONS: LazyLock<Relations> = LazyLock::new(|| {
    let table = |name: &str| TableName::parse(name).expect("a name");
    let field = |name: &str| FieldName::parse(name).expect("a name");
    let key = |from: &str, column: &str, target: &str| ForeignKey {
        name: format!("{from}_{column}"),
        table: table(from),
        columns: vec![field(column)],
        target: table(target),
        target_columns: vec![field("id")],
    };
    let keys = vec![
        key("users", "boss_id", "users"),
        key("links", "post_id", "posts"),
        key("links", "user_id", "users"),
        key("log", "post_id", "posts"),
        key("post_tags", "post_id", "posts"),
    ];
    let link_keys = [(table("links"), vec![field("post_id"), field("user_id")])].into();
    Relations::new(&keys, &link_keys, usize::MAX).map(|(relations, _)| relations).unwrap_or_default()
});

#[must_use]
pub fn relations() -> &'static Relations {
    &RELATIONS
}

#[must_use]
pub fn all() -> &'static [Arc<Table>] {
    &TABLES
}

/// Returns the table with this name; `None` if there is none.
#[must_use]
pub fn find(database: &DatabaseName, name: &TableName) -> Option<&'static Arc<Table>> {
    TABLES.iter().find(|table| table.name() == name && table.database() == database)
}

fn table(name: &str, fields: &[(&str, Kind)], key: &[&str], traits: Traits) -> Arc<Table> {
    let columns: Vec<Column> =
        fields.iter().map(|(name, kind)| column(name, *kind, key.contains(name), key.len())).collect();
    let primary = (0..columns.len()).filter(|at| columns[*at].primary).collect();
    Arc::new(Table::new(
        DatabaseName::parse("demo").expect("a name"),
        TableName::parse(name).expect("a name"),
        columns,
        primary,
        Vec::new(),
        traits,
    ))
}

fn column(name: &str, kind: Kind, primary: bool, key_fields: usize) -> Column {
    let alone = primary && key_fields == 1;
    Column {
        name: FieldName::parse(name).expect("a name"),
        kind,
        charset: match name {
            "old" => {
                let latin1: String = (0..=0xFF_u8).map(char::from).collect();
                let coverage = CharsetCoverage::compared("latin1", &latin1, &latin1);
                Charset::Limited(Arc::new(coverage))
            }
            _ => Charset::Unicode,
        },
        case_sensitivity: CaseSensitivity::Insensitive,
        type_text: match (name, kind) {
            ("note" | "line", _) => "text".into(),
            (_, Kind::Text) => "varchar(200)".into(),
            (_, kind) => format!("{kind:?}").to_lowercase().into(),
        },
        nullable: !primary,
        default: None,
        auto_increment: alone,
        invisible: false,
        generated: name == "computed",
        on_update: false,
        primary,
        unique: if alone { vec!["PRIMARY".to_owned()] } else { Vec::new() },
        checks: Vec::new(),
        full_text: Vec::new(),
        indexed: false,
        values: match name {
            "state" => Arc::new(["draft", "live"].iter().collect()),
            _ => Arc::default(),
        },
        references: None,
        comment: String::new(),
        sorted_chars: None,
    }
}
