//! Records: parsed already, now planned, run and answered.

use super::once::InsertOnce;
use super::record_log::RequestRecord;
use super::respond;
use crate::app::App;
use crate::catalog::{Layout, Table};
use crate::db::{DbError, run};
use crate::plan::{self, Batch, Plan};
use crate::sql::{self, Statement};
use axum::response::Response;
use serde::Serialize;
use shared::error::{ErrorCode, Problem};
use shared::key::Principal;
use shared::operation::{Operation, TablePath};
use shared::policy;
use std::sync::Arc;

/// Runs an operation on a table. One that MariaDB refuses because the schema has changed behind the
/// cache, or a read whose connection turns out to be lost, is tried once more.
pub(super) async fn run(
    app: &Arc<App>,
    principal: &Principal,
    operation: Operation,
    record: &RequestRecord,
) -> Result<Response, Problem> {
    let path = operation
        .table()
        .ok_or_else(|| Problem::new(ErrorCode::Internal, "The operation has no table."))?;
    let table = app.catalog.table(principal.project(), path).await?;
    let attempt = Attempt {
        app,
        principal,
        operation: &operation,
        record,
    };
    match attempt.once(&table).await {
        Err(Failure::Database(error)) if error.means_stale_schema() => {
            let table = app.catalog.reload(principal.project(), path).await?;
            attempt.once(&table).await
        }
        Err(Failure::Database(error)) if error.is_lost() && operation.is_read() => {
            attempt.once(&table).await
        }
        outcome => outcome,
    }
    .map_err(Failure::into_problem)
}

/// What ends an attempt.
pub(super) enum Failure {
    Problem(Problem),
    Database(DbError),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Problem(problem) => problem,
            Self::Database(error) => error.into_problem(),
        }
    }
}

struct Attempt<'a> {
    app: &'a Arc<App>,
    principal: &'a Principal,
    operation: &'a Operation,
    record: &'a RequestRecord,
}

impl Attempt<'_> {
    async fn once(&self, table: &Arc<Table>) -> Result<Response, Failure> {
        let plan = plan::build(self.operation, table, self.app.bounds.batch_max_rows)?;
        let leaves = run::Leaves::of(table);
        match plan {
            Plan::Select(select) => {
                let layout = table.layout(&select.columns);
                let statement = sql::select(select, table);
                match self.operation {
                    Operation::ReadOne(_) => self.one(statement, &layout, leaves).await,
                    _ => self.many(statement, layout, leaves).await,
                }
            }
            Plan::Insert(insert) => {
                let batch = insert.batch;
                let statements = sql::insert(insert, table, self.app.bounds.packet_max_bytes);
                if let Operation::Insert(shared::operation::write::Insert {
                    once: Some(once),
                    ..
                }) = self.operation
                {
                    let insert = InsertOnce {
                        app: self.app,
                        principal: self.principal,
                        once,
                        statements: &statements,
                        batch,
                        leaves,
                        progress: self.record.progress(),
                    };
                    return insert.run().await;
                }
                let written = self.write(&statements, leaves).await?;
                Ok(respond::payload(&ids(&written, batch)))
            }
            Plan::Update(update) => {
                let written = self.write(&[sql::update(update, table)], leaves).await?;
                Ok(respond::payload(written.affected.to_string().as_bytes()))
            }
            Plan::Delete(delete) => {
                let written = self.write(&[sql::delete(delete, table)], leaves).await?;
                Ok(respond::payload(written.affected.to_string().as_bytes()))
            }
        }
    }

    async fn one(
        &self,
        statement: Statement,
        layout: &Layout,
        leaves: run::Leaves,
    ) -> Result<Response, Failure> {
        let lease = self
            .app
            .pools
            .lease(self.principal.project(), self.principal.access())
            .await?;
        let limit = self.app.pools.query_timeout();
        let found = run::one(
            lease,
            statement,
            layout,
            leaves,
            limit,
            self.record.progress(),
        )
        .await?;
        found
            .map(respond::json)
            .ok_or_else(|| Failure::Problem(not_found()))
    }

    async fn many(
        &self,
        statement: Statement,
        layout: Arc<Layout>,
        leaves: run::Leaves,
    ) -> Result<Response, Failure> {
        let lease = self
            .app
            .pools
            .lease(self.principal.project(), self.principal.access())
            .await?;
        let limit = self.app.pools.query_timeout();
        let progress = Arc::clone(self.record.progress());
        let chunks = run::many(lease, statement, layout, leaves, limit, progress);
        let write_timeout = self.app.bounds.write_timeout;
        Ok(respond::chunks(chunks, write_timeout, || self.app.metrics.stream()).await?)
    }

    async fn write(
        &self,
        statements: &[Statement],
        leaves: run::Leaves,
    ) -> Result<run::Written, Failure> {
        let mut lease = self
            .app
            .pools
            .lease(self.principal.project(), self.principal.access())
            .await?;
        let limit = self.app.pools.query_timeout();
        Ok(run::write(
            &mut lease,
            statements,
            leaves,
            limit,
            self.record.progress(),
        )
        .await?)
    }
}

pub(super) fn not_found() -> Problem {
    Problem::new(
        ErrorCode::RecordNotFound,
        "There is no record with this id.",
    )
}

/// The payload of an insert: the new key, or the list of them.
pub(super) fn ids(written: &run::Written, batch: Batch) -> Vec<u8> {
    match (batch, written.keys.as_slice()) {
        (Batch::Yes, keys) => {
            let list = keys.join(&b","[..]);
            [&b"["[..], &list, b"]"].concat()
        }
        (Batch::No, [key, ..]) => key.clone(),
        (Batch::No, []) if written.last_insert_id > 0 => run::integer_json(written.last_insert_id),
        (Batch::No, []) => b"null".to_vec(),
    }
}

/// `OPTIONS …/{table}`, `GET …/{table}/_schema`
pub(super) async fn describe(
    app: &Arc<App>,
    principal: &Principal,
    path: &TablePath,
) -> Result<Response, Problem> {
    let table = app.catalog.table(principal.project(), path).await?;
    let description = Description {
        methods: policy::table_methods(principal.access()),
        schema: table.columns().iter().map(Field::of).collect(),
    };
    let json = serde_json::to_vec(&description)
        .map_err(|_| Problem::new(ErrorCode::Internal, "The schema can't be shown."))?;
    Ok(respond::payload(&json))
}

#[derive(Serialize)]
struct Description<'a> {
    methods: &'static [&'static str],
    schema: Vec<Field<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Field<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    type_text: &'a str,
    required: bool,
    nullable: bool,
    default: Option<&'a str>,
    primary_key: bool,
    auto_increment: bool,
    unique: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    values: &'a [String],
    references: Option<Target<'a>>,
    comment: &'a str,
}

#[derive(Serialize)]
struct Target<'a> {
    table: &'a str,
    field: &'a str,
}

impl<'a> Field<'a> {
    fn of(column: &'a crate::catalog::Column) -> Self {
        Self {
            name: column.name.as_str(),
            type_text: &column.type_text,
            required: column.required(),
            nullable: column.nullable,
            default: column.default.as_deref(),
            primary_key: column.primary,
            auto_increment: column.auto_increment,
            unique: column.unique,
            values: &column.values,
            references: column.references.as_ref().map(|target| Target {
                table: &target.table,
                field: &target.field,
            }),
            comment: &column.comment,
        }
    }
}
