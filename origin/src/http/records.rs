//! Records: parsed already, now planned, run and answered.

mod describe;
mod read;

use super::record_log::RequestRecord;
use super::respond;
use crate::app::App;
use crate::catalog::{Layout, Table};
use crate::db::run::Reading;
use crate::db::{DbError, Lease, run};
use crate::plan::scope::Scope;
use crate::plan::{self, Batch, Plan};
use crate::sql::{self, Statement};
use axum::response::Response;
use shared::error::{ErrorCode, Problem};
use shared::format::Format;
use shared::key::Principal;
use shared::operation::{Operation, TablePath};
use std::sync::Arc;

pub(super) use describe::describe;

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
    let attempt = Attempt {
        app,
        principal,
        operation: &operation,
        terms,
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
    terms: Terms<'a>,
    record: &'a RequestRecord,
}

/// An operation, ready to run.
enum Prepared {
    /// One record.
    One(Statement, Arc<Layout>, Format),
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
            Prepared::One(statement, layout, format) => {
                self.one(statement, &layout, format, leaves).await
            }
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

    async fn lease(&self) -> Result<Lease, DbError> {
        let principal = self.principal;
        self.app
            .pools
            .lease(principal.project(), principal.access())
            .await
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
