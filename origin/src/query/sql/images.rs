//! Renders a read of logged rows: the SELECT of a list, which reads a JSON document of rows instead of the table.
//! MariaDB itself thus decides which of the rows the list would show, by the types and collations of the table.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use super::select::cells;
use crate::query::catalog::{Column, Kind, Table};
use crate::query::plan::scope::Scope;
use crate::query::plan::{Param, Select};

/// A column of the table, and where a logged row has its value.
#[derive(Clone, Debug)]
pub struct ImageColumn {
    /// The index of the cell in the row's JSON array, and the number of cells in the array.
    pub at: usize,
    pub of: usize,
    /// The index in the [`Table`].
    pub column: usize,
    /// Whether the cell is in base64.
    pub is_base64: bool,
    /// The names of the character set and the collation; `None` for types without one.
    pub collation: Option<(Box<str>, Box<str>)>,
    /// The expression of a generated column, for rows without its value.
    pub expression: Option<Box<str>>,
}

/// Renders the read of the rows in `document`: a JSON array of rows, each an array of cells. The columns of the result
/// are those of `select`, then the key's, then the number of the row in `document`, from 1.
pub fn images(
    select: Select,
    key: &[usize],
    scope: &Scope<'_>,
    columns: &[ImageColumn],
    document: String,
) -> Statement {
    let table = scope.root();
    let number = number_name(table);
    let mut sql = Builder::new();
    if columns.iter().any(|column| matches!(table.column(column.column).kind, Kind::Date | Kind::DateTime)) {
        // Otherwise JSON_TABLE takes a date such as 2024-02-31, which a table may have, for 0000-00-00.
        sql.syntax("SET STATEMENT sql_mode = CONCAT(@@sql_mode, ',ALLOW_INVALID_DATES') FOR ");
    }
    sql.syntax("SELECT ");
    cells(&mut sql, select.output, scope);
    for at in key {
        sql.syntax(", ").column(table, *at);
    }
    let stages = stages(table, columns);
    sql.syntax(", ").ident(&number).syntax(" FROM (");
    for stage in stages.iter().rev() {
        with_computed(&mut sql, table, columns, (stage, &number));
    }
    sql.syntax("SELECT ").ident(&number);
    if !stages.is_empty() {
        sql.syntax(", ").ident(&lacks(&number));
    }
    for column in columns {
        sql.syntax(", ");
        value(&mut sql, table.column(column.column), column, |sql| {
            sql.numbered("c", column.at);
        });
        sql.syntax(" AS ").column(table, column.column);
    }
    sql.syntax(" FROM JSON_TABLE(").param(Param::Text(document.into())).syntax(", '$[*]' COLUMNS (");
    sql.ident(&number).syntax(" FOR ORDINALITY");
    for column in columns {
        sql.numbered(", c", column.at).syntax(" ");
        json_type(&mut sql, table.column(column.column), column);
        sql.numbered(" PATH '$[", column.at).syntax("]' NULL ON EMPTY ERROR ON ERROR");
    }
    if !stages.is_empty() {
        sql.syntax(", ").ident(&lacks(&number)).numbered(" INT PATH '$[", cells_count(columns)).syntax("]'");
    }
    sql.syntax(")) AS images");
    for stage in &stages {
        compute(&mut sql, table, (stage, &number));
    }
    sql.syntax(") AS ");
    sql.ident(table.name().as_str());
    if let Some(condition) = select.filter {
        filter(&mut sql, scope, condition);
    }
    sql.finish()
}

/// The name of the column that tells whether a row lacks generated columns.
fn lacks(number: &str) -> String {
    format!("{number}_lacks")
}

/// The beginning of the names of columns with computed values.
fn computed(number: &str) -> String {
    format!("{number}_computed")
}

/// Returns the generated columns to compute, by stages: an expression may refer to columns of earlier stages. One stage
/// is one JSON_TABLE, of which MariaDB joins 60 at most, and slowly.
fn stages(table: &Table, columns: &[ImageColumn]) -> Vec<Vec<ImageColumn>> {
    let mut stages: Vec<Vec<ImageColumn>> = Vec::new();
    for column in columns.iter().filter_map(|column| as_computed(table, column)) {
        let expression = column.expression.as_deref().unwrap_or_default().to_lowercase();
        let refers_to = |other: &ImageColumn| {
            let name = table.column(other.column).name.as_str().to_lowercase();
            expression.contains(&name.replace('`', "``"))
        };
        match stages.last_mut() {
            Some(stage) if !stage.iter().any(refers_to) => stage.push(column),
            _ => stages.push(vec![column]),
        }
    }
    stages
}

