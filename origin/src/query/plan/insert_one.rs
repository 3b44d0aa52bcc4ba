//! The plan of an insert of one record. Inserts of equal shape, from several requests, can share one INSERT statement;
//! `database::coalesce` decides whether they do.

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

/// The table and columns of an insert of one record, with the SQL conversion of each value. Inserts of equal shape can
/// share a statement.
#[derive(Debug)]
pub struct RowShape {
    /// The table's description. Shapes compare it by address, so that a reloaded description makes another shape.
    table: Arc<Table>,
    cells: Box<[(usize, Form)]>,
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
    /// Moves the values of `row` into an insert that can share a statement. `returning` has the indexes of the columns
    /// that an unshared statement returns; empty if MariaDB reports the key as the last insert id. Returns `None`, with
    /// `row` unchanged, if the table is not InnoDB or has triggers, a shared statement would return the key in another
    /// form, `columns` is empty or so long that [`RowShape::max_rows`] is 1 or 0, a column has no value, or the row is
    /// larger than [`COALESCED_ROW_MAX_BYTES`].
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

/// Returns whether the response has the key in the same form whether or not the statement is shared. A shared statement
/// returns the key's columns. An unshared one returns the columns `returning`; if `returning` is empty, it reports the
/// last insert id, an integer. `false` for a table without a key.
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

    pub fn cells(&self) -> &[(usize, Form)] {
        &self.cells
    }

    /// Returns the indexes of the columns that an unshared statement returns; empty if MariaDB reports the key as the
    /// last insert id.
    pub fn returning(&self) -> &[usize] {
        &self.returning
    }

    pub fn max_rows(&self) -> usize {
        COALESCED_INSERT_MAX_ROWS.min(COALESCED_INSERT_MAX_VALUES / self.cells.len().max(1))
    }
}
