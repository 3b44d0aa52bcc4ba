//! Parses the rows of `batchData`: converts objects with different keys to rows with the same fields.

use super::{body, field};
use crate::error::Problem;
use crate::ident::FieldName;
use crate::json::{self, Parts, Value};
use crate::limits::{BATCH_MAX_CELLS, BATCH_MAX_ROWS, JSON_MEMBERS_MAX_COUNT};
use std::collections::HashMap;

/// A row's values in the order of the fields; `None` where the row does not name the field.
type Row = Vec<Option<Value>>;

/// The rows read so far, and the fields that they name.
#[derive(Default)]
pub(super) struct RowTable {
    fields: Vec<FieldName>,
    columns: HashMap<Box<str>, usize>,
    rows: Vec<Row>,
}

impl RowTable {
    /// Parses the records in a JSON list that serde_json has validated.
    pub(super) fn read(list: &str) -> Result<(Vec<FieldName>, Vec<Row>), Problem> {
        let mut table = Self::default();
        let mut parts = Parts::inside(list);
        while let Some(first) = parts.first_byte() {
            let row = parts;
            if table.rows.len() == BATCH_MAX_ROWS {
                return Err(body(format!(
                    "batchData has more than {BATCH_MAX_ROWS} rows; so many are taken at a time."
                )));
            }
            if first != b'{' {
                return Err(table.no_row(row));
            }
            parts.pass_bracket();
            table.push(&mut parts, row)?;
            parts.pass_bracket();
        }
        if table.rows.is_empty() {
            return Err(body("batchData is empty.".to_owned()));
        }
        let width = table.fields.len();
        for row in &mut table.rows {
            row.resize(width, None);
        }
        Ok((table.fields, table.rows))
    }

    /// Adds a row with these members. `row` is the same row, for error messages.
    fn push(&mut self, members: &mut Parts<'_>, row: Parts<'_>) -> Result<(), Problem> {
        let mut cells = vec![None; self.fields.len()];
        let mut nth = 0;
        while let (Some(name), Some(value)) = (members.next(), members.next()) {
            let (Ok(name), Ok(value)) = (json::string(name), Value::of(value)) else {
                return Err(self.no_row(row));
            };
            // Most rows name the same fields in the same order.
            let is_expected = (self.fields.get(nth)).is_some_and(|field| field.as_str() == name);
            let known = if is_expected { Some(nth) } else { self.columns.get(&*name).copied() };
            let column = match known {
                Some(column) => column,
                None => {
                    self.fields.push(field(&name)?);
                    self.columns.insert(name.into(), self.fields.len() - 1);
                    cells.push(None);
                    self.fields.len() - 1
                }
            };
            nth += 1;
            if cells[column].replace(value).is_some() || nth > JSON_MEMBERS_MAX_COUNT {
                return Err(self.no_row(row));
            }
        }
        self.rows.push(cells);
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

    /// Returns the problem of a list item, the one after the rows read so far, that is not a valid row.
    fn no_row(&self, mut row: Parts<'_>) -> Problem {
        let (at, text) = (self.rows.len(), row.next().unwrap_or_default());
        match (json::value(text), json::members(text)) {
            (Ok(Value::Object(_)), Err(fault)) => body(format!("batchData[{at}] can't be read: {fault}.")),
            (Ok(other), _) => body(format!("batchData[{at}] must be an object, not {}.", other.kind())),
            (Err(fault), _) => body(format!("batchData[{at}] can't be read: {fault}.")),
        }
    }
}
