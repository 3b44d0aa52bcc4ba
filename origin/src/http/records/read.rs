//! Runs reads and builds their responses.

use super::{Attempt, BodyWanted, Failure};
use crate::database::run::{Counting, Found, NextPage, Reading, ReadingOne, RowLimit, SecondConnection};
use crate::database::{self, DbError, Lessee, run};
use crate::http::respond;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Select, SelectByKey};
use crate::query::sql::{self, Statement};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use shared::error::{ErrorCode, Problem};
use shared::format::Format;
use shared::operation::read::{Count, Read};
use shared::request::{LIMITED_HEADER, MORE_HEADER};
use std::sync::Arc;

const LIMITED: HeaderName = HeaderName::from_static(LIMITED_HEADER);
const MORE: HeaderName = HeaderName::from_static(MORE_HEADER);

impl Attempt<'_> {
    /// Also returns a statement for the first row beyond the limit: a format without a trailer needs it for its head.
    pub(super) fn reading(
        &self,
        select: Select,
        read: &Read,
        next: Option<NextPage>,
        scope: &Scope<'_>,
    ) -> (Box<Reading>, Option<Statement>) {
        let limit = select.limit().filter(|_| select.reads_one_more());
        let limit = limit.map(|rows| RowLimit { rows, is_maximum: select.is_limited(), next, is_announced: false });
        let beyond = select.beyond().filter(|_| !read.format.has_trailer());
        let counts = read.count == Count::Exact && self.extent == BodyWanted::Whole;
        let reading = Reading {
            counting: counts.then(|| Counting {
                statement: sql::count(select.clone(), scope),
                before: read.window.after.is_none().then_some(select.offset()),
                limit: select.limit(),
            }),
            includes: select.includes().to_vec(),
            second_connection: None,
            layout: Arc::clone(select.layout()),
            statement: sql::select(select, scope),
            format: read.format,
            limit,
        };
        (Box::new(reading), beyond.map(|select| sql::select(select, scope)))
    }

    /// Checks the cursor in the option `after`. Returns what makes the next cursor, or `None` if pages have no cursors.
    pub(super) fn next_page(
        &self,
        select: &Select,
        read: &Read,
        scope: &Scope<'_>,
    ) -> Result<Option<NextPage>, Problem> {
        let Some(keyset) = select.keyset() else {
            return Ok(None);
        };
        let shared = sql::cursor_basis(select, scope);
        let cursors = self.context.app().cursors.of_read(self.context.caller().project(), &shared);
        read.window.after.as_deref().map(|token| cursors.check(token)).transpose()?;
        Ok(Some(NextPage { cells: keyset.cells().to_vec(), cursors }))
    }

    /// Reserves a second connection for the read. Must be called before the read leases its first connection.
    async fn second_connection(&self) -> Result<SecondConnection, DbError> {
        let Lessee { project, access, caller } = self.context.caller().lessee();
        let taken = self.context.app().streams.second_connections().take_as(project, caller, 1);
        let guard = tokio::time::timeout(self.context.app().pools.wait_timeout(), taken).await;
        let guard = guard.map_err(|_| DbError::Overloaded)?;
        Ok(SecondConnection {
            pools: Arc::clone(&self.context.app().pools),
            project: project.clone(),
            access,
            caller,
            guard,
        })
    }

    pub(super) async fn one(&self, reading: ReadingOne, effect: run::SessionEffect) -> Result<Response, Failure> {
        let format = reading.format;
        let (limit, progress) = (self.context.limit(), self.context.progress());
        let lease = self.context.lease(self.from).await?;
        let found = run::one(lease, reading, effect, limit, progress).await?;
        answer(found, format)
    }

    pub(super) async fn by_key(&self, read: &SelectByKey) -> Result<Response, Failure> {
        let progress = self.context.progress();
        let coalescer = &self.context.app().coalescer;
        let found = coalescer
            .select_by_key(self.context.caller().lessee(), self.from, read, self.context.limit(), progress)
            .await?;
        answer(found, read.format())
    }

    pub(super) async fn many(
        &self,
        mut reading: Box<Reading>,
        beyond: Option<Statement>,
        effect: run::SessionEffect,
    ) -> Result<Response, Failure> {
        let limit = self.context.limit();
        let progress = Arc::clone(self.context.progress());
        let format = reading.format;
        if reading.may_need_second_connection() {
            reading.second_connection = Some(Box::pin(self.second_connection()).await?);
        }
        let mut lease = self.context.lease(self.from).await?;
        let has_more = match beyond {
            Some(statement) => run::has_row(&mut lease, statement, effect, limit, &progress).await?,
            None => false,
        };
        let is_limited = has_more && reading.limit.as_ref().is_some_and(|limit| limit.is_maximum);
        if let Some(limit) = &mut reading.limit {
            limit.is_announced = has_more;
        }
        let chunks = run::many(lease, reading, effect, limit, progress);
        let answer = match self.extent {
            BodyWanted::Head => respond::chunks_head(chunks, format.content_type()).await?,
            BodyWanted::Whole => {
                let begin = || self.context.stream();
                respond::chunks(chunks, format, begin).await?
            }
        };
        let mut answer = respond::list(answer);
        let headers = [(MORE, has_more), (LIMITED, is_limited)].into_iter().filter(|(_, holds)| *holds);
        answer.headers_mut().extend(headers.map(|(name, _)| (name, HeaderValue::from_static("true"))));
        Ok(answer)
    }

    pub(super) async fn explain(
        &self,
        select: Select,
        scope: &Scope<'_>,
        effect: run::SessionEffect,
    ) -> Result<Response, Failure> {
        let statement = sql::select(select.clone(), scope);
        let explain = sql::explain(select, scope);
        let (limit, progress) = (self.context.limit(), self.context.progress());
        let plan = run::text(self.context.lease(self.from).await?, explain, effect, limit, progress).await?;
        let json = database::explain::plan(&plan).and_then(|plan| {
            let sql = statement.text();
            serde_json::to_vec(&Explanation { sql, plan })
        });
        let unreadable =
            |error: serde_json::Error| Problem::internal("MariaDB's plan can't be shown.", error.to_string());
        Ok(respond::payload(&json.map_err(unreadable)?))
    }
}

fn answer(found: Found, format: Format) -> Result<Response, Failure> {
    match found {
        Found::One(body) => Ok(respond::tagged(body, format.content_type())),
        Found::Nothing => Err(not_found().into()),
        Found::Several => Err(several().into()),
    }
}

pub(super) fn not_found() -> Problem {
    Problem::new(ErrorCode::RecordNotFound, "There is no record with this id.")
}

pub(super) fn several() -> Problem {
    Problem::new(
        ErrorCode::InvalidQueryOption,
        "The record has several partners in the option join, so it is not one row.",
    )
    .with_hint("Read the table with the option query instead: its rows are a list.")
}

#[derive(Serialize)]
struct Explanation<'a> {
    sql: &'a str,
    plan: Box<RawValue>,
}
