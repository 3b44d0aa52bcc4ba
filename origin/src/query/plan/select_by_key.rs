//! A read of one record by a unique integer key. `database::coalesce` decides whether reads that differ only in the key
//! share a statement.

use super::Predicate;
use super::access::TableAccess;
use super::scope::Scope;
use crate::query::catalog::{Layout, Table};
use shared::format::Format;
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
    /// Shapes compare the address, which is the same only for reads of the same caller.
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

    /// The key is never negative, so it is the same for a signed and an unsigned column.
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
