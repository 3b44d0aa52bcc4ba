//! What becomes of a request: refused, or statements. The flow of the origin's handlers without their I/O.

use crate::catalogue;
use crate::request::Request;
use origin::query::plan::scope::Scope;
use origin::query::plan::{self, Param, Plan, Select};
use origin::query::sql::{self, Statement};
use shared::error::Problem;
use shared::limits::BATCH_MAX_ROWS;
use shared::operation::read::Count;
use shared::operation::sql::SqlCall;
use shared::operation::{Operation, parse_head};
use shared::policy::Action;

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
    /// Each of a batch's operations became this.
    Together(Vec<Outcome>),
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
    match &operation {
        Operation::Sql(call) => {
            let _ = sql::session::effects(&call.query);
            let statement = sql::verbatim(call, call.database.as_ref());
            Ok(Outcome::Own(call.clone(), statement))
        }
        Operation::Batch(batch) => batch
            .steps()
            .iter()
            .map(|step| {
                let operation = step.resolve(&mut |_| Ok(GIVEN_ID.to_owned()))?;
                on_records(&operation)
            })
            .collect::<Result<_, _>>()
            .map(Outcome::Together),
        operation => on_records(operation),
    }
}

/// The id that every insert of a batch gives.
const GIVEN_ID: &str = "4711";
/// MariaDB's own default for `max_allowed_packet`.
const PACKET_MAX_BYTES: usize = 16 * 1024 * 1024;

fn on_records(operation: &Operation) -> Result<Outcome, Problem> {
    let Some(path) = operation.table() else {
        return Ok(Outcome::Nowhere);
    };
    let table = |name| catalogue::find(&path.database, name);
    let joined = operation.joins().iter().map(|join| table(&join.table));
    let (Some(root), Some(joined)) = (table(&path.table), joined.collect::<Option<Vec<_>>>()) else {
        return Ok(Outcome::Nowhere);
    };
    if let Operation::Describe(_) = operation {
        return Ok(Outcome::Described);
    }
    let joined: Vec<_> = joined.into_iter().cloned().collect();
    let scope = Scope::joined(root, operation.joins(), &joined)?;
    let verb = verb(operation);
    let statements = match plan::build(operation, &scope, BATCH_MAX_ROWS)? {
        Plan::Select(plan) => reads(plan, operation, &scope)?,
        Plan::SelectByKey(plan) => vec![sql::select_by_key(plan.shape(), plan.key())],
        Plan::Insert(plan) => sql::insert(plan, root, PACKET_MAX_BYTES),
        Plan::InsertOne(plan) => {
            let (shape, row) = plan.into_parts();
            vec![sql::insert_one(&shape, row)]
        }
        Plan::Update(plan) => vec![sql::update(plan, &scope)],
        Plan::Delete(plan) => vec![sql::delete(plan, &scope)],
    };
    Ok(Outcome::Ours(verb, statements))
}

/// The read or its explanation, and its count if that is asked for.
fn reads(mut plan: Select, operation: &Operation, scope: &Scope<'_>) -> Result<Vec<Statement>, Problem> {
    let mut statements = Vec::new();
    if let Operation::Read(read) = operation {
        if read.count == Count::Exact {
            statements.push(sql::count(plan.clone(), scope));
        }
        if let (Some(token), Some(keyset)) = (&read.window.after, &plan.keyset) {
            let values = vec![last_seen(token); keyset.cells().len()];
            plan.go_on_after(values)?;
        }
    }
    statements.push(match operation.further_action() {
        Some(Action::Explain) => sql::explain(plan, scope),
        _ => sql::select(plan, scope),
    });
    Ok(statements)
}

/// A page's token is signed, so what the fuzzer makes up stands for the values inside.
fn last_seen(token: &str) -> Param {
    match (token, token.parse()) {
        ("null", _) => Param::Null,
        (_, Ok(number)) => Param::Int(number),
        (text, Err(_)) => Param::Text(text.into()),
    }
}

fn verb(operation: &Operation) -> Verb {
    match operation {
        Operation::Insert(insert) => Verb::Insert { cells: insert.rows.as_slice().len() * insert.fields.len() },
        Operation::Update(_) | Operation::Delete(_) => Verb::Change,
        _ => Verb::Read,
    }
}
