//! Renders plans, users' own SQL and some of this program's own SQL as [`Statement`]s: SQL text with `?` placeholders,
//! and values. Does no I/O. Only this module creates statements, and `database::run` runs no other SQL.

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
    verdict: RuleCheckColumn,
    returned: Option<Returned>,
    batch_offset: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Returned {
    pub layout: Arc<Layout>,
    /// A column follows that is 1 if the caller may read the record.
    pub is_ruled: bool,
}

/// The columns' names are part of the statement's text.
impl PartialEq for Returned {
    fn eq(&self, other: &Self) -> bool {
        self.is_ruled == other.is_ruled && self.layout.kinds == other.layout.kinds
    }
}

/// Where a statement returns whether the records meet the rules of the caller's role. After a value other than 1,
/// except in a row that a conflict skipped, the transaction must be rolled back. A failed statement may leave the
/// session variables `@selkie_denied` and `@selkie_conflict` set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleCheckColumn {
    #[default]
    None,
    Next,
    /// The first cell of the only row is the verdict about the records of the previous statement.
    First,
    Last,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateReport {
    /// The statement skips no rows, or returns none.
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

    pub fn verdict(&self) -> RuleCheckColumn {
        self.verdict
    }

    pub fn returned(&self) -> Option<&Returned> {
        self.returned.as_ref()
    }

    pub fn batch_offset(&self) -> Option<usize> {
        self.batch_offset
    }

    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Counted from 1; 0 or NULL if MariaDB names no row. Before MariaDB 10.7, the first statement fails. The statements
/// must not be prepared: that would clear the diagnostics of the failed statement.
pub fn failed_row() -> [&'static str; 2] {
    ["GET DIAGNOSTICS CONDITION 1 @selkie_row = ROW_NUMBER", "SELECT @selkie_row"]
}

pub fn condition(condition: Predicate, scope: &Scope<'_>) -> Statement {
    let mut sql = builder::Builder::new();
    predicate::write(&mut sql, scope, condition);
    sql.finish()
}

/// `schema` is only named in a comment: the caller must set the default schema.
pub fn verbatim(call: &SqlCall, schema: Option<&DatabaseName>) -> Statement {
    let mut builder = builder::Builder::new();
    builder.mark(schema.map_or("", DatabaseName::as_str));
    builder.verbatim(&call.query);
    for value in &call.params {
        builder.bind(session::param(value));
    }
    builder.finish()
}
