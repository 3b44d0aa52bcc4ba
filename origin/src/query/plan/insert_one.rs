//! An insert of one record that may share its statement with others. Whether it does is decided where statements run.

use super::{Form, Operand, Param};
use crate::query::catalog::{Kind, Table};
use shared::limits::{COALESCED_INSERT_MAX_ROWS, COALESCED_INSERT_MAX_VALUES, COALESCED_ROW_MAX_BYTES};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
pub struct InsertOne {
    shape: Arc<RowShape>,
    values: Vec<Param>,
}

/// What inserts must have in common to share a statement.
#[derive(Debug)]
pub struct RowShape {
    /// Compared by address: a reloaded description of the same table is another shape.
    table: Arc<Table>,
    /// The columns that a row gives, and how SQL converts their values.
    cells: Box<[(usize, Form)]>,
    /// The columns that the statement of one row returns; follows from the table and the columns.
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
    /// Takes the values out of `row` and returns the insert, whose statement would return `returning` if it ran alone.
    /// `None`, with `row` unchanged, if it can't share a statement: the table's engine or its triggers forbid it, its
    /// key would be answered in another form, a column has no value, or the row is too large.
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

    #[must_use]
    pub fn shape(&self) -> &Arc<RowShape> {
        &self.shape
    }

    #[must_use]
    pub fn into_parts(self) -> (Arc<RowShape>, Vec<Param>) {
        (self.shape, self.values)
    }
}

/// Returns whether the statement of one row, which may report the last insert id, answers the key in the same form as
/// that of several rows, which returns the column.
fn has_same_key_alone(returning: &[usize], table: &Table) -> bool {
    let is_integer = |at: &usize| table.columns()[*at].kind == Kind::Integer;
    match returning.is_empty() {
        true => !table.key().is_empty() && table.key().iter().all(is_integer),
        false => true,
    }
}

impl RowShape {
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the columns that a row gives, and how SQL converts their values.
    #[must_use]
    pub fn cells(&self) -> &[(usize, Form)] {
        &self.cells
    }

    /// Returns the columns that the statement of one row returns; empty if MariaDB reports the key as the last insert
    /// id.
    #[must_use]
    pub fn returning(&self) -> &[usize] {
        &self.returning
    }

    /// Returns the maximum number of rows of one statement.
    #[must_use]
    pub fn max_rows(&self) -> usize {
        COALESCED_INSERT_MAX_ROWS.min(COALESCED_INSERT_MAX_VALUES / self.cells.len().max(1))
    }
}
