//! `GET /api/v1/crud` and `/api/v1/crud/{db}`: lists the databases, tables and views that the caller may use.
//! `GET /api/v1/schema/{db}`: lists the code and views of a database.

use super::records::{self, BodyWanted, Failure};
use super::request_context::RequestContext;
use super::respond;
use crate::database::error::no_database;
use crate::database::retry::{Repeatable, retry_once};
use crate::database::{ReadFrom, listing, table_definition};
use crate::query::plan::access::Rights;
use crate::query::role::TableRule;
use axum::response::Response;
use serde::Serialize;
use shared::error::Problem;
use shared::format::Format;
use shared::ident::{DatabaseName, TableName};
use shared::operation::Listing;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn run(context: &RequestContext, listing: Listing, extent: BodyWanted) -> Result<Response, Problem> {
    let list = Lister { context };
    let outcome = list.once(&listing, extent).await;
    let outcome = retry_once(Repeatable::Read, outcome, |_, _| list.once(&listing, extent)).await;
    outcome.map_err(Failure::into_problem)
}

pub(super) async fn databases(
    context: &RequestContext,
    only: Option<DatabaseName>,
) -> Result<BTreeSet<DatabaseName>, Problem> {
    let list = Lister { context };
    let found = match only {
        None => list.names().await,
        Some(database) => list.check(&database).await.map(|()| BTreeSet::from([database])),
    };
    found.map_err(Failure::into_problem)
}

struct Lister<'a> {
    context: &'a RequestContext,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

/// What the caller may do with a table. `None`: nothing; `Some(None)`: all that its key allows; `Some(Some(rule))`:
/// what the rule of its role allows.
type Allowed<'a> = Option<Option<&'a TableRule>>;

impl Lister<'_> {
    async fn once(&self, listing: &Listing, extent: BodyWanted) -> Result<Response, Failure> {
        match listing {
            Listing::Databases => self.databases().await,
            Listing::Tables(database) => self.tables(database, extent).await,
            Listing::Code(database) => self.code(database).await,
        }
    }

    /// Returns the names of the databases; for a caller with a role, only those with a table that the role may use.
    async fn names(&self) -> Result<BTreeSet<DatabaseName>, Failure> {
        let (lease, limit) = (self.context.lease(ReadFrom::Primary).await?, self.context.limit());
        let rights = self.context.caller().rights();
        Ok(match rights.role() {
            None => listing::databases(lease, limit).await?,
            Some(_) => {
                let is_visible = |database: &_, table: &_| allowed(rights, database, table).is_some();
                listing::databases_with(lease, is_visible, limit).await?
            }
        })
    }

    async fn databases(&self) -> Result<Response, Failure> {
        let found = self.names().await?;
        let names: Vec<_> = found.iter().map(|name| Named { name: name.as_str() }).collect();
        payload(&names)
    }

    async fn code(&self, database: &DatabaseName) -> Result<Response, Failure> {
        self.check(database).await?;
        let mut lease = self.context.lease(ReadFrom::Primary).await?;
        payload(&table_definition::objects(&mut lease, database, self.context.limit()).await?)
    }

    async fn tables(&self, database: &DatabaseName, extent: BodyWanted) -> Result<Response, Failure> {
        self.check(database).await?;
        let (rights, grant) = (self.context.caller().rights().clone(), self.context.caller().grant().clone());
        let owner = database.clone();
        let methods = move |table: &TableName, traits| {
            let rule = allowed(&rights, &owner, table)?;
            Some(records::methods(&grant, traits, |action| rule.is_none_or(|rule| rule.allows(action))))
        };
        let progress = Arc::clone(self.context.progress());
        progress.begin("SHOW TABLES", None);
        let chunks = listing::tables(
            self.context.lease(ReadFrom::Primary).await?,
            database.clone(),
            methods,
            self.context.limit(),
            progress,
        );
        match extent {
            BodyWanted::Head => Ok(respond::chunks_head(chunks, Format::Envelope.content_type()).await?),
            BodyWanted::Whole => respond::chunks(chunks, Format::Envelope, || self.context.stream()).await,
        }
    }

    async fn check(&self, database: &DatabaseName) -> Result<(), Failure> {
        let role = self.context.caller().rights().role();
        let is_hidden = database.is_system() || role.is_some_and(|role| !role.role().knows_database(database));
        if is_hidden {
            return Err(no_database(database, &[]).into());
        }
        let limit = self.context.limit();
        if listing::has_database(&mut self.context.lease(ReadFrom::Primary).await?, database, limit).await? {
            return Ok(());
        }
        let others: Vec<_> = match role {
            Some(_) => Vec::new(),
            None => {
                let names = listing::databases(self.context.lease(ReadFrom::Primary).await?, limit).await?;
                names.iter().map(|name| name.as_str().to_owned()).collect()
            }
        };
        Err(no_database(database, &others).into())
    }
}

fn payload(list: &impl Serialize) -> Result<Response, Failure> {
    let json =
        serde_json::to_vec(list).map_err(|error| Problem::internal("The list can't be shown.", error.to_string()))?;
    Ok(respond::payload(&json))
}

fn allowed<'a>(rights: &'a Rights, database: &DatabaseName, table: &TableName) -> Allowed<'a> {
    match rights.role() {
        None => Some(None),
        Some(role) => role.role().rule(database, table).map(Some),
    }
}
