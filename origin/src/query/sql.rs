//! Renders a plan as a [`Statement`]: text with `?`, and its parameters. Does no I/O. Only this module makes
//! statements, and `database::run` takes nothing else.

mod builder;
mod delete;
pub mod drops;
mod expression;
#[cfg(test)]
pub(crate) mod golden;
mod insert;
mod insert_one;
mod predicate;
pub mod receipt;
mod select;
mod select_by_key;
pub mod session;
#[cfg(test)]
mod spellings;
mod tokens;
mod update;
pub mod xa;

use crate::query::plan::Param;
pub use delete::delete;
pub use insert::insert;
pub use insert_one::{insert_one, insert_several};
pub use select::{count, explain, select};
pub use select_by_key::{select_by_key, select_by_keys};
use shared::ident::DatabaseName;
use shared::operation::sql::SqlCall;
pub use update::update;

#[derive(Debug, PartialEq)]
pub struct Statement {
    text: String,
    params: Vec<Param>,
    duplicates: DuplicateReport,
}

/// How a statement reports rows that it did not insert because their key exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateReport {
    /// It does not: there are no such rows, or the statement fails.
    #[default]
    NotReported,
    /// The first column that it returns is not NULL for such a row, and the second has no meaning. After a failure the
    /// session may hold the variable `@selkie_taken`.
    Marked,
    /// It has one row, and its duplicate-key error means that the row was skipped.
    Fails,
}

impl Statement {
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    #[must_use]
    pub fn duplicates(&self) -> DuplicateReport {
        self.duplicates
    }

    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Renders users' own SQL, to run in a default schema.
#[must_use]
pub fn verbatim(call: &SqlCall, schema: Option<&DatabaseName>) -> Statement {
    let mut builder = builder::Builder::new();
    builder.mark(schema.map_or("", DatabaseName::as_str));
    builder.verbatim(&call.query);
    for value in &call.params {
        builder.bind(session::param(value));
    }
    builder.finish()
}
