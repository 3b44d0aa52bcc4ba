//! Liveness, readiness and metrics.

use super::request_context::RequestContext;
use super::respond::{self, Failed};
use crate::service_state::ServiceState;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use shared::error::{ErrorCode, Problem};
use std::sync::Arc;

/// The path is also the route's name in logs and metrics.
pub(super) const HEALTHZ: &str = "/healthz";
pub(super) const READYZ: &str = "/readyz";
pub(super) const METRICS: &str = "/metrics";

pub(super) async fn alive(Extension(record): Extension<Arc<RequestContext>>) -> Response {
    record.log().route(HEALTHZ);
    respond::payload(br#"{"status":"ok"}"#)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    status: &'static str,
    database: &'static str,
    storage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_host: Option<String>,
}

pub(super) async fn ready(
    State(app): State<Arc<ServiceState>>,
    Extension(record): Extension<Arc<RequestContext>>,
) -> Result<Response, Failed> {
    record.log().route(READYZ);
    let (database, storage) = tokio::join!(app.is_ready(), app.stored.answers());
    if !database {
        let message = "The database does not answer.";
        return Err(Problem::new(ErrorCode::DatabaseUnavailable, message).into());
    }
    if !storage {
        let message = "The storage of files does not answer.";
        return Err(Problem::new(ErrorCode::StorageUnavailable, message).into());
    }
    let gauge = app.hosts();
    let ready = Ready {
        status: "ready",
        database: "ok",
        storage: "ok",
        database_host: gauge.serving.filter(|_| gauge.count > 1),
    };
    let json = serde_json::to_vec(&ready);
    let json = json.map_err(|error| Problem::internal("The readiness can't be shown.", error.to_string()))?;
    Ok(respond::payload(&json))
}

pub(super) async fn metrics(
    State(app): State<Arc<ServiceState>>,
    Extension(record): Extension<Arc<RequestContext>>,
) -> Response {
    record.log().route(METRICS);
    respond::text(app.metrics.text(&app.readings().await))
}

pub(super) async fn only_read(Extension(record): Extension<Arc<RequestContext>>, uri: Uri) -> Failed {
    let here = [HEALTHZ, READYZ, METRICS].into_iter().find(|path| *path == uri.path());
    record.log().route(here.unwrap_or("none"));
    let message = "Only GET and HEAD are allowed here.";
    Problem::new(ErrorCode::MethodNotAllowed, message).with_allow("GET, HEAD").into()
}
