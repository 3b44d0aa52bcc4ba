//! `/api/v1`: who calls, what for, may they; then the operation's own room.

use super::record_log::RequestRecord;
use super::{body, records, sql};
use crate::app::App;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use shared::admission;
use shared::error::Problem;
use shared::operation::{Operation, RequestHead};
use std::sync::Arc;

pub(super) async fn handle(
    app: &Arc<App>,
    request: Request,
    record: &mut RequestRecord,
) -> Result<Response, Problem> {
    let (parts, mut content) = request.into_parts();
    let outcome = answer(app, &parts, &mut content, record).await;
    if outcome.is_err() {
        body::drain(content, &parts.headers).await;
    }
    outcome
}

async fn answer(
    app: &Arc<App>,
    parts: &Parts,
    content: &mut Body,
    record: &mut RequestRecord,
) -> Result<Response, Problem> {
    let knock = admission::knock(&head(parts))?;
    let authorization = header(parts, "authorization");
    let principal = app.keys.authenticate(authorization).await?;
    record.caller(Arc::clone(&principal));
    let pending = knock.admit(&principal)?;
    record.action(pending.action());
    let bytes = match pending.wants_body() {
        true => body::read(content, &parts.headers, app.bounds).await?,
        false => Bytes::new(),
    };
    match pending.finish(&bytes)? {
        Operation::Sql(call) => sql::run(app, &principal, call, record).await,
        Operation::Describe(table) => records::describe(app, &principal, &table).await,
        operation => records::run(app, &principal, operation, record).await,
    }
}

fn head(parts: &Parts) -> RequestHead<'_> {
    RequestHead {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        content_type: header(parts, "content-type"),
        idempotency_key: header(parts, "idempotency-key"),
    }
}

/// A header's text. One that is no text at all reads as empty, which none of ours may be.
fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts
        .headers
        .get(name)
        .map(|value| value.to_str().unwrap_or_default())
}