/// The column as [`compute`] has its value; `None` unless it is a generated one.
fn as_computed(table: &Table, column: &ImageColumn) -> Option<ImageColumn> {
    let has_text = matches!(table.column(column.column).kind, Kind::Uuid | Kind::Inet4 | Kind::Inet6);
    let mut computed = column.clone();
    computed.expression.is_some().then(|| {
        computed.is_base64 &= !has_text;
        computed.collation = computed.collation.take().filter(|_| !has_text);
        computed
    })
}

/// Writes the SELECT of all columns, with the computed values of `stage` in rows that lack them, up to its FROM.
fn with_computed(sql: &mut Builder, table: &Table, columns: &[ImageColumn], (stage, number): (&[ImageColumn], &str)) {
    sql.syntax("SELECT ").ident(number).syntax(", ").ident(&lacks(number));
    for column in columns {
        sql.syntax(", ");
        if let Some(one) = stage.iter().find(|one| one.column == column.column) {
            sql.syntax("IF(").ident(&lacks(number)).syntax(", ");
            value(sql, table.column(one.column), one, |sql| {
                sql.ident(&format!("{}{}", computed(number), one.at));
            });
            sql.syntax(", ").column(table, one.column).syntax(") AS ");
        }
        sql.column(table, column.column);
    }
    sql.syntax(" FROM (");
}

/// Joins each row with the computed values of generated columns. JSON_TABLE converts a value to the column's type as a
/// write of the column does.
fn compute(sql: &mut Builder, table: &Table, (stage, number): (&[ImageColumn], &str)) {
    sql.syntax(") AS images, JSON_TABLE(JSON_ARRAY(").list(stage, |sql, one| {
        sql.syntax("IF(").ident(&lacks(number)).syntax(", ");
        computed_value(sql, table.column(one.column), one);
        sql.syntax(", NULL)");
    });
    sql.syntax("), '$' COLUMNS (").list(stage.iter().enumerate(), |sql, (at, one)| {
        sql.ident(&format!("{}{}", computed(number), one.at)).syntax(" ");
        json_type(sql, table.column(one.column), one);
        sql.numbered(" PATH '$[", at).syntax("]'");
    });
    sql.syntax(")) AS computed");
}

/// Writes the value of the expression as [`json_type`] reads it.
fn computed_value(sql: &mut Builder, column: &Column, one: &ImageColumn) {
    sql.syntax(if one.is_base64 { "TO_BASE64(" } else { "" });
    let is_bytes = one.is_base64 && charset_of(one).is_none();
    match column.kind {
        Kind::Float | Kind::Double => expression(sql, "(", one, ") + 0e0"),
        Kind::Bit => expression(sql, "(", one, ") + 0"),
        Kind::Enum | Kind::Set if !is_bytes => members(sql, column, one),
        // MariaDB pads a BINARY, as which JSON_TABLE does not read the value.
        Kind::Bytes if column.type_text.starts_with("binary(") => {
            expression(sql, "CAST((", one, ") AS ");
            sql.type_name(&column.type_text).syntax(")");
        }
        _ if is_bytes => expression(sql, "", one, ""),
        // JSON_ARRAY would take an expression such as JSON_EXTRACT for JSON, not for a text.
        _ => as_text(sql, one),
    }
    sql.syntax(if one.is_base64 { ")" } else { "" });
}

fn charset_of(image: &ImageColumn) -> Option<&str> {
    image.collation.as_ref().map(|(charset, _)| &**charset).filter(|charset| *charset != "binary")
}

fn expression(sql: &mut Builder, before: &'static str, image: &ImageColumn, after: &'static str) {
    sql.syntax(before).verbatim(image.expression.as_deref().unwrap_or_default());
    sql.syntax(after);
}

fn as_text(sql: &mut Builder, image: &ImageColumn) {
    expression(sql, "CONVERT((", image, ") USING ");
    sql.word(charset_of(image).unwrap_or("utf8mb4")).syntax(")");
}

