//! The plan of an insert of one record. `database::coalesce` decides whether inserts of equal shape share a statement.

use super::{Operand, Param, SqlConversion};
use crate::query::catalog::{Kind, Table};
use shared::limits::{COALESCED_INSERT_MAX_ROWS, COALESCED_INSERT_MAX_VALUES, COALESCED_ROW_MAX_BYTES};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
pub struct InsertOne {
    shape: Arc<RowShape>,
    values: Vec<Param>,
}

#[derive(Debug)]
pub struct RowShape {
    /// Shapes compare the address, so that a reloaded description makes another shape.
    table: Arc<Table>,
    cells: Box<[(usize, SqlConversion)]>,
    returning: Vec<usize>,
}

impl PartialEq for RowShape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.cells == other.cells
    }
}

impl Eq for RowShape {}

impl Hash for RowShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.table).hash(state);
        self.cells.hash(state);
    }
}

impl InsertOne {
    /// Moves the values out of `row`. `None`, with `row` unchanged, if the insert can't share a statement: the table is
    /// not InnoDB or has triggers, the key would have another form, a column has no value, or the row or its columns
    /// exceed the limits.
    pub(super) fn new(
        table: &Arc<Table>,
        columns: &[usize],
        row: &mut Vec<Option<Operand>>,
        returning: &[usize],
    ) -> Option<Self> {
        let bytes: usize = row.iter().flatten().map(Operand::max_bytes).sum();
        if !table.takes_rows_together()
            || !has_same_key_alone(returning, table)
            || bytes > COALESCED_ROW_MAX_BYTES
            || columns.is_empty()
        {
            return None;
        }
        let cells = columns.iter().zip(row.iter());
        let cells = cells.map(|(at, cell)| cell.as_ref().map(|operand| (*at, operand.form)));
        let shape =
            RowShape { table: Arc::clone(table), cells: cells.collect::<Option<_>>()?, returning: returning.to_vec() };
        (shape.max_rows() > 1).then(|| Self {
            shape: Arc::new(shape),
            values: std::mem::take(row).into_iter().flatten().map(|cell| cell.param).collect(),
        })
    }

    pub fn shape(&self) -> &Arc<RowShape> {
        &self.shape
    }

    pub fn into_parts(self) -> (Arc<RowShape>, Vec<Param>) {
        (self.shape, self.values)
    }
}

/// A shared statement returns the key's columns; an unshared one returns `returning` or, if that is empty, the last
/// insert id, which is an integer.
fn has_same_key_alone(returning: &[usize], table: &Table) -> bool {
    let is_integer = |at: &usize| table.column(*at).kind == Kind::Integer;
    match returning.is_empty() {
        true => !table.key().is_empty() && table.key().iter().all(is_integer),
        false => true,
    }
}

impl RowShape {
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn cells(&self) -> &[(usize, SqlConversion)] {
        &self.cells
    }

    pub fn returning(&self) -> &[usize] {
        &self.returning
    }

    pub fn max_rows(&self) -> usize {
        COALESCED_INSERT_MAX_ROWS.min(COALESCED_INSERT_MAX_VALUES / self.cells.len().max(1))
    }
}
