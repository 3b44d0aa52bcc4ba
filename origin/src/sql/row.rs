//! One new record: an insert of which several can become one statement.

use super::Statement;
use super::builder::Builder;
use super::insert;
use crate::catalog::{Kind, Table};
use crate::plan::{Batch, Form, Insert, OnConflict, Operand, Param};
use shared::limits::{TOGETHER_MAX_ROWS, TOGETHER_MAX_VALUES, TOGETHER_ROW_MAX_BYTES};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An insert of one record.
#[derive(Debug)]
pub struct NewRow {
    /// What it has in common with others.
    pub shape: RowShape,
    insert: Insert,
}

/// What is given of a record: inserts of one shape differ only by their values.
#[derive(Clone, Debug)]
pub struct RowShape {
    /// One description of the table: a newer one is another shape.
    table: Arc<Table>,
    cells: Box<[(usize, Form)]>,
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

impl NewRow {
    /// The insert, if it is of that kind; else it is given back. Its answer is the key, which a statement of
    /// several rows returns for each.
    ///
    /// # Errors
    /// The insert.
    pub fn of(insert: Insert, table: &Arc<Table>) -> Result<Self, Insert> {
        let plain = insert.batch == Batch::No
            && insert.on_conflict == OnConflict::Refuse
            && table.takes_rows_together()
            && has_telling_key(&insert, table);
        let shape = match insert.rows.as_slice() {
            [row] if plain && insert::row_bytes(row) <= TOGETHER_ROW_MAX_BYTES => {
                shape(&insert.columns, row, table)
            }
            _ => None,
        };
        match shape.filter(|shape| shape.rows_max() > 1) {
            Some(shape) => Ok(Self { shape, insert }),
            None => Err(insert),
        }
    }

    /// Its values, in the order of its columns.
    #[must_use]
    pub fn values(&self) -> Vec<Param> {
        let cells = self.insert.rows.iter().flatten().flatten();
        cells.map(|operand| operand.param.clone()).collect()
    }

    /// The statement of this insert alone.
    #[must_use]
    pub fn alone(self) -> Statement {
        let Insert {
            columns,
            rows,
            returning,
            on_conflict,
            ..
        } = self.insert;
        insert::Shape {
            columns,
            returning,
            on_conflict,
        }
        .statement(rows, &self.shape.table)
    }
}

/// Whether its key is told as alone: of a key that MariaDB counts, alone tells its number, and returned it is
/// what the column holds.
fn has_telling_key(insert: &Insert, table: &Table) -> bool {
    let is_integer = |at: &usize| table.columns()[*at].kind == Kind::Integer;
    match insert.returning.is_empty() {
        true => !table.key().is_empty() && table.key().iter().all(is_integer),
        false => true,
    }
}

/// The shape of a row that gives all of these columns, and one at least.
fn shape(columns: &[usize], row: &[Option<Operand>], table: &Arc<Table>) -> Option<RowShape> {
    let cells = columns.iter().zip(row);
    let cells = cells.map(|(at, cell)| cell.as_ref().map(|operand| (*at, operand.form)));
    let cells = cells.collect::<Option<Box<[_]>>>()?;
    (!cells.is_empty()).then(|| RowShape {
        table: Arc::clone(table),
        cells,
    })
}

impl RowShape {
    /// How many rows a statement may take.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        TOGETHER_MAX_ROWS.min(TOGETHER_MAX_VALUES / self.cells.len().max(1))
    }

    /// The statement that inserts these; it returns their keys, in order. It waits for no row that another
    /// transaction holds: it would hold up all for what one of them waits for.
    #[must_use]
    pub fn together(&self, rows: Vec<Vec<Param>>) -> Statement {
        let columns: Vec<usize> = self.cells.iter().map(|(at, _)| *at).collect();
        let mut sql = Builder::new();
        sql.syntax("SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO ")
            .table(&self.table)
            .syntax(" (")
            .columns(&self.table, &columns)
            .syntax(") VALUES ")
            .list(rows, |sql, row| {
                sql.syntax("(")
                    .list(self.cells.iter().zip(row), |sql, ((_, form), param)| {
                        sql.operand(Operand { param, form: *form });
                    })
                    .syntax(")");
            })
            .syntax(" RETURNING ")
            .columns(&self.table, self.table.key());
        sql.finish()
    }
}
