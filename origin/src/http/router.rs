//! The origin's routes. Paths below `/api/` are parsed by `shared::operation`, as at the edge, since axum's router
//! can't tell `a,b` from `a%2Cb` in an id, or `POST …/query` from a record whose key is "query".

use super::request_context::RequestContext;
use super::respond::Failed;
use super::{files, health, pages, pipeline};
use crate::config::ConsoleConfig;
use crate::service_state::ServiceState;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use axum::routing::{any, get};
use axum::{Extension, Router};
use shared::operation::route::{self, MCP};
use std::sync::Arc;

pub(super) fn router(app: Arc<ServiceState>) -> Router {
    let console = match app.console {
        ConsoleConfig::Served => pages::console(),
        ConsoleConfig::Off => Router::new(),
    };
    Router::new()
        .route("/api/{*path}", any(pipeline::answer))
        .route(MCP, any(pipeline::answer))
        .route("/media/", any(files::answer))
        .route("/media/{*path}", any(files::answer))
        .route("/docs", get(pages::answer))
        .route("/docs/", get(pages::answer))
        .route("/docs/{*path}", get(pages::answer))
        .merge(console)
        .route(health::HEALTHZ, get(health::alive))
        .route(health::READYZ, get(health::ready))
        .route(health::METRICS, get(health::metrics))
        .method_not_allowed_fallback(health::only_read)
        .fallback(home_or_nothing)
        .with_state(app)
}

async fn home_or_nothing(
    record: Extension<Arc<RequestContext>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Failed> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if route::is_home(method.as_str(), uri.path(), accept) {
        return pages::answer(record, uri, headers).await;
    }
    Err(route::not_found(uri.path()).into())
}
