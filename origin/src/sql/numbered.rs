//! One record by a number that no two share: a read of which several can become one statement.

use super::Statement;
use super::builder::Builder;
use crate::catalog::Table;
use crate::plan::scope::Scope;
use crate::plan::{Expression, Form, Operand, Output, Param, Place, Predicate, Select};
use shared::limits::TOGETHER_MAX_RECORDS;
use shared::operation::filter::Comparison;
use shared::operation::read::Rows;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A read of one record by its number.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// What it has in common with others.
    pub shape: Shape,
    /// The number, which any integer column compares as it is.
    pub number: i64,
}

/// What is read of a record: reads of one shape differ only by their numbers.
#[derive(Clone, Debug)]
pub struct Shape {
    /// One description of the table: a newer one is another shape.
    table: Arc<Table>,
    key: usize,
    /// The columns; `None` for all of them.
    cells: Option<Box<[usize]>>,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.cells == other.cells
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.table).hash(state);
        self.cells.hash(state);
    }
}

impl Numbered {
    /// The read, if it is of that kind.
    #[must_use]
    pub fn of(select: &Select, scope: &Scope<'_>) -> Option<Self> {
        let key = scope.root().number()?;
        let plain = scope.is_single()
            && select.group.is_empty()
            && select.order.is_empty()
            && select.rows == Rows::All
            && select.limit.is_none()
            && select.offset == 0
            && select.keyset.is_none();
        let Some(Predicate::Compare(place, Comparison::Equal, operand)) = &select.filter else {
            return None;
        };
        // Negative ones are few, and signed and unsigned columns compare the others alike.
        let number = match operand {
            Operand {
                param: Param::Int(number @ 0..),
                form: Form::Plain,
            } => *number,
            _ => return None,
        };
        if !plain
            || *place
                != (Place {
                    source: 0,
                    column: key,
                })
        {
            return None;
        }
        let column = |cell: &Expression| match cell {
            Expression::Column(place) => Some(place.column),
            _ => None,
        };
        let cells = match &select.output {
            Output::Whole => None,
            Output::Cells(cells) => Some(cells.iter().map(column).collect::<Option<_>>()?),
        };
        Some(Self {
            shape: Shape {
                table: Arc::clone(scope.root()),
                key,
                cells,
            },
            number,
        })
    }

    /// The statement of this read alone.
    #[must_use]
    pub fn alone(&self) -> Statement {
        let mut sql = Builder::new();
        self.shape.select(&mut sql);
        self.shape.from(&mut sql);
        sql.syntax(" = ").param(Param::Int(self.number));
        sql.finish()
    }
}

impl Shape {
    /// The cell of a row of [`Shape::together`] that holds its number.
    #[must_use]
    pub fn number_cell(&self) -> usize {
        match &self.cells {
            None => self.key,
            Some(cells) => {
                let found = cells.iter().position(|cell| *cell == self.key);
                found.unwrap_or(cells.len())
            }
        }
    }

    /// The statement that reads these. The last is repeated up to a power of two, so that few texts do
    /// for any number of them; the number comes out behind the others if it is not among them.
    #[must_use]
    pub fn together(&self, numbers: &[i64]) -> Statement {
        debug_assert!(numbers.len() <= TOGETHER_MAX_RECORDS);
        let mut sql = Builder::new();
        self.select(&mut sql);
        if let Some(cells) = &self.cells
            && self.number_cell() == cells.len()
        {
            sql.syntax(", ").column(&self.table, self.key);
        }
        self.from(&mut sql);
        let places = numbers.len().next_power_of_two();
        let repeated = numbers.last().into_iter().cycle();
        let all = numbers.iter().chain(repeated).take(places);
        sql.syntax(" IN (")
            .list(all, |sql, number| {
                sql.param(Param::Int(*number));
            })
            .syntax(")");
        sql.finish()
    }

    fn select(&self, sql: &mut Builder) {
        sql.syntax("SELECT ");
        match &self.cells {
            None => sql.all_columns(&self.table),
            Some(cells) => sql.columns(&self.table, cells),
        };
    }

    fn from(&self, sql: &mut Builder) {
        sql.syntax(" FROM ")
            .table(&self.table)
            .syntax(" WHERE ")
            .column(&self.table, self.key);
    }
}
