//! Whether the service lives, whether it can work, and what it counted.

use super::record_log::RequestRecord;
use super::respond;
use crate::app::App;
use axum::http::Method;
use axum::response::Response;
use shared::error::{ErrorCode, Problem};

/// `GET /healthz`: the process answers.
pub(super) fn alive(method: &Method, record: &mut RequestRecord) -> Result<Response, Problem> {
    record.route("/healthz");
    readable(method)?;
    Ok(respond::payload(br#"{"status":"ok"}"#))
}

/// `GET /readyz`: MariaDB and the store of media answer too.
pub(super) async fn ready(
    app: &App,
    method: &Method,
    record: &mut RequestRecord,
) -> Result<Response, Problem> {
    record.route("/readyz");
    readable(method)?;
    let (database, storage) = tokio::join!(app.is_ready(), app.stored.answers());
    if !database {
        return Err(Problem::new(
            ErrorCode::DatabaseUnavailable,
            "The database does not answer.",
        ));
    }
    if !storage {
        return Err(Problem::new(
            ErrorCode::StorageUnavailable,
            "The storage of files does not answer.",
        ));
    }
    Ok(respond::payload(
        br#"{"status":"ready","database":"ok","storage":"ok"}"#,
    ))
}

/// `GET /metrics`: for Prometheus.
pub(super) async fn metrics(
    app: &App,
    method: &Method,
    record: &mut RequestRecord,
) -> Result<Response, Problem> {
    record.route("/metrics");
    readable(method)?;
    Ok(respond::text(app.metrics.text(app.readings().await)))
}

fn readable(method: &Method) -> Result<(), Problem> {
    match method.as_str() {
        "GET" | "HEAD" => Ok(()),
        _ => Err(Problem::new(
            ErrorCode::MethodNotAllowed,
            "Only GET and HEAD are allowed here.",
        )
        .with_allow("GET, HEAD")),
    }
}
