//! Writes: inserts, updates and deletes.

mod delete;
mod insert_head;
mod key_values;
mod once;

pub(super) use delete::DeleteHead;
pub use delete::{Delete, Target};
pub(super) use insert_head::InsertHead;
pub use insert_head::OnConflict;
pub use once::{Hash, Once};

use super::{RecordId, TablePath};
use crate::error::{ErrorCode, Problem};
use crate::ident::{FieldName, shown};
use crate::json::{self, Borrowed, Value};
use crate::limits::{BATCH_MAX_CELLS, BATCH_MAX_ROWS};
use key_values::{FOR_UPDATE, KeyValues};
use std::borrow::Cow;
use std::collections::HashMap;

/// An insert. All rows have a cell for each field; `None` is the column's default.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub table: TablePath,
    /// All fields that the rows name.
    pub fields: Vec<FieldName>,
    pub rows: Rows,
    /// What happens to rows that violate a unique key.
    pub on_conflict: OnConflict,
    /// Set if the insert is idempotent.
    pub once: Option<Once>,
}

/// The rows of an insert, whose form also decides that of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// One record; the answer is its id.
    One(Vec<Option<Value>>),
    /// `batchData`; the answer is a list of ids.
    Batch(Vec<Vec<Option<Value>>>),
}

impl Rows {
    #[must_use]
    pub fn as_slice(&self) -> &[Vec<Option<Value>>] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Batch(rows) => rows,
        }
    }
}

/// The key that makes a body a batch.
const BATCH_KEY: &str = "batchData";

impl Insert {
    pub(super) fn from_body(table: TablePath, head: InsertHead, body: &[u8]) -> Result<Self, Problem> {
        let InsertHead { on_conflict, key } = head;
        let (fields, rows) = Self::rows(body)?;
        Ok(Self { once: key.map(|key| Once::new(&key, &table, on_conflict, body)), table, fields, rows, on_conflict })
    }

    fn rows(body: &[u8]) -> Result<(Vec<FieldName>, Rows), Problem> {
        let mut members = json::body_members::<Borrowed<'_>>(body)?;
        match members.iter().position(|(name, _)| name == BATCH_KEY) {
            None => {
                let members = members.into_iter();
                let members = members.map(|(name, value)| (name, Value::from(value)));
                let (fields, row) = columns(members)?;
                Ok((fields, Rows::One(row.into_iter().map(Some).collect())))
            }
            Some(at) if members.len() == 1 => Self::batch(members.remove(at).1),
            Some(_) => Err(Problem::new(ErrorCode::InvalidBody, "batchData stands beside other keys.")
                .with_hint("Send either one record, or {\"batchData\": [record, …]} alone.")),
        }
    }

    fn batch(batch: Borrowed<'_>) -> Result<(Vec<FieldName>, Rows), Problem> {
        let Borrowed::List(text) = batch else {
            return Err(body(format!("batchData must be a list of records, not {}.", Value::from(batch).kind())));
        };
        let items = json::items::<Borrowed<'_>>(text, BATCH_MAX_ROWS)
            .map_err(|fault| body(format!("batchData can't be read: {fault}.")))?;
        if items.is_empty() {
            return Err(body("batchData is empty.".to_owned()));
        }
        if items.len() > BATCH_MAX_ROWS {
            return Err(body(format!("batchData has more than {BATCH_MAX_ROWS} rows; so many are taken at a time.")));
        }
        let mut table_of_rows = RowTable::default();
        for (at, item) in items.into_iter().enumerate() {
            table_of_rows.push(at, item)?;
        }
        let (fields, rows) = table_of_rows.finish();
        Ok((fields, Rows::Batch(rows)))
    }
}

/// Rows with different keys, collected under one list of fields.
#[derive(Default)]
struct RowTable {
    fields: Vec<FieldName>,
    columns: HashMap<Box<str>, usize>,
    rows: Vec<Vec<Option<Value>>>,
}

