//! Reads logged rows through a list's SELECT (`query::sql::images`): which rows the caller sees, and how.

use super::{SessionEffect, bind, decoders, value};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::json::Decoder;
use crate::database::pool::Lease;
use crate::query::catalog::Layout;
use crate::query::sql::Statement;
use mysql_async::{Row, Value};
use shared::envelope::write_object;
use std::sync::Arc;
use std::time::Duration;

/// The rows that the caller sees, by their number in the document.
#[derive(Debug)]
pub struct SeenRows {
    rows: Vec<Option<Row>>,
    decoders: Vec<Decoder>,
    /// The number of columns in which the key ends.
    key_end: usize,
    layout: Arc<Layout>,
}

/// Runs the statement on a document of `count` rows.
pub async fn images(
    lease: &mut Lease,
    statement: Statement,
    layout: &Arc<Layout>,
    count: usize,
    limit: Duration,
) -> Result<SeenRows, DbError> {
    let layout = Arc::clone(layout);
    let work = async |connection: &mut Connection| {
        let (text, params) = statement.into_parts();
        let mut result = connection.run(&text, bind(params)).await?;
        let columns = result.columns().unwrap_or_default();
        let decoders = decoders(Some(&layout.kinds), &columns);
        let mut rows: Vec<Option<Row>> = (0..count).map(|_| None).collect();
        while let Some(row) = result.next().await? {
            let number = match value(&row, columns.len().saturating_sub(1)) {
                Value::Int(number) => usize::try_from(*number).ok(),
                Value::UInt(number) => usize::try_from(*number).ok(),
                _ => None,
            };
            if let Some(slot) = number.and_then(|number| rows.get_mut(number.checked_sub(1)?)) {
                *slot = Some(row);
            }
        }
        result.drop_result().await?;
        // The number of the row comes last.
        Ok(SeenRows { rows, key_end: decoders.len().saturating_sub(1), decoders, layout })
    };
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

impl SeenRows {
    pub(super) fn of_list(rows: Vec<Option<Row>>, decoders: Vec<Decoder>, layout: &Arc<Layout>) -> Self {
        Self { rows, key_end: decoders.len(), decoders, layout: Arc::clone(layout) }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    pub fn is_seen(&self, at: usize) -> bool {
        self.row(at).is_some()
    }

    fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)?.as_ref()
    }

    /// Writes the record as a list shows it.
    pub fn write_record(&self, at: usize, out: &mut Vec<u8>) {
        let Some(row) = self.row(at) else {
            return;
        };
        let is_null = |cell| *value(row, cell) == Value::NULL;
        write_object(out, &self.layout.keys, is_null, |cell, out| self.decoders[cell].write(value(row, cell), out));
    }

    /// Writes the key as in a path's `{id}`.
    pub fn write_key(&self, at: usize, out: &mut Vec<u8>) {
        if let Some(row) = self.row(at) {
            let cells = self.key_cells();
            out.extend_from_slice(&super::key_json(&self.decoders[cells.clone()], row, cells.start));
        }
    }

    pub fn have_same_key(&self, one: usize, other: usize) -> bool {
        self.are_equal(one, other, self.key_cells())
    }

    /// The indexes of the record's fields that differ.
    pub fn changed_fields(&self, before: usize, after: usize) -> Vec<usize> {
        let fields = 0..self.layout.keys.len();
        fields.filter(|at| !self.are_equal(before, after, *at..at + 1)).collect()
    }

    /// Returns the name of a field, as a JSON string.
    pub fn name(&self, field: usize) -> &[u8] {
        self.layout.keys.name(field)
    }

    fn are_equal(&self, one: usize, other: usize, mut cells: std::ops::Range<usize>) -> bool {
        match (self.row(one), self.row(other)) {
            (Some(one), Some(other)) => cells.all(|at| value(one, at) == value(other, at)),
            _ => false,
        }
    }

    fn key_cells(&self) -> std::ops::Range<usize> {
        self.layout.kinds.len()..self.key_end
    }
}
