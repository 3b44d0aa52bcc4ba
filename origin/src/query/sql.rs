//! Renders plans, users' own SQL and some SQL of this program's own as [`Statement`]s: SQL text with `?` placeholders,
//! and their values. Does no I/O. Only this module creates statements, and `database::run` runs no SQL from elsewhere.

mod builder;
pub mod create_table;
pub mod definer;
mod delete;
pub mod drops;
mod expression;
#[cfg(test)]
pub(crate) mod golden;
mod insert;
mod insert_one;
mod predicate;
pub mod receipt;
mod returning;
pub mod script;
mod select;
mod select_by_key;
pub mod session;
#[cfg(test)]
mod spellings;
mod tokens;
mod update;
pub mod xa;

use crate::query::catalog::Layout;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Param, Predicate};
pub use delete::delete;
pub use insert::insert;
pub use insert_one::{insert_one, insert_several};
pub use select::{count, explain, included, select, select_for_update, shared_by_pages};
pub use select_by_key::{select_by_key, select_by_keys};
use shared::ident::DatabaseName;
use shared::operation::sql::SqlCall;
use std::sync::Arc;
pub use update::update;

#[derive(Debug, PartialEq)]
pub struct Statement {
    text: String,
    params: Vec<Param>,
    duplicates: DuplicateReport,
    verdict: Verdict,
    returned: Option<Returned>,
    first_row: Option<usize>,
}

/// The columns of the written records in the rows that a write returns. In the rows of an insert, they follow the
/// columns of the key.
#[derive(Clone, Debug)]
pub struct Returned {
    pub layout: Arc<Layout>,
    /// Whether a column follows that is 1 if the caller may read the record.
    pub is_ruled: bool,
}

/// Compares `is_ruled` and the kinds of the columns; the columns' names are part of the statement's text.
impl PartialEq for Returned {
    fn eq(&self, other: &Self) -> bool {
        self.is_ruled == other.is_ruled && self.layout.kinds == other.layout.kinds
    }
}

/// Where a statement returns its verdict, which says whether the records meet the rules of the caller's role. 1 means
/// that they do. After any other value, except in a row that a conflict skipped, the transaction must be rolled back. A
/// failed statement may leave the session variables `@selkie_denied` and `@selkie_conflict` set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nowhere: there are no rules to check.
    #[default]
    None,
    Next,
    /// In the first cell of the only row; the verdict is about the records of the previous statement.
    First,
    /// In the last cell of each row, after the key and the record.
    Last,
}

/// How a statement reports rows that it did not insert because their key exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateReport {
    /// The statement does not report skipped rows: it skips none, or returns no rows.
    #[default]
    NotReported,
    /// The first returned column is not NULL for a skipped row; the second has no meaning. A failed statement may leave
    /// the session variable `@selkie_conflict` set.
    Marked,
    Fails,
}

impl Statement {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    pub fn duplicates(&self) -> DuplicateReport {
        self.duplicates
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the columns of the written records in the rows of the statement; `None` if the statement does not return
    /// records.
    pub fn returned(&self) -> Option<&Returned> {
        self.returned.as_ref()
    }

    pub fn first_row(&self) -> Option<usize> {
        self.first_row
    }

    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Renders the two statements that read which row of the previous statement failed, counted from 1; 0 or NULL if
/// MariaDB names no row. Before MariaDB 10.7, the first of the two fails. It sets the session variable `@selkie_row`.
/// They must not be prepared: that would clear the diagnostics of the failed statement.
pub fn failed_row() -> [&'static str; 2] {
    ["GET DIAGNOSTICS CONDITION 1 @selkie_row = ROW_NUMBER", "SELECT @selkie_row"]
}

/// Renders a condition without a statement, to show it to people.
pub fn condition(condition: Predicate, scope: &Scope<'_>) -> Statement {
    let mut sql = builder::Builder::new();
    predicate::write(&mut sql, scope, condition);
    sql.finish()
}

/// Renders a user's own SQL with its parameters. The caller must run the statement with `schema` as the default schema:
/// the statement does not set the default schema, and names it only in a comment.
pub fn verbatim(call: &SqlCall, schema: Option<&DatabaseName>) -> Statement {
    let mut builder = builder::Builder::new();
    builder.mark(schema.map_or("", DatabaseName::as_str));
    builder.verbatim(&call.query);
    for value in &call.params {
        builder.bind(session::param(value));
    }
    builder.finish()
}
