//! Definitions of indexes and foreign keys.

use super::part::{Part, invalid};
use crate::error::Problem;
use crate::ident::{DatabaseName, FieldName, KeyName, TableName};
use crate::json::Value;
use crate::operation::options::parse_whole;

#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    pub name: Option<KeyName>,
    pub kind: IndexKind,
    /// Not empty.
    pub parts: Vec<IndexPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Plain,
    Unique,
    FullText,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexPart {
    pub column: FieldName,
    /// The number of leading characters; bytes for binary types.
    pub length: Option<u64>,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeyDefinition {
    pub name: Option<KeyName>,
    /// Not empty, as many as `target_columns`.
    pub columns: Vec<FieldName>,
    /// `None` for the table's own database.
    pub target_database: Option<DatabaseName>,
    pub target: TableName,
    pub target_columns: Vec<FieldName>,
    pub on_delete: Option<ReferenceAction>,
    pub on_update: Option<ReferenceAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
}

impl IndexDefinition {
    pub(super) fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        const KINDS: [(&str, IndexKind); 3] =
            [("index", IndexKind::Plain), ("unique", IndexKind::Unique), ("fulltext", IndexKind::FullText)];
        let mut part = Part::of(path, value)?;
        let index = Self {
            name: key_name(&mut part)?,
            kind: part.word("kind", &KINDS)?.unwrap_or(IndexKind::Plain),
            parts: part.each("columns", IndexPart::parse)?,
        };
        if index.parts.is_empty() {
            return Err(part.missing("columns"));
        }
        part.end(&["name", "kind", "columns"])?;
        Ok(index)
    }
}

impl IndexPart {
    fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        if let Value::Text(name) = &value {
            return Ok(Self { column: FieldName::parse(name)?, length: None, descending: false });
        }
        let mut part = Part::of(path, value)?;
        let column = part.text("column")?.ok_or_else(|| part.missing("column"))?;
        let length = match part.take("length") {
            None => None,
            Some(Value::Number(digits)) if parse_whole(&digits).is_some_and(|length| length > 0) => {
                parse_whole(&digits)
            }
            Some(other) => return Err(part.wrong("length", "a whole number from 1", &other)),
        };
        let index_part = Self { column: FieldName::parse(&column)?, length, descending: part.flag("descending")? };
        part.end(&["column", "length", "descending"])?;
        Ok(index_part)
    }
}

impl ForeignKeyDefinition {
    pub(super) fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        let mut part = Part::of(path, value)?;
        let columns = part.names("columns")?.unwrap_or_default();
        let references = part.take("references").ok_or_else(|| part.missing("references"))?;
        let mut target = Part::of(&part.path_of("references"), references)?;
        let table = target.text("table")?.ok_or_else(|| target.missing("table"))?;
        let key = Self {
            name: key_name(&mut part)?,
            columns,
            target_database: target.text("database")?.map(|name| DatabaseName::parse(&name)).transpose()?,
            target: TableName::parse(&table)?,
            target_columns: target.names("columns")?.unwrap_or_default(),
            on_delete: ReferenceAction::parse(&mut part, "onDelete")?,
            on_update: ReferenceAction::parse(&mut part, "onUpdate")?,
        };
        target.end(&["table", "columns", "database"])?;
        part.end(&["name", "columns", "references", "onDelete", "onUpdate"])?;
        if key.columns.is_empty() || key.columns.len() != key.target_columns.len() {
            return Err(invalid(format!(
                "{path}.columns and {path}.references.columns must have equally many columns."
            )));
        }
        Ok(key)
    }
}

impl ReferenceAction {
    fn parse(part: &mut Part, key: &str) -> Result<Option<Self>, Problem> {
        const WORDS: [(&str, ReferenceAction); 4] = [
            ("restrict", ReferenceAction::Restrict),
            ("cascade", ReferenceAction::Cascade),
            ("set null", ReferenceAction::SetNull),
            ("no action", ReferenceAction::NoAction),
        ];
        part.word(key, &WORDS)
    }
}

fn key_name(part: &mut Part) -> Result<Option<KeyName>, Problem> {
    part.text("name")?.map(|name| KeyName::parse(&name)).transpose()
}
