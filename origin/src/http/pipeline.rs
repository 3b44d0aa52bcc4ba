//! The flow of a request: `route` by the path; for `/api/…` and `/mcp` then `admission::admit`, the body, the
//! operation's handler, the memory of the response, compression, `If-None-Match`. Operations on records go through
//! `records::run`: `Tables::load`, `plan::build`, `sql`, `database` (`run`, `coalesce`, `transaction`), `respond`.

use super::body::{self, CountedBody};
use super::records::BodyWanted;
use super::request_context::{RequestContext, admit_caller, count_operations};
use super::request_metrics::RequestMetrics;
use super::respond;
use super::{
    batch, changes, compression, description, files, health, held, listing, management, mcp, media, pages, records,
    schema, sql, tus,
};
use crate::config::ConsoleConfig;
use crate::service_state::ServiceState;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Version, header};
use axum::response::Response;
use shared::admission;
use shared::error::{ErrorCode, Problem};
use shared::media::FilePath;
use shared::operation::route::{self, MCP};
use shared::operation::{BodyUse, Operation};
use shared::policy::Action;
use shared::request::RequestHead;
use std::sync::Arc;

/// Chooses the handler by the path. Paths below `/api/` are parsed by `shared::operation`, as at the edge.
pub(super) async fn route(
    app: &Arc<ServiceState>,
    metrics: &Arc<RequestMetrics>,
    request: Request,
) -> Result<Response, Problem> {
    let path = request.uri().path();
    if path.strip_prefix("/api/").is_some_and(|rest| !rest.is_empty()) || path == MCP {
        return answer(app, metrics, request).await;
    }
    if path.starts_with(FilePath::PREFIX) {
        return Box::pin(files::answer(app, metrics, request)).await;
    }
    let (parts, content) = request.into_parts();
    let outcome = page(app, metrics, &parts).await;
    // Closing the connection with an unread body could discard the response.
    body::drain(content, &parts);
    outcome
}

/// Responds with a page or a health check.
async fn page(app: &Arc<ServiceState>, metrics: &RequestMetrics, parts: &Parts) -> Result<Response, Problem> {
    let (method, path, headers) = (&parts.method, parts.uri.path(), &parts.headers);
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_served = |_: &&str| app.console == ConsoleConfig::Served || !path.starts_with("/console");
    let page = route::page(path).filter(is_served);
    let health = [health::HEALTHZ, health::READYZ, health::METRICS].into_iter().find(|known| *known == path);
    let known = match page.or(health) {
        None if route::is_home(method.as_str(), path, accept) => "/",
        None => return Err(route::not_found(path)),
        Some(_) if !matches!(*method, Method::GET | Method::HEAD) => {
            metrics.log().route(health.unwrap_or("none"));
            let message = "Only GET and HEAD are allowed here.";
            return Err(Problem::new(ErrorCode::MethodNotAllowed, message).with_allow("GET, HEAD"));
        }
        Some(known) => known,
    };
    metrics.log().route(known);
    match known {
        health::HEALTHZ => Ok(health::alive()),
        health::READYZ => Box::pin(health::ready(app)).await,
        health::METRICS => Ok(Box::pin(health::metrics(app)).await),
        _ => pages::file(path, app.console, headers, || app.keys.sign_in_issuers()),
    }
}

/// Handles `/api/…` and `/mcp`.
pub(super) async fn answer(
    app: &Arc<ServiceState>,
    metrics: &Arc<RequestMetrics>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, mut content) = request.into_parts();
    let outcome = run(app, &parts, &mut content, metrics).await;
    let outcome = outcome.map_err(|problem| metrics.hide_from_role(problem));
    if outcome.is_err() {
        body::drain(content, &parts);
    }
    outcome
}

async fn run(
    app: &Arc<ServiceState>,
    parts: &Parts,
    content: &mut Body,
    metrics: &Arc<RequestMetrics>,
) -> Result<Response, Problem> {
    let head = head(parts);
    let admitted = admission::admit(&head, async |action| {
        metrics.log().action(action);
        let caller = match action {
            Some(Action::CreateKey) => Box::pin(app.keys.authenticate_creator(head.authorization)).await?,
            _ => app.keys.authenticate(head.authorization).await?,
        };
        admit_caller(metrics, &caller)?;
        Ok(caller)
    });
    let (caller, pending) = admitted.await?;
    let context = &RequestContext::new(metrics, caller, &parts.headers)?;
    let caller = context.caller();
    let body = match pending.body() {
        BodyUse::Json => {
            let holder = body::Holder { shares: &app.bodies, project: caller.project(), caller: caller.key_id() };
            body::read(content, &parts.headers, app.bounds, holder).await?
        }
        BodyUse::None | BodyUse::Upload | BodyUse::Bytes => CountedBody::default(),
    };
    let operation = pending.finish(body.bytes())?;
    let extent = if parts.method == Method::HEAD { BodyWanted::Head } else { BodyWanted::Whole };
    let response = match operation {
        // Boxed: otherwise the future of every operation would be as large as the largest of these.
        Operation::Sql(call) => Box::pin(sql::run(context, call)).await,
        Operation::ChangeSchema(run) => Box::pin(schema::change(context, run, body.bytes())).await,
        Operation::Definition(table) => Box::pin(schema::definition(context, &table)).await,
        Operation::Batch(batch) => {
            count_operations(metrics, caller, batch.steps().len());
            Box::pin(batch::run(context, &batch)).await
        }
        Operation::Changes(call) => Box::pin(changes::run(context, call)).await,
        Operation::Mcp => Box::pin(mcp::run(app, caller, parts, &body, metrics)).await,
        Operation::Media(call) => Box::pin(media::run(app, caller, call, parts, content, context.progress())).await,
        Operation::Tus(call) => {
            let running = Box::pin(tus::run(app, caller, call, parts, content));
            context.progress().media("media.tus", running).await
        }
        Operation::DescribeApi(form, database) => Box::pin(description::run(context, form, database)).await,
        Operation::Manage(call) => Box::pin(management::run(app, caller, call, body.bytes(), context)).await,
        Operation::List(listing) => Box::pin(listing::run(context, listing, extent)).await,
        Operation::Describe(table) => Box::pin(records::describe(app, caller, &table)).await,
        Operation::Records(operation) => Box::pin(records::run(context, &operation, extent)).await,
    };
    let response = held::count(context, parts, response?).await?;
    let response = compression::compress(parts, response).await;
    Ok(respond::unless_known(response, head.if_none_match))
}

fn head(parts: &Parts) -> RequestHead<'_> {
    let uri = &parts.uri;
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut head = RequestHead::read(parts.method.as_str(), uri.path(), uri.query(), headers);
    if parts.version <= Version::HTTP_10 {
        // A streamed HTTP/1.0 response has neither a length nor chunks: only in JSON can its client notice a
        // truncation.
        head.accept = None;
    }
    head
}
