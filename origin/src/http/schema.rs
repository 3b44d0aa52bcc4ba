//! `/api/v1/schema`: changes tables, and shows their definitions. `listing` lists what else a database has.

use super::records::Failure;
use super::request_context::RequestContext;
use super::respond;
use crate::database::error::no_database;
use crate::database::retry::{Repeatable, retry_once};
use crate::database::schema_change::{SchemaChangeDone, Warning};
use crate::database::{ReadFrom, schema_change, table_definition};
use crate::query::alteration::predict;
use crate::query::catalog::definition::TableDefinition;
use crate::query::sql::Statement;
use crate::query::sql::table_change::{self, Method};
use axum::response::Response;
use serde::Serialize;
use shared::error::{ErrorCode, Problem};
use shared::operation::TablePath;
use shared::operation::schema::{SchemaCall, SchemaRun, TableChange};

#[derive(Serialize)]
struct Outcome<'a> {
    sql: &'a str,
    algorithm: Option<&'static str>,
    lock: Option<&'static str>,
    rows: u64,
    bytes: u64,
    done: bool,
    warnings: Vec<Warning>,
}

type Form = (Option<Method>, Statement);

/// Returns the forms of the statement, to be tried in their order; for a dry run, the one that MariaDB is expected to
/// accept.
fn forms(call: &SchemaCall, run: SchemaRun, known: &TableDefinition) -> Vec<Form> {
    let table = &call.table;
    let change = match &call.change {
        TableChange::Create(new) => return vec![(None, table_change::create(table, new))],
        TableChange::Truncate => return vec![(None, table_change::truncate(table))],
        TableChange::Drop => return vec![(None, table_change::drop(table))],
        TableChange::Alter(change) => change,
    };
    let form = |method| (Some(method), table_change::alter(table, known, change, method));
    let is_accepted = |method: &Method| change.algorithm.is_none_or(|most| method.algorithm <= most);
    match run {
        SchemaRun::DryRun => vec![form(predict(known, change))],
        SchemaRun::Change => Method::ALL.into_iter().filter(is_accepted).map(form).collect(),
    }
}

pub(super) async fn change(context: &RequestContext, run: SchemaRun, body: &[u8]) -> Result<Response, Problem> {
    let call = SchemaCall::from_body(body)?;
    let (app, caller) = (context.app(), context.caller());
    if call.table.database.is_system() {
        return Err(no_database(&call.table.database, &[]));
    }
    let is_new = matches!(call.change, TableChange::Create(_));
    if is_new && call.table.table.is_system() {
        let message = "Selkie has a table of this name in each database.";
        return Err(Problem::new(ErrorCode::InvalidIdentifier, message));
    }
    if !is_new {
        app.schema_cache.reload(caller.project(), &call.table).await?;
    }
    let attempt = async || attempt(context, run, &call).await;
    let outcome = attempt().await;
    retry_once(Repeatable::UserSql, outcome, |_, _| attempt()).await.map_err(Failure::into_problem)
}

async fn attempt(context: &RequestContext, run: SchemaRun, call: &SchemaCall) -> Result<Response, Failure> {
    let limit = context.limit();
    let mut lease = context.lease_to_write().await?;
    let table = match call.change {
        TableChange::Create(_) => TableDefinition::default(),
        _ => table_definition::read(&mut lease, &call.table, limit).await?,
    };
    context.progress().begin("ALTER", Some(&call.table));
    let forms = forms(call, run, &table);
    let done = match run {
        SchemaRun::DryRun => {
            for (_, statement) in &forms {
                schema_change::check(&mut lease, statement.clone(), limit).await?;
            }
            SchemaChangeDone::default()
        }
        SchemaRun::Change => {
            let change = context.app().schema_cache.change_guard(context.caller().project());
            let statements = forms.iter().map(|(_, statement)| statement.clone()).collect();
            let done = schema_change::run(lease, statements, limit, context.progress()).await;
            drop(change);
            done?
        }
    };
    let (method, sql) = forms.get(done.form).map(|(method, sql)| (*method, sql.text())).unwrap_or_default();
    json(&Outcome {
        sql,
        algorithm: method.map(|method| method.algorithm.as_str()),
        lock: method.map(|method| method.lock.as_str()),
        rows: table.rows,
        bytes: table.bytes,
        done: run == SchemaRun::Change,
        warnings: done.warnings,
    })
}

pub(super) async fn definition(context: &RequestContext, path: &TablePath) -> Result<Response, Problem> {
    context.app().schema_cache.reload(context.caller().project(), path).await?;
    context.progress().begin("SHOW CREATE TABLE", Some(path));
    let once = async || {
        let mut lease = context.lease(ReadFrom::Primary).await?;
        json(&table_definition::read(&mut lease, path, context.limit()).await?)
    };
    let outcome = once().await;
    retry_once(Repeatable::Read, outcome, |_, _| once()).await.map_err(Failure::into_problem)
}

fn json(payload: &impl Serialize) -> Result<Response, Failure> {
    let json = serde_json::to_vec(payload)
        .map_err(|error| Problem::internal("The schema can't be shown.", error.to_string()))?;
    Ok(respond::payload(&json))
}
