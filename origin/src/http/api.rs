//! `/api/v1`: who calls, what for, may they; then the operation's own room.

use super::body::{self, Held};
use super::record_log::RequestRecord;
use super::records::{Extent, Terms};
use super::{batch, header, media, records, sql, text, tus};
use crate::app::App;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, Version};
use axum::response::Response;
use shared::admission;
use shared::error::Problem;
use shared::operation::tus::TusHeaders;
use shared::operation::{BodyUse, Operation, RequestHead};
use shared::policy;
use std::borrow::Cow;
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
    let texts = Texts::of(parts);
    let knock = admission::knock(&texts.head(parts))?;
    if let Some(action) = knock.action() {
        record.action(action);
    }
    let authorization = texts.authorization.as_deref();
    let principal = app.keys.authenticate(authorization).await?;
    record.caller(Arc::clone(&principal));
    record.count(&principal)?;
    let pending = knock.admit(&principal)?;
    let held = match pending.body() {
        BodyUse::Json => {
            let (shares, project) = (&app.bodies, principal.project());
            body::read(content, &parts.headers, app.bounds, shares, project).await?
        }
        BodyUse::None | BodyUse::Upload | BodyUse::Bytes => Held::default(),
    };
    let operation = pending.finish(held.bytes())?;
    if let Some(action) = operation.further_action() {
        policy::permit(action, principal.access())?;
    }
    let terms = Terms {
        extent: if parts.method == Method::HEAD {
            Extent::Head
        } else {
            Extent::Whole
        },
        if_none_match: texts.if_none_match.as_deref(),
    };
    match operation {
        // Boxed, so that the record's way does not carry room for theirs.
        Operation::Sql(call) => Box::pin(sql::run(app, &principal, call, record)).await,
        Operation::Batch(batch) => Box::pin(batch::run(app, &principal, &batch, record)).await,
        Operation::Media(call) => Box::pin(media::run(app, &principal, call, parts, content)).await,
        Operation::Tus(call) => Box::pin(tus::run(app, &principal, call, parts, content)).await,
        Operation::Describe(table) => Box::pin(records::describe(app, &principal, &table)).await,
        operation => records::run(app, &principal, operation, terms, record).await,
    }
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The headers that decide.
struct Texts<'a> {
    authorization: Option<Cow<'a, str>>,
    content_type: Option<Cow<'a, str>>,
    content_encoding: Option<Cow<'a, str>>,
    accept: Option<Cow<'a, str>>,
    idempotency_key: Option<Cow<'a, str>>,
    if_match: Option<Cow<'a, str>>,
    if_none_match: Option<Cow<'a, str>>,
    tus: Option<Box<TusHeaders>>,
}

impl<'a> Texts<'a> {
    fn of(parts: &'a Parts) -> Self {
        let mut texts = Self {
            authorization: None,
            content_type: None,
            content_encoding: None,
            accept: None,
            idempotency_key: None,
            if_match: None,
            if_none_match: None,
            tus: TusHeaders::read(parts.uri.path(), |name| {
                header(&parts.headers, name).map(Cow::into_owned)
            }),
        };
        // In one pass: a request has few headers, and looking for one takes as long as passing several.
        for (name, value) in &parts.headers {
            let place = match name {
                name if name == AUTHORIZATION => &mut texts.authorization,
                name if name == CONTENT_TYPE => &mut texts.content_type,
                name if name == CONTENT_ENCODING => &mut texts.content_encoding,
                // A caller of HTTP/1.0 sees that an answer was cut only if it is JSON.
                name if name == ACCEPT && parts.version > Version::HTTP_10 => &mut texts.accept,
                name if name == IDEMPOTENCY_KEY => &mut texts.idempotency_key,
                name if name == IF_MATCH => &mut texts.if_match,
                name if name == IF_NONE_MATCH => &mut texts.if_none_match,
                _ => continue,
            };
            *place = Some(match place.take() {
                None => text(value),
                Some(before) => Cow::Owned([&*before, &*text(value)].join(", ")),
            });
        }
        texts
    }

    fn head(&'a self, parts: &'a Parts) -> RequestHead<'a> {
        RequestHead {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query(),
            content_type: self.content_type.as_deref(),
            content_encoding: self.content_encoding.as_deref(),
            accept: self.accept.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            if_match: self.if_match.as_deref(),
            if_none_match: self.if_none_match.as_deref(),
            tus: self.tus.as_deref(),
        }
    }
}
