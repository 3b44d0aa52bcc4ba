//! What becomes of a request: refused, or statements. The flow of the origin's handlers without their I/O.

use crate::catalogue;
use crate::request::Request;
use origin::plan::{self, Plan};
use origin::sql::{self, Statement};
use shared::error::Problem;
use shared::limits::BATCH_MAX_ROWS;
use shared::operation::sql::SqlCall;
use shared::operation::{Operation, parse_head};

/// What a request became.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The answer is this.
    Refused(Problem),
    /// It is about a table that is not there.
    Nowhere,
    /// The answer is the table's schema.
    Described,
    /// The caller's own statement, and how it is run.
    Own(SqlCall, Statement),
    /// Our statements.
    Ours(Verb, Vec<Statement>),
}

/// What our statements do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// They read.
    Read,
    /// They insert rows, of so many cells altogether.
    Insert {
        /// Rows times fields.
        cells: usize,
    },
    /// They change or delete one record, or those that satisfy a condition.
    Change,
}

/// Runs a request through the stages.
#[must_use]
pub fn of(request: &Request<'_>) -> Outcome {
    follow(request).unwrap_or_else(Outcome::Refused)
}

fn follow(request: &Request<'_>) -> Result<Outcome, Problem> {
    let operation = parse_head(&request.head())?.finish(request.body())?;
    if let Operation::Sql(call) = operation {
        let _ = sql::session::effects(&call.query);
        let statement = sql::verbatim(&call, call.database.as_ref());
        return Ok(Outcome::Own(call, statement));
    }
    let Some(table) = operation.table().and_then(catalogue::find) else {
        return Ok(Outcome::Nowhere);
    };
    if let Operation::Describe(_) = operation {
        return Ok(Outcome::Described);
    }
    let verb = verb(&operation);
    let statements = match plan::build(&operation, table, BATCH_MAX_ROWS)? {
        Plan::Select(plan) => vec![sql::select(plan, table)],
        Plan::Insert(plan) => sql::insert(plan, table),
        Plan::Update(plan) => vec![sql::update(plan, table)],
        Plan::Delete(plan) => vec![sql::delete(plan, table)],
    };
    Ok(Outcome::Ours(verb, statements))
}

fn verb(operation: &Operation) -> Verb {
    match operation {
        Operation::Insert(insert) => Verb::Insert {
            cells: insert.rows.as_slice().len() * insert.fields.len(),
        },
        Operation::Update(_) | Operation::Delete(_) => Verb::Change,
        _ => Verb::Read,
    }
}
