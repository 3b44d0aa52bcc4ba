//! Parses the body of `POST /api/v1/schema`, at the origin: one change of one table. Types and expressions can't end the part of the
//! statement that they stand in; whether MariaDB accepts them is not checked here.

mod column;
mod expression;
mod keys;
mod part;
mod sql_type;
#[cfg(test)]
mod tests;

pub use column::{ColumnDefinition, ColumnPlace, ColumnSource, DefaultValue};
pub use expression::Expression;
pub use keys::{ForeignKeyDefinition, IndexDefinition, IndexKind, IndexPart, ReferenceAction};
pub use sql_type::{SqlType, TypeArgument, TypeWord};

use super::TablePath;
use super::options::{self, Options};
use crate::error::Problem;
use crate::ident::{DatabaseName, FieldName, KeyName, TableName};
use crate::json::{self, Value};
use part::{Part, invalid};

#[derive(Clone, Debug, PartialEq)]
pub struct SchemaCall {
    pub table: TablePath,
    pub change: TableChange,
}

/// Whether a change is made, or only described (option `dryRun`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaRun {
    Change,
    DryRun,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    Create(NewTable),
    Alter(Box<Alteration>),
    Truncate,
    Drop,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewTable {
    /// Not empty.
    pub columns: Vec<ColumnDefinition>,
    pub primary_key: Vec<FieldName>,
    pub indexes: Vec<IndexDefinition>,
    pub foreign_keys: Vec<ForeignKeyDefinition>,
    pub comment: Option<Box<str>>,
}

/// At least one change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alteration {
    pub added_columns: Vec<(ColumnDefinition, Option<ColumnPlace>)>,
    pub changed_columns: Vec<ColumnChange>,
    pub dropped_columns: Vec<FieldName>,
    pub added_indexes: Vec<IndexDefinition>,
    pub dropped_indexes: Vec<KeyName>,
    pub added_foreign_keys: Vec<ForeignKeyDefinition>,
    pub dropped_foreign_keys: Vec<KeyName>,
    pub primary_key: PrimaryKeyChange,
    pub comment: Option<Box<str>>,
    pub rename: Option<TableName>,
    /// The most costly algorithm that the caller accepts.
    pub algorithm: Option<Algorithm>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnChange {
    pub column: FieldName,
    pub definition: ColumnDefinition,
    pub place: Option<ColumnPlace>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum PrimaryKeyChange {
    #[default]
    Kept,
    Dropped,
    /// Not empty.
    Set(Vec<FieldName>),
}

/// How MariaDB changes a table, by rising cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    Instant,
    NoCopy,
    InPlace,
    Copy,
}

impl Algorithm {
    pub const ALL: [Self; 4] = [Self::Instant, Self::NoCopy, Self::InPlace, Self::Copy];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::NoCopy => "nocopy",
            Self::InPlace => "inplace",
            Self::Copy => "copy",
        }
    }
}

impl SchemaRun {
    pub(super) fn from_pairs(pairs: &Options) -> Result<Self, Problem> {
        let given = options::flags(pairs, &["dryRun"])?;
        Ok(if given.is_empty() { Self::Change } else { Self::DryRun })
    }
}

impl SchemaCall {
    pub fn from_body(body: &[u8]) -> Result<Self, Problem> {
        const CHANGES: &str = "one of create, alter, truncate and drop";
        let members = json::body_members(body)?.into_iter().map(|(name, value)| (name.into_owned(), value));
        let mut part = Part::of_body(members.collect());
        let database = part.text("database")?.ok_or_else(|| part.missing("database"))?;
        let table = part.text("table")?.ok_or_else(|| part.missing("table"))?;
        let table = TablePath { database: DatabaseName::parse(&database)?, table: TableName::parse(&table)? };
        let mut changes = Vec::new();
        if let Some(value) = part.take("create") {
            changes.push(TableChange::Create(NewTable::parse("create", value)?));
        }
        if let Some(value) = part.take("alter") {
            changes.push(TableChange::Alter(Box::new(Alteration::parse("alter", value)?)));
        }
        for (key, change) in [("truncate", TableChange::Truncate), ("drop", TableChange::Drop)] {
            match part.take(key) {
                None | Some(Value::Bool(false)) => {}
                Some(Value::Bool(true)) => changes.push(change),
                Some(other) => return Err(part.wrong(key, "true", &other)),
            }
        }
        part.end(&["database", "table", "create", "alter", "truncate", "drop"])?;
        match changes.pop() {
            Some(change) if changes.is_empty() => Ok(Self { table, change }),
            Some(_) => Err(invalid(format!("The body has several changes: give {CHANGES}."))),
            None => Err(invalid(format!("The body has no change: give {CHANGES}."))),
        }
    }
}

