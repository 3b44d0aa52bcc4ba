//! Plans whose statement may be shared by requests: a read of one record by a unique integer key, and an insert of one
//! record. `database::coalesce` decides which requests share a statement.

use super::access::TableAccess;
use super::scope::Scope;
use super::{Operand, Param, Predicate, SqlConversion};
use crate::query::catalog::{Kind, Layout, Table};
use shared::format::Format;
use shared::limits::{COALESCED_INSERT_MAX_ROWS, COALESCED_INSERT_MAX_VALUES, COALESCED_ROW_MAX_BYTES};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
pub struct SelectByKey {
    shape: Arc<KeyShape>,
    key: i64,
    layout: Arc<Layout>,
    format: Format,
}

#[derive(Debug)]
pub struct KeyShape {
    access: TableAccess,
    key_column: usize,
    columns: Option<Box<[usize]>>,
    /// The role's condition on rows, with the caller's claims. Compared by address: each caller has a condition of its
    /// own, so reads of different callers are never coalesced.
    rule: Option<Arc<Predicate>>,
}

impl KeyShape {
    fn rule_address(&self) -> Option<*const Predicate> {
        self.rule.as_ref().map(Arc::as_ptr)
    }
}

impl PartialEq for KeyShape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.access.table(), other.access.table())
            && self.columns == other.columns
            && self.rule_address() == other.rule_address()
    }
}

impl Eq for KeyShape {}

impl Hash for KeyShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(self.access.table()).hash(state);
        self.columns.hash(state);
        self.rule_address().hash(state);
    }
}

impl SelectByKey {
    pub(super) fn new(
        access: &TableAccess,
        (key_column, key): (usize, i64),
        columns: Option<Box<[usize]>>,
        rule: Option<Arc<Predicate>>,
        layout: Arc<Layout>,
        format: Format,
    ) -> Self {
        let shape = KeyShape { access: access.clone(), key_column, columns, rule };
        Self { shape: Arc::new(shape), key, layout, format }
    }

    pub fn shape(&self) -> &Arc<KeyShape> {
        &self.shape
    }

    /// The key, which is never negative, so that signed and unsigned columns have the same values.
    pub fn key(&self) -> i64 {
        self.key
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub fn format(&self) -> Format {
        self.format
    }
}

impl KeyShape {
    pub fn table(&self) -> &Table {
        self.access.table()
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope::of(&self.access)
    }

    pub fn key_column(&self) -> usize {
        self.key_column
    }

    pub fn columns(&self) -> Option<&[usize]> {
        self.columns.as_deref()
    }

    pub fn rule(&self) -> Option<&Predicate> {
        self.rule.as_deref()
    }

    pub fn key_cell(&self) -> usize {
        match &self.columns {
            None => self.key_column,
            Some(columns) => {
                let found = columns.iter().position(|column| *column == self.key_column);
                found.unwrap_or(columns.len())
            }
        }
    }
}

#[derive(Debug)]
pub struct InsertOne {
    shape: Arc<RowShape>,
    values: Vec<Param>,
}

/// Inserts of one record whose shapes are equal can share a statement.
#[derive(Debug)]
pub struct RowShape {
    /// Compared by address, so that no statement mixes rows planned before and after the description was reloaded.
    table: Arc<Table>,
    cells: Box<[(usize, SqlConversion)]>,
    returning: Vec<usize>,
}

impl PartialEq for RowShape {
    // Does not compare `returning`, which follows from the table and the columns.
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
    /// Takes the values out of `row`. `None`, with `row` unchanged, if the insert can't share a statement: the table is
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
        (shape.insert_max_rows() > 1).then(|| Self {
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

/// Whether a shared statement, which returns the key's columns, reports the same key as an unshared one, which returns
/// `returning` or, if that is empty, the last insert id, an integer.
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

    pub fn insert_max_rows(&self) -> usize {
        COALESCED_INSERT_MAX_ROWS.min(COALESCED_INSERT_MAX_VALUES / self.cells.len().max(1))
    }
}
