//! Golden file: requests on a known table, and the SQL they become. Read `golden.txt` to learn the
//! language; `SELKIE_BLESS=1 cargo test -p origin golden` writes it anew.

use crate::catalog::{Charset, Column, InsertTraits, Kind, Table, Traits};
use crate::plan::{self, Plan};
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::operation::{RequestHead, parse_head};
use std::fmt::Write as _;

const GOLDEN: &str = include_str!("golden.txt");
const BATCH_MAX_ROWS: usize = 10_000;
const PACKET_MAX_BYTES: usize = 16 * 1024 * 1024;

fn column(name: &str, kind: Kind) -> Column {
    Column {
        name: FieldName::parse(name).unwrap(),
        kind,
        charset: if name == "old" {
            Charset::Limited
        } else {
            Charset::Unicode
        },
        type_text: format!("{kind:?}").to_lowercase(),
        nullable: true,
        default: None,
        auto_increment: name == "id",
        generated: name == "computed",
        primary: name == "id",
        unique: name == "id",
        values: Vec::new(),
        references: None,
        comment: String::new(),
    }
}

fn posts() -> Table {
    let columns = vec![
        column("id", Kind::Integer),
        column("title", Kind::Text),
        column("price", Kind::Decimal),
        column("ratio", Kind::Float),
        column("views", Kind::Integer),
        column("meta", Kind::Json),
        column("raw", Kind::Bytes),
        column("place", Kind::Geometry),
        column("at", Kind::DateTime),
        column("old", Kind::Text),
        column("a`b", Kind::Text),
        column("computed", Kind::Integer),
    ];
    let name = (
        DatabaseName::parse("demo").unwrap(),
        TableName::parse("posts").unwrap(),
    );
    let traits = Traits {
        inserts: InsertTraits {
            unique_key: true,
            ..InsertTraits::default()
        },
        ..Traits::default()
    };
    Table::new(name.0, name.1, columns, vec![0], traits)
}

/// `METHOD path?query body` → the SQL and its parameters, or the problem.
fn rendered(request: &str, table: &Table) -> String {
    let mut parts = request.splitn(3, ' ');
    let (method, target, body) = (
        parts.next().unwrap(),
        parts.next().unwrap(),
        parts.next().unwrap_or_default(),
    );
    let (path, query) = target
        .split_once('?')
        .map_or((target, None), |(path, query)| (path, Some(query)));
    let path = format!("/api/v1/crud/demo/posts{path}");
    let head = RequestHead {
        method,
        path: &path,
        query,
        content_type: None,
        idempotency_key: None,
    };
    let operation = match parse_head(&head).and_then(|pending| pending.finish(body.as_bytes())) {
        Ok(operation) => operation,
        Err(problem) => return format!("  {problem}\n"),
    };
    let statements = match plan::build(&operation, table, BATCH_MAX_ROWS) {
        Ok(Plan::Select(plan)) => vec![super::select(plan, table)],
        Ok(Plan::Insert(plan)) => super::insert(plan, table, PACKET_MAX_BYTES),
        Ok(Plan::Update(plan)) => vec![super::update(plan, table)],
        Ok(Plan::Delete(plan)) => vec![super::delete(plan, table)],
        Err(problem) => return format!("  {problem}\n"),
    };
    statements
        .iter()
        .fold(String::new(), |mut text, statement| {
            writeln!(text, "  {}", statement.text()).unwrap();
            for param in statement.params() {
                writeln!(text, "    {param:?}").unwrap();
            }
            text
        })
}

#[test]
fn requests_become_the_sql_of_the_golden_file() {
    let table = posts();
    let mut written = String::new();
    for line in GOLDEN.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(written, "{line}").unwrap();
        if !line.is_empty() && !line.starts_with('#') {
            written.push_str(&rendered(line, &table));
        }
    }
    if std::env::var_os("SELKIE_BLESS").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/golden.txt"),
            &written,
        )
        .unwrap();
        return;
    }
    assert_eq!(written, GOLDEN);
}
