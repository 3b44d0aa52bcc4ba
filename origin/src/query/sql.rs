//! A plan, rendered: the text with its `?` and what they stand for. Pure; the only way to a
//! [`Statement`], the only thing that `database::run` takes.

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

/// A statement: made only here.
#[derive(Debug, PartialEq)]
pub struct Statement {
    text: String,
    params: Vec<Param>,
    taken: DuplicateReport,
}

/// What a statement says of rows that it did not insert because their key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateReport {
    /// Nothing: there are none, or it fails.
    #[default]
    Untold,
    /// The first of the columns that it returns is not NULL for such a row, and the second means
    /// nothing. After a failure the session may hold a variable of ours.
    Marked,
    /// It holds one row, and fails with a duplicate key: that means that the row was passed over.
    Fails,
}

impl Statement {
    /// The text, with `?` for each parameter.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parameters, in order.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// What it says of rows whose key is taken.
    #[must_use]
    pub fn taken(&self) -> DuplicateReport {
        self.taken
    }

    /// Text and parameters, taken apart.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Users' own SQL, verbatim, to be run in a default schema.
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
