//! `GET /api/v1/openapi.json`, `types.ts`, `types.py` and `types.rs`: describes all operations that the caller may use.

use super::listing;
use super::request_context::RequestContext;
use super::respond;
use crate::database::schema_cache::SchemaAge;
use crate::query::interface::{Interface, TooLong, openapi, python, rust, typescript};
use axum::response::Response;
use bytes::Bytes;
use shared::error::{ErrorCode, Problem};
use shared::ident::DatabaseName;
use shared::operation::ApiForm;

/// The number of concurrent descriptions is limited, because each is held in memory.
pub(super) async fn run(
    context: &RequestContext,
    form: ApiForm,
    database: Option<DatabaseName>,
) -> Result<Response, Problem> {
    let (app, caller) = (context.app(), context.caller());
    let slot = app.descriptions.take(caller.project(), 1);
    let Ok(slot) = tokio::time::timeout(app.pools.wait_timeout(), slot).await else {
        return Err(Problem::new(ErrorCode::Overloaded, "Too many descriptions of the API are being written already."));
    };
    let mut parts = Vec::new();
    for database in listing::databases(context, database).await? {
        let tables = app.schema_cache.tables(caller.project(), &database).await?;
        let relations = app.schema_cache.relations(caller.project(), &database, SchemaAge::Cached).await?;
        parts.push((database, tables, relations));
    }
    let owner = caller.clone();
    // Describing thousands of tables would block an async thread for other requests.
    let text = tokio::task::spawn_blocking(move || {
        let mut interface = Interface::new(owner.grant().clone(), owner.media());
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
    Ok(respond::tagged(Bytes::from_owner(Kept { text, _slot: slot }), form.content_type()))
}

struct Kept {
    text: Vec<u8>,
    _slot: crate::project_quota::Guard,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
