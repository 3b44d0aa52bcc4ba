//! Liveness, readiness and metrics.

use super::request_log::RequestRecord;
use super::respond::{self, Failed};
use crate::app::App;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use shared::error::{ErrorCode, Problem};
use std::sync::Arc;

/// The path of the liveness check, which is also the route's name in logs and metrics.
pub(super) const HEALTHZ: &str = "/healthz";
pub(super) const READYZ: &str = "/readyz";
pub(super) const METRICS: &str = "/metrics";

/// Answers `GET /healthz` with 200 whenever the process runs.
pub(super) async fn alive(Extension(record): Extension<Arc<RequestRecord>>) -> Response {
    record.log().route(HEALTHZ);
    respond::payload(br#"{"status":"ok"}"#)
}

/// Answers `GET /readyz` with 200 if MariaDB and the media store answer.
pub(super) async fn ready(
    State(app): State<Arc<App>>,
    Extension(record): Extension<Arc<RequestRecord>>,
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
    Ok(respond::payload(br#"{"status":"ready","database":"ok","storage":"ok"}"#))
}

pub(super) async fn metrics(State(app): State<Arc<App>>, Extension(record): Extension<Arc<RequestRecord>>) -> Response {
    record.log().route(METRICS);
    respond::text(app.metrics.text(app.readings().await))
}

/// Answers 405 to methods other than `GET` and `HEAD` on the routes of liveness, readiness and metrics.
pub(super) async fn only_read(Extension(record): Extension<Arc<RequestRecord>>, uri: Uri) -> Failed {
    let here = [HEALTHZ, READYZ, METRICS].into_iter().find(|path| *path == uri.path());
    record.log().route(here.unwrap_or("none"));
    let message = "Only GET and HEAD are allowed here.";
    Problem::new(ErrorCode::MethodNotAllowed, message).with_allow("GET, HEAD").into()
}
