//! Runs a request through the stages of the origin's handlers, without I/O: it is refused or becomes statements.

use crate::catalogue;
use crate::request::Request;
use origin::query::catalog::Table;
use origin::query::plan::access::Rights;
use origin::query::plan::include::{Batch, Included};
use origin::query::plan::related::{RelatedTable, RelationUse, relation_uses};
use origin::query::plan::scope::Scope;
use origin::query::plan::{self, Page, Param, Plan, PlanLimits, Select};
use origin::query::sql::{self, Statement};
use shared::error::Problem;
use shared::ident::{DatabaseName, TableName};
use shared::limits::{BATCH_MAX_ROWS, ORDER_MAX_STEPS};
use shared::operation::filter::Condition;
use shared::operation::read::{Count, Read, ReadAnswer};
use shared::operation::sql::SqlCall;
use shared::operation::{Operation, RecordOperation, TablePath, parse_head};
use std::sync::Arc;

#[derive(Debug, PartialEq)]
pub enum Outcome {
    Refused(Problem),
    /// The request's table does not exist.
    Nowhere,
    Described,
    Own(Box<SqlCall>, Statement),
    Together(Vec<Outcome>),
    Ours(Verb, Vec<Statement>),
}

/// What Selkie's statements may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Read,
    Insert {
        cells: usize,
    },
    /// Change or delete one record, or the records that satisfy a condition.
    Change,
}

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
            Ok(Outcome::Own(Box::new(call.clone()), statement))
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
        Operation::Records(operation) => on_records(operation),
        Operation::Describe(path) if table(path).is_some() => Ok(Outcome::Described),
        _ => Ok(Outcome::Nowhere),
    }
}

/// The id that each insert of a batch is assumed to return.
const GIVEN_ID: &str = "4711";
const LIMITS: PlanLimits = PlanLimits { batch_max_rows: BATCH_MAX_ROWS, read_max_rows: None };
/// MariaDB's default for `max_allowed_packet`.
const PACKET_MAX_BYTES: usize = 16 * 1024 * 1024;

fn on_records(operation: &RecordOperation) -> Result<Outcome, Problem> {
    let path = operation.table();
    let joined = operation.joins().iter().map(|join| catalogue::find(&path.database, &join.table));
    let (Some(root), Some(joined)) = (table(path), joined.collect::<Option<Vec<_>>>()) else {
        return Ok(Outcome::Nowhere);
    };
    let joined = joined.into_iter().map(|table| Rights::Full.of(table)).collect::<Result<Vec<_>, _>>()?;
    let root = Rights::Full.of(root)?;
    let conditions = operation.filter().map(Condition::related).unwrap_or_default();
    let uses = relation_uses(catalogue::relations(), &root, operation.includes(), &conditions, &|_, _| true)?;
    let related = related(uses, &path.database)?;
    let scope = Scope::joined(&root, operation.joins(), &joined)?.with_related(&related);
    let verb = verb(operation);
    let after = operation.after().map(|token| vec![last_seen(token); ORDER_MAX_STEPS]);
    let page = Page { after, is_head: false };
    let statements = match plan::build(operation, &scope, LIMITS, page)? {
        Plan::Select(plan, read) => reads(plan, read, &scope),
        Plan::SelectOne(plan, read) => {
            let mut statements = included(plan.includes());
            statements.push(select(plan, read.answer, &scope));
            statements
        }
        Plan::SelectByKey(plan) => vec![sql::select_by_key(plan.shape(), plan.key())],
        Plan::Insert(plan, _) => sql::insert(plan, &scope, PACKET_MAX_BYTES),
        Plan::InsertOne(plan) => {
            let (shape, row) = plan.into_parts();
            vec![sql::insert_one(&shape, row)]
        }
        Plan::Update(plan, _) => sql::update(plan, &scope),
        Plan::Delete(plan, _) => vec![sql::delete(plan, &scope)],
    };
    Ok(Outcome::Ours(verb, statements))
}

fn related(uses: Vec<RelationUse<'_>>, database: &DatabaseName) -> Result<Vec<RelatedTable>, Problem> {
    let access =
        |name: &TableName| Rights::Full.of(catalogue::find(database, name).expect("tables with foreign keys exist"));
    let loaded = uses.into_iter().map(|RelationUse { name, relation, includes, conditions }| {
        let far = access(&relation.table)?;
        let link = relation.link.as_ref().map(|link| access(&link.table)).transpose()?;
        let inner = relation_uses(catalogue::relations(), &far, &includes, &conditions, &|_, _| true)?;
        Ok(RelatedTable::new(name, relation, far, link, related(inner, database)?))
    });
    loaded.collect()
}

/// Returns the statement of a read or its explanation, and of its count if requested.
fn reads(plan: Select, read: &Read, scope: &Scope<'_>) -> Vec<Statement> {
    let mut statements = included(plan.includes());
    if read.count == Count::Exact {
        statements.push(sql::count(plan.clone(), scope));
    }
    statements.push(select(plan, read.answer, scope));
    statements
}

/// Returns the reads of related records, as if there were three records with the keys 1, 2 and 3.
fn included(includes: &[Included]) -> Vec<Statement> {
    let of = |one: &Included| {
        let keys: Vec<_> = (1..=3).map(|key| vec![Param::Int(key); one.parent_cells().len()]).collect();
        let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let mut statements: Vec<_> =
            [one.batch(), Batch::Union].map(|batch| sql::included(one, batch, &keys)).into_iter().collect();
        statements.extend(included(one.includes()));
        statements
    };
    includes.iter().flat_map(of).collect()
}

fn select(plan: Select, answer: ReadAnswer, scope: &Scope<'_>) -> Statement {
    match answer {
        ReadAnswer::Explanation => sql::explain(plan, scope),
        ReadAnswer::Records => sql::select(plan, scope),
    }
}

fn table(path: &TablePath) -> Option<&'static Arc<Table>> {
    catalogue::find(&path.database, &path.table)
}

fn last_seen(token: &str) -> Param {
    match (token, token.parse()) {
        ("null", _) => Param::Null,
        (_, Ok(number)) => Param::Int(number),
        (text, Err(_)) => Param::Text(text.into()),
    }
}

fn verb(operation: &RecordOperation) -> Verb {
    match operation {
        RecordOperation::Insert(insert) => Verb::Insert { cells: insert.rows.as_slice().len() * insert.fields.len() },
        RecordOperation::Update(_) | RecordOperation::Delete(_) => Verb::Change,
        _ => Verb::Read,
    }
}