impl RowTable {
    fn push(&mut self, at: usize, item: Borrowed<'_>) -> Result<(), Problem> {
        let Borrowed::Object(text) = item else {
            return Err(body(format!("batchData[{at}] must be an object, not {}.", Value::from(item).kind())));
        };
        let members = json::members(text).map_err(|fault| body(format!("batchData[{at}] can't be read: {fault}.")))?;
        let mut row = vec![None; self.fields.len()];
        for (nth, (name, value)) in members.into_iter().enumerate() {
            // Most rows name the same fields in the same order.
            let is_expected = (self.fields.get(nth)).is_some_and(|field| field.as_str() == name);
            let known = if is_expected { Some(nth) } else { self.columns.get(&*name).copied() };
            let column = match known {
                Some(column) => column,
                None => {
                    self.fields.push(field(&name)?);
                    self.columns.insert(name.into(), self.fields.len() - 1);
                    row.push(None);
                    self.fields.len() - 1
                }
            };
            row[column] = Some(value);
        }
        self.rows.push(row);
        if self.rows.len() * self.fields.len() > BATCH_MAX_CELLS {
            return Err(body(format!(
                "The rows of batchData, times the {} fields that they name, come to more than \
                 {BATCH_MAX_CELLS} cells.",
                self.fields.len()
            ))
            .with_hint("Send the records in several requests."));
        }
        Ok(())
    }

    fn finish(mut self) -> (Vec<FieldName>, Vec<Vec<Option<Value>>>) {
        let width = self.fields.len();
        for row in &mut self.rows {
            row.resize(width, None);
        }
        (self.fields, self.rows)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub table: TablePath,
    pub target: Target,
    /// The fields to change; at least one.
    pub fields: Vec<FieldName>,
    /// The new values, in the order of `fields`.
    pub values: Vec<Value>,
}

impl Update {
    /// Parses the update of one record: the body has its new values.
    pub(super) fn from_body(table: TablePath, id: RecordId, bytes: &[u8]) -> Result<Self, Problem> {
        let (fields, values) = columns(json::body_members(bytes)?)?;
        if fields.is_empty() {
            return Err(body("The body names no field to change.".to_owned()));
        }
        Ok(Self { table, target: Target::Record(id), fields, values })
    }

    /// Parses the update of all records that match conditions, which are in the body with the new values.
    pub(super) fn many_from_body(table: TablePath, bytes: &[u8]) -> Result<Self, Problem> {
        let mut data = None;
        let mut conditions = Vec::new();
        for (name, value) in json::body_members(bytes)? {
            match (&*name, value) {
                ("data", value) => data = Some(value),
                (_, value) => conditions.push((name.into_owned(), value)),
            }
        }
        let key_values = KeyValues::collect(&FOR_UPDATE, conditions, |name| {
            body(format!("An update of many records has no part {}.", shown(name)))
                .with_hint("Use {\"updateKeyValues\": [{key, value}, …], \"data\": {…}}, or name one record by its id in the path.")
        })?;
        let condition = key_values.condition(&FOR_UPDATE)?.ok_or_else(|| {
            body("The request does not say which records to change.".to_owned())
                .with_hint("Name one by its id in the path, or several by {\"updateKeyValues\": [{key, value}, …]}.")
        })?;
        let (fields, values) = data_of(data)?;
        Ok(Self { table, target: Target::Matching(condition), fields, values })
    }
}

/// Parses the new values of an update of many records.
fn data_of(data: Option<Value>) -> Result<(Vec<FieldName>, Vec<Value>), Problem> {
    let Some(data) = data else {
        return Err(body("The body has no data: no field to change.".to_owned()));
    };
    let Value::Object(text) = &data else {
        return Err(body(format!("data must be an object of fields, not {}.", data.kind())));
    };
    let members = json::members(text).map_err(|fault| body(format!("data can't be read: {fault}.")))?;
    let (fields, values) = columns(members)?;
    if fields.is_empty() {
        return Err(body("data names no field to change.".to_owned()));
    }
    Ok((fields, values))
}

fn columns<'a>(
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

/// Parses a field name. One that no column can have is an unknown field.
fn field(name: &str) -> Result<FieldName, Problem> {
    FieldName::parse(name).map_err(|problem| {
        Problem::new(ErrorCode::UnknownField, format!("There is no field {}. {}", shown(name), problem.message()))
    })
}

fn body(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}
