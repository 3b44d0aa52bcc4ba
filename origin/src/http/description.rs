//! `GET /api/v1/openapi.json`, `types.ts`, `types.py` and `types.rs`: describes all operations that the caller may use.

use super::listing;
use super::request_context::RequestContext;
use super::{held, respond};
use crate::database::schema_cache::SchemaAge;
use crate::query::catalog::Table;
use crate::query::catalog::relations::Relations;
use crate::query::interface::{Interface, TooLong, openapi, python, rust, typescript};
use axum::response::Response;
use shared::error::{ErrorCode, Problem};
use shared::ident::DatabaseName;
use shared::limits::API_DESCRIPTION_MAX_BYTES;
use shared::operation::ApiForm;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for reading the tables of all databases.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time for sending a description.
const SEND_TIMEOUT: Duration = Duration::from_secs(2 * 60);

type DescribedDatabase = (DatabaseName, Arc<[Arc<Table>]>, Arc<Relations>);

/// Responds with a description of the API. The number of concurrent descriptions is limited, since each is in memory.
pub(super) async fn run(
    context: &RequestContext,
    form: ApiForm,
    database: Option<DatabaseName>,
) -> Result<Response, Problem> {
    let (app, caller) = (context.app(), context.caller());
    let slot = app.descriptions.take_as(caller.project(), caller.key_id(), 1);
    let Ok(slot) = tokio::time::timeout(app.pools.wait_timeout(), slot).await else {
        return Err(Problem::new(ErrorCode::Overloaded, "Too many descriptions of the API are being written already."));
    };
    let parts = tokio::time::timeout(READ_TIMEOUT, described(context, database)).await.map_err(|_| {
        Problem::new(ErrorCode::QueryTimeout, "MariaDB took too long to describe all databases.")
            .with_hint("Add ?database= to describe one database.")
    })??;
    let owner = caller.clone();
    // Describing thousands of tables would block an async thread for other requests.
    let text = tokio::task::spawn_blocking(move || {
        let mut interface = Interface::new(owner.grant().clone(), owner.media(), owner.sql_account());
        for (database, tables, relations) in parts {
            interface.add(database, &tables, &relations, owner.rights());
        }
        match form {
            ApiForm::OpenApi => openapi::document(&interface),
            ApiForm::TypeScript => typescript::types(&interface).map(String::into_bytes).map_err(TooLong::into_problem),
            ApiForm::Python => python::types(&interface).map(String::into_bytes).map_err(TooLong::into_problem),
            ApiForm::Rust => rust::types(&interface).map(String::into_bytes).map_err(TooLong::into_problem),
        }
    });
    let text = text.await.map_err(|error| {
        Problem::internal("The description can't be written.", format!("its task failed: {error}"))
    })??;
    let mut response = respond::tagged(text, form.content_type());
    let (limits, guard) = context.stream_file();
    held::send_in_pieces(&mut response, limits.within(SEND_TIMEOUT, slot), guard).await?;
    Ok(response)
}

/// The number of bytes that the tables of further databases may have.
struct Budget(u64);

impl Budget {
    fn take(&mut self, bytes: u64) -> Result<(), TooLong> {
        self.0 = self.0.checked_sub(bytes).ok_or(TooLong)?;
        Ok(())
    }
}

/// Reads the tables that the caller may see, and holds them all in memory until the description is written.
async fn described(
    context: &RequestContext,
    database: Option<DatabaseName>,
) -> Result<Vec<DescribedDatabase>, Problem> {
    let (app, caller) = (context.app(), context.caller());
    let (mut parts, mut budget) = (Vec::new(), Budget(API_DESCRIPTION_MAX_BYTES as u64));
    for database in listing::databases(context, database).await? {
        let tables = app.schema_cache.tables(caller.project(), &database).await?;
        let visible = tables.iter().filter(|table| caller.rights().of(table).is_ok());
        budget.take(visible.map(|table| table.memory_bytes()).sum()).map_err(TooLong::into_problem)?;
        let relations = app.schema_cache.relations(caller.project(), &database, SchemaAge::Cached).await?;
        parts.push((database, tables, relations));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_all_databases_count_together() {
        let mut budget = Budget(100);
        assert!([60, 40, 0].into_iter().all(|bytes| budget.take(bytes).is_ok()));
        assert!(budget.take(1).is_err());
    }
}
