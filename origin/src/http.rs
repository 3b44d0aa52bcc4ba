//! HTTP: from a connection to a handler and back. A handler is parse, plan, run, respond.

mod api;
pub mod body;
mod health;
mod record_log;
mod records;
mod respond;
pub mod server;
mod sql;

use crate::app::App;
use axum::extract::{Request, State};
use axum::response::Response;
use record_log::RequestRecord;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use std::sync::Arc;

/// The service.
pub fn router(app: Arc<App>) -> axum::Router {
    axum::Router::new().fallback(entry).with_state(app)
}

/// Every request passes here: it gets its id, its answer its headers, the log its line.
async fn entry(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut record = RequestRecord::begin(Arc::clone(&app), &request);
    let origin = request.headers().get("origin").cloned();
    let outcome = match respond::preflight(&app.cors, &request) {
        Some(preflight) => Ok(preflight),
        None => route(&app, request, &mut record).await,
    };
    let response = outcome.unwrap_or_else(|problem| respond::problem(&problem, record.id()));
    record.finish(respond::with_headers(response, &app.cors, origin.as_ref()))
}

async fn route(
    app: &Arc<App>,
    request: Request,
    record: &mut RequestRecord,
) -> Result<Response, Problem> {
    let method = request.method().clone();
    match request.uri().path() {
        "/healthz" => health::alive(&method, record),
        "/readyz" => health::ready(app, &method, record).await,
        "/metrics" => health::metrics(app, &method, record),
        path if path.starts_with("/api/") => api::handle(app, request, record).await,
        path => Err(Problem::new(
            ErrorCode::RouteNotFound,
            format!("There is nothing at {}.", shown(path)),
        )
        .with_hint("Records are at /api/v1/crud/{database}/{table}, SQL is at /api/v1/sql.")),
    }
}
