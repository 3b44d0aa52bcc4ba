//! Liveness, readiness and metrics.

use super::respond;
use crate::service_state::ServiceState;
use axum::response::Response;
use serde::Serialize;
use shared::error::{ErrorCode, Problem};

/// The path of the liveness check, and its name in logs and metrics.
pub(super) const HEALTHZ: &str = "/healthz";
pub(super) const READYZ: &str = "/readyz";
pub(super) const METRICS: &str = "/metrics";

pub(super) fn alive() -> Response {
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

pub(super) async fn ready(app: &ServiceState) -> Result<Response, Problem> {
    let (database, storage) = tokio::join!(app.is_ready(), app.stored.answers());
    if !database {
        let message = "The database does not answer.";
        return Err(Problem::new(ErrorCode::DatabaseUnavailable, message));
    }
    if !storage {
        let message = "The storage of files does not answer.";
        return Err(Problem::new(ErrorCode::StorageUnavailable, message));
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

pub(super) async fn metrics(app: &ServiceState) -> Response {
    respond::text(app.metrics.text(&app.readings().await))
}