impl NewTable {
    fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        let mut part = Part::of(path, value)?;
        let columns = part.each("columns", |path, value| {
            let mut part = Part::of(path, value)?;
            let column = ColumnDefinition::parse(&mut part)?;
            part.end(&column::KEYS)?;
            Ok(column)
        })?;
        if columns.is_empty() {
            return Err(invalid(format!("{path}.columns must have a column.")));
        }
        let new = Self {
            columns,
            primary_key: part.names("primaryKey")?.unwrap_or_default(),
            indexes: part.each("indexes", IndexDefinition::parse)?,
            foreign_keys: part.each("foreignKeys", ForeignKeyDefinition::parse)?,
            comment: part.text("comment")?,
        };
        part.end(&["columns", "primaryKey", "indexes", "foreignKeys", "comment"])?;
        Ok(new)
    }
}

impl Alteration {
    fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        const KEYS: [&str; 11] = [
            "addColumns",
            "changeColumns",
            "dropColumns",
            "addIndexes",
            "dropIndexes",
            "addForeignKeys",
            "dropForeignKeys",
            "primaryKey",
            "comment",
            "rename",
            "algorithm",
        ];
        let mut part = Part::of(path, value)?;
        let change = Self {
            added_columns: part.each("addColumns", added_column)?,
            changed_columns: part.each("changeColumns", ColumnChange::parse)?,
            dropped_columns: part.names("dropColumns")?.unwrap_or_default(),
            added_indexes: part.each("addIndexes", IndexDefinition::parse)?,
            dropped_indexes: part.key_names("dropIndexes")?,
            added_foreign_keys: part.each("addForeignKeys", ForeignKeyDefinition::parse)?,
            dropped_foreign_keys: part.key_names("dropForeignKeys")?,
            primary_key: match part.take_null("primaryKey") {
                true => PrimaryKeyChange::Dropped,
                false => part.names("primaryKey")?.map_or(PrimaryKeyChange::Kept, PrimaryKeyChange::Set),
            },
            comment: part.text("comment")?,
            rename: part.text("rename")?.map(|name| TableName::parse(&name)).transpose()?,
            algorithm: part.word("algorithm", &Algorithm::ALL.map(|one| (one.as_str(), one)))?,
        };
        part.end(&KEYS)?;
        if change.primary_key == PrimaryKeyChange::Set(Vec::new()) {
            return Err(invalid(format!("{path}.primaryKey must have a column; null drops the key.")));
        }
        if change == (Self { algorithm: change.algorithm, ..Self::default() }) {
            return Err(invalid(format!("{path} has no change.")).with_hint(format!("Keys: {}.", KEYS.join(", "))));
        }
        Ok(change)
    }
}

fn added_column(path: &str, value: Value) -> Result<(ColumnDefinition, Option<ColumnPlace>), Problem> {
    let mut part = Part::of(path, value)?;
    let added = (ColumnDefinition::parse(&mut part)?, ColumnPlace::parse(&mut part)?);
    part.end(&[&column::KEYS[..], &column::PLACE_KEYS].concat())?;
    Ok(added)
}

impl ColumnChange {
    fn parse(path: &str, value: Value) -> Result<Self, Problem> {
        let mut part = Part::of(path, value)?;
        let column = part.text("column")?.ok_or_else(|| part.missing("column"))?;
        let change = Self {
            column: FieldName::parse(&column)?,
            definition: ColumnDefinition::parse(&mut part)?,
            place: ColumnPlace::parse(&mut part)?,
        };
        part.end(&[&["column"], &column::KEYS[..], &column::PLACE_KEYS].concat())?;
        Ok(change)
    }
}
