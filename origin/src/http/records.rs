//! Records: parsed already, now planned, run and answered.

use super::record_log::RequestRecord;
use super::respond;
use crate::app::App;
use crate::catalog::{Layout, Table};
use crate::db::run::{Counting, Found, Page, Reading};
use crate::db::{DbError, Lease, run};
use crate::page_token::Seal;
use crate::plan::scope::Scope;
use crate::plan::{self, Batch, Plan, Select};
use crate::sql::{self, Statement};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use shared::error::{ErrorCode, Problem};
use shared::key::Principal;
use shared::operation::read::{Answer, Count, Read};
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
    let attempt = Attempt {
        app,
        principal,
        operation: &operation,
        record,
    };
    let tables = attempt.tables(Schema::Cached).await?;
    match attempt.once(&tables).await {
        Err(Failure::Database(error)) if error.means_stale_schema() => {
            let tables = attempt.tables(Schema::Fresh).await?;
            attempt.once(&tables).await
        }
        Err(Failure::Database(error)) if error.is_lost() && operation.is_read() => {
            attempt.once(&tables).await
        }
        outcome => outcome,
    }
    .map_err(Failure::into_problem)
}

/// Where the schema is taken from.
#[derive(Clone, Copy)]
enum Schema {
    Cached,
    Fresh,
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
    record: &'a RequestRecord,
}

/// An operation, ready to run.
enum Prepared {
    /// One record.
    One(Statement, Arc<Layout>),
    /// Many records.
    Many(Box<Reading>),
    /// A statement, and the question how MariaDB would run it.
    Explain(Statement, Statement),
    /// New records.
    Insert(Vec<Statement>, Batch),
    /// Records changed or deleted.
    Change(Statement),
}

/// The tables of an operation: its root, and those that it joins.
struct Tables {
    root: Arc<Table>,
    joined: Vec<Arc<Table>>,
}

impl Tables {
    /// Whether using them may leave something in the session.
    fn leave(&self) -> run::Leaves {
        let stored = |table: &Arc<Table>| table.traits().stored_code;
        if stored(&self.root) || self.joined.iter().any(stored) {
            run::Leaves::Anything
        } else {
            run::Leaves::Nothing
        }
    }
}

