//! Records: parsed already, now planned, run and answered.

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
use shared::format::Format;
use shared::key::Principal;
use shared::operation::{Operation, TablePath};
use shared::policy;
use std::sync::Arc;

/// What a caller wants of a read's answer, beside what the operation says.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// How much of it.
    pub(super) extent: Extent,
    /// The tags of what the caller has already.
    pub(super) if_none_match: Option<&'a str>,
}

/// How much of an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Its head: whether there is an answer, and what it is like.
    Head,
}

/// Runs an operation on a table. One that MariaDB refuses because the schema has changed behind the
/// cache, or a read whose connection turns out to be lost, is tried once more.
pub(super) async fn run(
    app: &Arc<App>,
    principal: &Principal,
    operation: Operation,
    terms: Terms<'_>,
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
        terms,
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
enum Failure {
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
    fn into_problem(self) -> Problem {
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
    terms: Terms<'a>,
    record: &'a RequestRecord,
}

impl Attempt<'_> {
    async fn once(&self, table: &Arc<Table>) -> Result<Response, Failure> {
        let plan = plan::build(self.operation, table, self.app.bounds.batch_max_rows)?;
        let leaves = if table.traits().stored_code {
            run::Leaves::Anything
        } else {
            run::Leaves::Nothing
        };
        match plan {
            Plan::Select(mut select) => {
                let layout = table.layout(&select.columns);
                match self.operation {
                    Operation::ReadOne(read) => {
                        let statement = sql::select(select, table);
                        self.one(statement, &layout, read.format, leaves).await
                    }
                    Operation::Read(read) => {
                        if self.terms.extent == Extent::Head {
                            // The first row tells all that a head can tell.
                            select.limit = Some(select.limit.unwrap_or(1).min(1));
                        }
                        let statement = sql::select(select, table);
                        self.many(statement, layout, read.format, leaves).await
                    }
                    _ => Err(Problem::new(
                        ErrorCode::Internal,
                        "The request was planned as a read.",
                    )
                    .into()),
                }
            }
            Plan::Insert(insert) => {
                let batch = insert.batch;
                let written = self.write(&sql::insert(insert, table), leaves).await?;
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
        format: Format,
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
            format,
            leaves,
            limit,
            self.record.progress(),
        )
        .await?;
        match found {
            Some(body) => Ok(respond::record(body, format, self.terms.if_none_match)),
            None => Err(Failure::Problem(Problem::new(
                ErrorCode::RecordNotFound,
                "There is no record with this id.",
            ))),
        }
    }

    async fn many(
        &self,
        statement: Statement,
        layout: Arc<Layout>,
        format: Format,
        leaves: run::Leaves,
    ) -> Result<Response, Failure> {
        let lease = self
            .app
            .pools
            .lease(self.principal.project(), self.principal.access())
            .await?;
        let limit = self.app.pools.query_timeout();
        let progress = Arc::clone(self.record.progress());
        let chunks = run::many(lease, statement, layout, format, leaves, limit, progress);
        let content_type = format.content_type();
        let answer = match self.terms.extent {
            Extent::Head => respond::chunks_head(chunks, content_type).await?,
            Extent::Whole => {
                let write_timeout = self.app.bounds.write_timeout;
                let guard = || self.app.metrics.stream();
                respond::chunks(chunks, content_type, write_timeout, guard).await?
            }
        };
        Ok(respond::list(answer))
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

/// The payload of an insert: the new key, or the list of them.
fn ids(written: &run::Written, batch: Batch) -> Vec<u8> {
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