/// Writes the members of an ENUM or SET, in their spelling, that the expression names, or that it has the numbers of.
fn members(sql: &mut Builder, column: &Column, image: &ImageColumn) {
    let collation = image.collation.as_ref().map_or("utf8mb4_general_ci", |(_, collation)| &**collation);
    let member = |sql: &mut Builder, member: &str| {
        sql.param(Param::Text(member.into()));
    };
    let named = |sql: &mut Builder| {
        as_text(sql, image);
        sql.syntax(" COLLATE ").word(collation);
    };
    expression(sql, "CONVERT(IF((", image, ") IS NULL, NULL, ");
    if column.kind == Kind::Enum {
        expression(sql, "ELT(IF(COERCIBILITY((", image, ")) = COERCIBILITY(1), (");
        expression(sql, "", image, "), FIELD(");
        named(sql);
        sql.syntax(", ").list(column.values.iter(), member).syntax(")) + 1, '', ");
        sql.list(column.values.iter(), member).syntax(")");
    } else {
        expression(sql, "IF(COERCIBILITY((", image, ")) = COERCIBILITY(1), MAKE_SET((");
        expression(sql, "", image, "), ");
        sql.list(column.values.iter(), member).syntax("), CONCAT_WS(','");
        for one in column.values.iter() {
            sql.syntax(", IF(FIND_IN_SET(").param(Param::Text(one.into())).syntax(", ");
            named(sql);
            sql.syntax("), ").param(Param::Text(one.into())).syntax(", NULL)");
        }
        sql.syntax("))");
    }
    sql.syntax(") USING ").word(charset_of(image).unwrap_or("utf8mb4")).syntax(")");
}

/// The number of cells of a logged row, which may have columns that the table's description lacks.
fn cells_count(columns: &[ImageColumn]) -> usize {
    columns.first().map_or(0, |column| column.of)
}

/// A name for the column with the row's number, with which no column's name of the table begins.
fn number_name(table: &Table) -> String {
    let mut name = "row".to_owned();
    let is_taken = |name: &str| {
        table.all_columns().any(|at| table.column(at).name.as_str().to_ascii_lowercase().starts_with(name))
    };
    while is_taken(&name) {
        name.push('_');
    }
    name
}

/// Writes the type as which JSON_TABLE reads a cell. JSON_TABLE has no ENUM, SET, UUID, INET and geometry types, and
/// would read a BIT as text.
fn json_type(sql: &mut Builder, column: &Column, image: &ImageColumn) {
    if image.is_base64 {
        sql.syntax("LONGTEXT CHARACTER SET utf8mb4");
        return;
    }
    match column.kind {
        Kind::Bit => sql.syntax("BIGINT UNSIGNED"),
        Kind::Integer | Kind::Decimal | Kind::Float | Kind::Double | Kind::Date | Kind::DateTime | Kind::Time => {
            sql.type_name(&column.type_text)
        }
        Kind::Text => sql.type_name(&column.type_text),
        Kind::Enum | Kind::Set | Kind::Json | Kind::Uuid | Kind::Inet4 | Kind::Inet6 | Kind::Bytes | Kind::Geometry => {
            sql.syntax("LONGTEXT")
        }
    };
    if let Some((charset, collation)) = &image.collation {
        sql.syntax(" CHARACTER SET ").word(charset).syntax(" COLLATE ").word(collation);
    }
}

fn value(sql: &mut Builder, column: &Column, image: &ImageColumn, cell: impl Fn(&mut Builder)) {
    let cast = match column.kind {
        Kind::Uuid => Some(" AS UUID)"),
        Kind::Inet4 => Some(" AS INET4)"),
        Kind::Inet6 => Some(" AS INET6)"),
        _ => None,
    };
    let charset = image.collation.as_ref().filter(|(charset, _)| **charset != *"binary");
    match (cast, charset) {
        (None, _) if !image.is_base64 => cell(sql),
        (Some(end), _) if !image.is_base64 => {
            sql.syntax("CAST(");
            cell(sql);
            sql.syntax(end);
        }
        (Some(end), _) => {
            sql.syntax("CAST(FROM_BASE64(");
            cell(sql);
            sql.syntax(")").syntax(end);
        }
        (None, Some((charset, collation))) if !matches!(column.kind, Kind::Geometry | Kind::Bytes) => {
            sql.syntax("CONVERT(FROM_BASE64(");
            cell(sql);
            sql.syntax(") USING ").word(charset).syntax(") COLLATE ").word(collation);
        }
        _ => {
            sql.syntax("FROM_BASE64(");
            cell(sql);
            sql.syntax(")");
        }
    }
}
