//! A plan, rendered: the text with its `?` and what they stand for. Pure; the only way to a
//! [`Statement`], which is all that `db` runs.

mod builder;
mod delete;
mod insert;
mod predicate;
mod select;
pub mod session;
mod update;

use crate::catalog::Table;
use crate::plan::{Param, Plan};
use shared::operation::sql::SqlCall;

/// A statement: made only here.
#[derive(Debug, PartialEq)]
pub struct Statement {
    text: String,
    params: Vec<Param>,
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

    /// Both, taken apart.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Param>) {
        (self.text, self.params)
    }
}

/// Renders a plan on its table. An insert of many rows takes several statements, which must run in one
/// transaction; everything else is one.
#[must_use]
pub fn render(plan: Plan, table: &Table) -> Vec<Statement> {
    match plan {
        Plan::Select(select) => vec![select::render(select, table)],
        Plan::Insert(insert) => insert::render(insert, table),
        Plan::Update(update) => vec![update::render(update, table)],
        Plan::Delete(delete) => vec![delete::render(delete, table)],
    }
}

/// Users' own SQL, verbatim.
#[must_use]
pub fn verbatim(call: SqlCall) -> Statement {
    let mut builder = builder::Builder::new();
    builder.verbatim(&call.query);
    for value in &call.params {
        builder.bind(session::param(value));
    }
    builder.finish()
}
