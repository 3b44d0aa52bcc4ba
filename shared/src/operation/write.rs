//! Parses inserts, updates and deletes.

mod csv;
mod delete;
mod idempotent_request;
mod import;
mod insert_head;
mod matching;
mod options;
mod row_table;
mod update;

pub use csv::line_breaks;
pub(super) use delete::DeleteHead;
pub use delete::{Delete, WriteTarget};
pub use idempotent_request::{Hash, IdempotentRequest};
pub use import::Import;
pub(super) use insert_head::InsertHead;
pub use insert_head::OnConflict;
pub use options::{Preference, WriteOptions};
pub use update::Update;
pub(super) use update::UpdateHead;

use super::TablePath;
use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::ident::{FieldName, shown};
use crate::json::{self, Borrowed, Value};
use row_table::RowTable;
use std::borrow::Cow;

/// The rows of an insert. Each row has a cell for each field; `None` stands for the column's default.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Insert {
    pub table: TablePath,
    pub fields: Vec<FieldName>,
    pub rows: InsertedRows,
    pub import: Option<Import>,
    pub on_conflict: OnConflict,
    pub options: WriteOptions,
    pub idempotent: Option<IdempotentRequest>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertedRows {
    /// The response is an id, unless an option asks for another response.
    One(Vec<Option<Value>>),
    /// The response is a list of ids, unless an option asks for another response.
    Batch(Vec<Vec<Option<Value>>>),
}

impl InsertedRows {
    pub fn as_slice(&self) -> &[Vec<Option<Value>>] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Batch(rows) => rows,
        }
    }
}

const BATCH_KEY: &str = "batchData";

impl Insert {
    pub(super) fn from_body(table: TablePath, head: InsertHead, body: &[u8]) -> Result<Self, Problem> {
        let InsertHead { on_conflict, options, key, format } = head;
        let imported = |(fields, rows, import)| (fields, InsertedRows::Batch(rows), Some(import));
        let (fields, rows, import) = match format {
            Format::Envelope => Self::rows(body).map(|(fields, rows)| (fields, rows, None))?,
            Format::NdJson => RowTable::lines(body).map(imported)?,
            Format::Csv => RowTable::csv(body).map(imported)?,
        };
        let returning = options.returning.as_ref();
        Ok(Self {
            idempotent: key.map(|key| IdempotentRequest::new(&key, &table, (on_conflict, returning), format, body)),
            table,
            fields,
            rows,
            import,
            on_conflict,
            options,
        })
    }

    fn rows(body: &[u8]) -> Result<(Vec<FieldName>, InsertedRows), Problem> {
        let mut members = json::body_members::<Borrowed<'_>>(body)?;
        match members.iter().position(|(name, _)| name == BATCH_KEY) {
            None => {
                let members = members.into_iter();
                let members = members.map(|(name, value)| (name, Value::from(value)));
                let (fields, row) = fields_and_values(members)?;
                Ok((fields, InsertedRows::One(row.into_iter().map(Some).collect())))
            }
            Some(at) if members.len() == 1 => Self::batch(members.remove(at).1),
            Some(_) => Err(Problem::new(ErrorCode::InvalidBody, "batchData stands beside other keys.")
                .with_hint("Send either one record, or {\"batchData\": [record, …]} alone.")),
        }
    }

    fn batch(batch: Borrowed<'_>) -> Result<(Vec<FieldName>, InsertedRows), Problem> {
        match batch {
            Borrowed::List(text) => RowTable::read(text).map(|(fields, rows)| (fields, InsertedRows::Batch(rows))),
            _ => Err(body(format!("batchData must be a list of records, not {}.", Value::from(batch).kind()))),
        }
    }
}

/// Splits a record into its field names, which are checked, and its values.
fn fields_and_values<'a>(
    members: impl IntoIterator<Item = (Cow<'a, str>, Value)>,
) -> Result<(Vec<FieldName>, Vec<Value>), Problem> {
    let members = members.into_iter();
    let mut fields = Vec::with_capacity(members.size_hint().0);
    let mut values = Vec::with_capacity(members.size_hint().0);
    for (name, value) in members {
        fields.push(field(&name)?);
        values.push(value);
    }
    Ok((fields, values))
}

fn field(name: &str) -> Result<FieldName, Problem> {
    FieldName::parse(name).map_err(|problem| {
        Problem::new(ErrorCode::UnknownField, format!("There is no field {}. {}", shown(name), problem.message()))
    })
}

fn body(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}
