//! The flow of every request to `/api/…` and `/mcp` that the router passes on: `admission::admit`, then the body, then
//! the operation's handler, then compression, then the check of `If-None-Match`. Operations on records go through
//! `records::run`: `Tables::load`, `plan::build`, `sql`, `database` (modules `run`, `coalesce`, `transaction`),
//! `respond`.

use super::body::{self, CountedBody};
use super::records::BodyWanted;
use super::request_context::RequestContext;
use super::respond::{self, Failed};
use super::{batch, compression, description, listing, management, mcp, media, records, sql, tus};
use crate::service_state::ServiceState;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Version};
use axum::response::Response;
use shared::admission;
use shared::error::Problem;
use shared::operation::{BodyUse, Operation};
use shared::policy::Action;
use shared::request::RequestHead;
use std::sync::Arc;

pub(super) async fn answer(
    State(app): State<Arc<ServiceState>>,
    Extension(record): Extension<Arc<RequestContext>>,
    request: Request,
) -> Result<Response, Failed> {
    let (parts, mut content) = request.into_parts();
    let outcome = run(&app, &parts, &mut content, &record).await;
    let outcome = outcome.map_err(|problem| record.hide_from_role(problem));
    if outcome.is_err() {
        body::drain(content, &parts.headers).await;
    }
    outcome.map_err(Failed::from)
}

async fn run(
    app: &Arc<ServiceState>,
    parts: &Parts,
    content: &mut Body,
    record: &Arc<RequestContext>,
) -> Result<Response, Problem> {
    let head = head(parts);
    let admitted = admission::admit(&head, async |action| {
        record.log().action(action);
        let caller = match action {
            Some(Action::CreateKey) => Box::pin(app.keys.authenticate_creator(head.authorization)).await?,
            _ => app.keys.authenticate(head.authorization).await?,
        };
        record.admit_caller(&caller)?;
        Ok(caller)
    });
    let (caller, pending) = admitted.await?;
    record.read_after(&parts.headers)?;
    let body = match pending.body() {
        BodyUse::Json => {
            let (shares, project) = (&app.bodies, caller.project());
            body::read(content, &parts.headers, app.bounds, shares, project).await?
        }
        BodyUse::None | BodyUse::Upload | BodyUse::Bytes => CountedBody::default(),
    };
    let operation = pending.finish(body.bytes())?;
    let extent = if parts.method == Method::HEAD { BodyWanted::Head } else { BodyWanted::Whole };
    let response = match operation {
        // Boxed: otherwise the future of every record operation would be as large as the largest of these.
        Operation::Sql(call) => Box::pin(sql::run(app, &caller, call, record)).await,
        Operation::Batch(batch) => Box::pin(batch::run(app, &caller, &batch, record)).await,
        Operation::Mcp => Box::pin(mcp::run(app, &caller, parts, &body, record)).await,
        Operation::Media(call) => Box::pin(media::run(app, &caller, call, parts, content, record.progress())).await,
        Operation::Tus(call) => {
            let running = Box::pin(tus::run(app, &caller, call, parts, content));
            record.progress().media("media.tus", running).await
        }
        Operation::DescribeApi(form, database) => {
            Box::pin(description::run(app, &caller, form, database, record)).await
        }
        Operation::Manage(call) => Box::pin(management::run(app, &caller, call, body.bytes(), record)).await,
        Operation::List(listing) => Box::pin(listing::run(app, &caller, listing, extent, record)).await,
        Operation::Describe(table) => Box::pin(records::describe(app, &caller, &table)).await,
        Operation::Records(operation) => records::run(app, &caller, &operation, extent, record).await,
    };
    let response = compression::compress(parts, response?).await;
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
