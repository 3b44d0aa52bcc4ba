//! Renders plans, users' own SQL and some of this program's own SQL as [`Statement`]s: SQL text with `?` placeholders,
//! and values. Does no I/O. Only this module creates statements, and `database::run` runs no other SQL.

mod builder;
mod change;
mod coalesced;
pub mod create_table;
pub mod definer;
pub mod drops;
mod expression;
#[cfg(test)]
pub(crate) mod golden;
mod images;
mod insert;
mod predicate;
pub mod receipt;
mod returning;
pub mod script;
pub mod secrets;
mod select;
pub mod session;
#[cfg(test)]
mod spellings;
pub mod table_change;
mod tokens;
pub mod xa;

use crate::query::catalog::Layout;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Param, Predicate};
pub use change::{delete, update};
pub use coalesced::{insert_one, insert_several, select_by_key, select_by_keys};
pub use images::{ImageColumn, images};
pub use insert::insert;
pub use select::{count, cursor_basis, explain, included, select, select_for_update, select_with_key};
use shared::ident::DatabaseName;
use shared::operation::sql::SqlCall;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    text: String,
    params: Vec<Param>,
    columns: ResultColumns,
    skips_duplicates: bool,
    sets_variables: bool,
    batch_offset: Option<usize>,
}

/// The columns of the rows that a write returns. A write without such rows reports a row count and the last insert id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultColumns {
    /// Index of a cell that is not NULL in a row that a conflict skipped; other cells of such a row have no meaning.
    pub skipped: Option<usize>,
    pub key: Range<usize>,
    pub record: Option<RecordColumns>,
    /// Index of a cell that is 1 if the record meets the role's rules. Otherwise the transaction must be rolled back. From
    /// 2 on, the cell is the number of the foreign key that points to a record that the caller may not read.
    pub rule: Option<usize>,
    /// The fields of the foreign keys, in order.
    pub references: Vec<Box<str>>,
    /// True if the only row is about the records that the previous statement wrote.
    pub is_check: bool,
}

impl ResultColumns {
    /// The number of the first foreign key in the cell `rule`.
    pub const FIRST_REFERENCE: usize = 2;

    fn next(&self) -> usize {
        let last = |record: &RecordColumns| record.cells.end + usize::from(record.readable.is_some());
        self.record.as_ref().map_or(self.key.end, last)
    }
}

#[derive(Clone, Debug)]
pub struct RecordColumns {
    pub cells: Range<usize>,
    /// Index of a cell that is 1 if the caller may read the record.
    pub readable: Option<usize>,
    pub layout: Arc<Layout>,
}

/// Ignores the columns' names, which are part of the statement's text.
impl PartialEq for RecordColumns {
    fn eq(&self, other: &Self) -> bool {
        (&self.cells, self.readable, &self.layout.kinds) == (&other.cells, other.readable, &other.layout.kinds)
    }
}

impl Statement {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    pub fn columns(&self) -> &ResultColumns {
        &self.columns
    }

    /// Whether a duplicate-key error of the statement means that the row is skipped.
    pub fn skips_duplicates(&self) -> bool {
        self.skips_duplicates
    }

    /// Whether the session variables `@selkie_denied` and `@selkie_conflict` may stay set, if the statement fails or a
    /// record does not meet the role's rules.
    pub fn sets_variables(&self) -> bool {
        self.sets_variables
    }

    pub fn batch_offset(&self) -> Option<usize> {
        self.batch_offset
    }

    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Statements for the number of the failed row, from 1; 0 or NULL if MariaDB names no row. Before MariaDB 10.7, the
/// first one fails. They must not be prepared: that would clear the diagnostics of the failed statement.
pub fn failed_row() -> [&'static str; 2] {
    ["GET DIAGNOSTICS CONDITION 1 @selkie_row = ROW_NUMBER", "SELECT @selkie_row"]
}

pub fn condition(condition: Predicate, scope: &Scope<'_>) -> Statement {
    let mut sql = builder::Builder::new();
    predicate::write(&mut sql, scope, condition);
    sql.finish()
}

/// Returns a user's own statement. `schema` is only named in a comment: the session must have it as default schema.
pub fn verbatim(call: &SqlCall, schema: Option<&DatabaseName>) -> Statement {
    let mut builder = builder::Builder::new();
    builder.mark(schema.map_or("", DatabaseName::as_str));
    builder.verbatim(&call.query);
    for value in &call.params {
        builder.bind(session::param(value));
    }
    builder.finish()
}