impl Attempt<'_> {
    async fn tables(&self, schema: Schema) -> Result<Tables, Problem> {
        let path = self
            .operation
            .table()
            .ok_or_else(|| Problem::new(ErrorCode::Internal, "The operation has no table."))?;
        let root = self.table(path, schema).await?;
        let mut joined = Vec::new();
        for join in self.operation.joins() {
            let path = TablePath {
                database: path.database.clone(),
                table: join.table.clone(),
            };
            joined.push(self.table(&path, schema).await?);
        }
        Ok(Tables { root, joined })
    }

    async fn table(&self, path: &TablePath, schema: Schema) -> Result<Arc<Table>, Problem> {
        let (catalog, project) = (&self.app.catalog, self.principal.project());
        match schema {
            Schema::Cached => catalog.table(project, path).await,
            Schema::Fresh => catalog.reload(project, path).await,
        }
    }

    async fn once(&self, tables: &Tables) -> Result<Response, Failure> {
        let leaves = tables.leave();
        match self.prepare(tables)? {
            Prepared::One(statement, layout) => self.one(statement, &layout, leaves).await,
            Prepared::Many(reading) => self.many(reading, leaves).await,
            Prepared::Explain(statement, question) => {
                Box::pin(self.explain(statement, question, leaves)).await
            }
            Prepared::Insert(statements, batch) => {
                let written = self.write(&statements, leaves).await?;
                Ok(respond::payload(&ids(&written, batch)))
            }
            Prepared::Change(statement) => {
                let written = self.write(&[statement], leaves).await?;
                Ok(respond::payload(written.affected.to_string().as_bytes()))
            }
        }
    }

    /// The operation, planned and rendered.
    fn prepare(&self, tables: &Tables) -> Result<Prepared, Problem> {
        let scope = Scope::joined(&tables.root, self.operation.joins(), &tables.joined)?;
        Ok(
            match plan::build(self.operation, &scope, self.app.bounds.batch_max_rows)? {
                Plan::Select(select) => self.prepare_read(select, &scope)?,
                Plan::Insert(insert) => {
                    let batch = insert.batch;
                    Prepared::Insert(sql::insert(insert, scope.root()), batch)
                }
                Plan::Update(update) => Prepared::Change(sql::update(update, &scope)),
                Plan::Delete(delete) => Prepared::Change(sql::delete(delete, &scope)),
            },
        )
    }

    fn prepare_read(&self, select: Select, scope: &Scope<'_>) -> Result<Prepared, Problem> {
        let explained = |select: Select| {
            let statement = sql::select(select.clone(), scope);
            Prepared::Explain(statement, sql::explain(select, scope))
        };
        let layout = Arc::clone(&select.layout);
        match self.operation {
            Operation::Read(read) => {
                let counting = counting(&select, read, scope);
                let (select, page) = self.paged(select, read, scope)?;
                Ok(match read.answer {
                    Answer::Explanation => explained(select),
                    Answer::Records => Prepared::Many(Box::new(Reading {
                        statement: sql::select(select, scope),
                        layout,
                        page,
                        counting,
                    })),
                })
            }
            Operation::ReadOne(read) if read.answer == Answer::Explanation => Ok(explained(select)),
            _ => Ok(Prepared::One(sql::select(select, scope), layout)),
        }
    }

    /// The read behind the page before, and what the next page needs.
    fn paged(
        &self,
        mut select: Select,
        read: &Read,
        scope: &Scope<'_>,
    ) -> Result<(Select, Option<Page>), Problem> {
        let Some(keyset) = select.keyset.clone() else {
            return Ok((select, None));
        };
        let seal = self.seal(&select, scope);
        if let Some(token) = &read.window.after {
            let values = seal.open(token)?;
            select.go_on_after(values)?;
        }
        let page = select.limit.map(|limit| Page {
            limit,
            cells: keyset.cells().to_vec(),
            seal,
        });
        Ok((select, page))
    }

    /// What a page and the next one have in common.
    fn seal(&self, select: &Select, scope: &Scope<'_>) -> Seal {
        let tables: Vec<_> = (0..scope.size())
            .map(|source| {
                (
                    scope.table(source).name().as_str(),
                    scope.name(source).as_str(),
                )
            })
            .collect();
        self.app.pages.seal((
            self.principal.project().as_str(),
            scope.root().database().as_str(),
            tables,
            &select.joins,
            &select.filter,
            &select.keyset,
        ))
    }

    async fn lease(&self) -> Result<Lease, DbError> {
        let principal = self.principal;
        self.app
            .pools
            .lease(principal.project(), principal.access())
            .await
    }

    async fn one(
        &self,
        statement: Statement,
        layout: &Layout,
        leaves: run::Leaves,
    ) -> Result<Response, Failure> {
        let (limit, progress) = (self.app.pools.query_timeout(), self.record.progress());
        let lease = self.lease().await?;
        match run::one(lease, statement, layout, leaves, limit, progress).await? {
            Found::One(envelope) => Ok(respond::json(envelope)),
            Found::Nothing => Err(Failure::Problem(Problem::new(
                ErrorCode::RecordNotFound,
                "There is no record with this id.",
            ))),
            Found::Several => Err(Failure::Problem(
                Problem::new(
                    ErrorCode::InvalidQueryOption,
                    "The record has several partners in the option join, so it is not one row.",
                )
                .with_hint("Read the table with the option query instead: its rows are a list."),
            )),
        }
    }

    async fn many(&self, reading: Box<Reading>, leaves: run::Leaves) -> Result<Response, Failure> {
        let limit = self.app.pools.query_timeout();
        let progress = Arc::clone(self.record.progress());
        let chunks = run::many(self.lease().await?, reading, leaves, limit, progress);
        let write_timeout = self.app.bounds.write_timeout;
        Ok(respond::chunks(chunks, write_timeout, || self.app.metrics.stream()).await?)
    }

    /// The statement and MariaDB's own view of it, instead of its rows.
    async fn explain(
        &self,
        statement: Statement,
        question: Statement,
        leaves: run::Leaves,
    ) -> Result<Response, Failure> {
        let (limit, progress) = (self.app.pools.query_timeout(), self.record.progress());
        let plan = run::text(self.lease().await?, question, leaves, limit, progress).await?;
        let unreadable = || Problem::new(ErrorCode::Internal, "MariaDB's plan can't be shown.");
        let explanation = Explanation {
            sql: statement.text(),
            plan: serde_json::from_str(&plan).map_err(|_| unreadable())?,
        };
        let json = serde_json::to_vec(&explanation).map_err(|_| unreadable())?;
        Ok(respond::payload(&json))
    }

    async fn write(
        &self,
        statements: &[Statement],
        leaves: run::Leaves,
    ) -> Result<run::Written, Failure> {
        let mut lease = self.lease().await?;
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

/// How the number of records without paging is found, if it is asked for.
fn counting(select: &Select, read: &Read, scope: &Scope<'_>) -> Option<Counting> {
    (read.count == Count::Exact).then(|| Counting {
        statement: sql::count(select.clone(), scope),
        before: read.window.after.is_none().then_some(select.offset),
        limit: select.limit,
    })
}

/// The answer of `explain`.
#[derive(Serialize)]
struct Explanation<'a> {
    sql: &'a str,
    plan: &'a RawValue,
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
