//! `/api/v1/media`: uploads, lists, describes, signs and deletes media. `files` serves the bytes.

pub(super) mod cache_purge;
pub(super) mod receive;

use super::links::links;
use super::respond;
use crate::clock::now;
use crate::database::media::{ChangeableFiles, MediaRow, ReadableFiles};
use crate::database::run::StatementStats;
use crate::media::intake::ClaimedFile;
use crate::media::library::Publication;
pub(super) use crate::media::payload;
use crate::media::url::Links;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use payload::{Brief, Signed, Urls, Whole};
use receive::ReceiveLimits;
use shared::envelope::{self, Trailer};
use shared::error::{ErrorCode, Problem};
use shared::limits::MEDIA_LIST_MAX_ITEMS;
use shared::operation::media::{MediaCall, MediaId, MediaList, SignedFor};
use shared::policy::role_forbids;
use shared::upload::{Existing, UploadShape};
use std::sync::Arc;

pub(super) async fn run(
    app: &Arc<ServiceState>,
    caller: &Caller,
    call: MediaCall,
    parts: &Parts,
    content: &mut Body,
    progress: &StatementStats,
) -> Result<Response, Problem> {
    let links = links(app, parts);
    match call {
        MediaCall::Upload => upload(app, caller, &links, parts, content, progress).await,
        MediaCall::List(list) => progress.media("media.list", self::list(app, caller, &links, &list)).await,
        MediaCall::Describe(id) => progress.media("media.describe", describe(app, caller, &links, id)).await,
        MediaCall::Sign(id, valid) => progress.media("media.sign", sign(app, caller, &links, id, valid)).await,
        MediaCall::Delete(id) => progress.media("media.delete", delete(app, caller, id, &parts.headers)).await,
    }
}

async fn upload(
    app: &Arc<ServiceState>,
    caller: &Caller,
    links: &Links,
    parts: &Parts,
    content: &mut Body,
    progress: &StatementStats,
) -> Result<Response, Problem> {
    let rights = caller.upload_rights()?;
    let slot = app.uploads.try_take_as(caller.project(), caller.key_id(), 1);
    let _slot = slot.map_err(|refused| refused.into_problem("uploads"))?;
    let terms = ReceiveLimits {
        limits: app.bounds.upload,
        pause_max: app.bounds.body_timeout,
        file_max_bytes: rights.max_bytes(),
    };
    let receiving = receive::receive(content, &parts.headers, app.library.store(), terms);
    let received = progress.media("media.receive", receiving).await?;
    let (shape, folder, existing) = {
        let form = &received.form;
        (form.shape(), form.folder().clone(), form.existing())
    };
    let folder = rights.folder(folder)?;
    received.form.items().iter().try_for_each(|item| rights.check_visibility(item.visibility()))?;
    let claims = received.form.into_items().into_iter().map(ClaimedFile::from);
    let examined = app.intake.examine_all((caller.project(), caller.key_id()), &rights, claims.zip(received.files));
    let files = progress.media("media.examine", examined).await?;
    let publication = Publication {
        project: caller.project().clone(),
        folder,
        existing,
        replaceable: rights.scope(),
        files,
        uploader: rights.uploader(),
        upload: None,
    };
    let makes_folder_private = publication.makes_folder_private();
    let rows = progress.media("media.publish", app.library.publish(publication)).await?;
    let payload = match (shape, rows.as_slice()) {
        (UploadShape::Named | UploadShape::Multipart, rows) => {
            let briefs: Vec<_> = rows.iter().map(|row| Brief::of(row, links)).collect();
            payload::text(&briefs)?
        }
        (UploadShape::Typed(_), [row]) => payload::text(&Urls::of(row, links))?,
        (UploadShape::Typed(_), rows) => {
            let urls: Vec<_> = rows.iter().map(|row| Urls::of(row, links)).collect();
            payload::text(&urls)?
        }
    };
    let mut response = respond::payload(&payload);
    let replaced: &[MediaRow] = match existing {
        Existing::IsReplaced => &rows,
        Existing::Stays => &[],
    };
    let private_in = makes_folder_private.then(|| caller.project());
    cache_purge::announce(&mut response, &parts.headers, replaced, private_in);
    Ok(response)
}

async fn list(app: &ServiceState, caller: &Caller, links: &Links, list: &MediaList) -> Result<Response, Problem> {
    let readable = caller.check_media_read()?;
    let asked = list.span.limit.unwrap_or(MEDIA_LIST_MAX_ITEMS).min(MEDIA_LIST_MAX_ITEMS);
    let most = caller.max_rows(app.bounds.read_max_rows).map_or(asked, |most| most.min(asked));
    let mut list = list.clone();
    if most > 0 {
        list.span.limit = Some(most + 1);
    }
    let (mut rows, count) = app.library.list(caller.project(), &list, &readable).await?;
    let more = rows.len() as u64 > most;
    if more {
        rows.pop();
    }
    let limited = more && most < asked;
    let shown: Vec<_> = rows.iter().map(|row| Whole::of(row, links)).collect();
    let payload = payload::text(&shown)?;
    let trailer = Trailer { count, limited, more, ..Trailer::default() };
    let body = envelope::success_with(&payload, &trailer);
    Ok(respond::list(respond::json(body)))
}

async fn describe(app: &ServiceState, caller: &Caller, links: &Links, id: MediaId) -> Result<Response, Problem> {
    let row = find(app, caller, id).await?;
    let payload = payload::text(&Whole::of(&row, links))?;
    Ok(respond::payload(&payload))
}

async fn sign(
    app: &ServiceState,
    caller: &Caller,
    links: &Links,
    id: MediaId,
    valid: SignedFor,
) -> Result<Response, Problem> {
    let row = find(app, caller, id).await?;
    let signature = app.signer.sign((row.id, &row.path()), now(), valid);
    let payload = payload::text(&Signed::of(&row, links, &signature))?;
    Ok(respond::payload(&payload))
}

async fn delete(app: &ServiceState, caller: &Caller, id: MediaId, headers: &HeaderMap) -> Result<Response, Problem> {
    let scope = caller.changeable_files();
    if scope == ChangeableFiles::None {
        return Err(role_forbids("delete files"));
    }
    let deleted = app.library.delete(caller.project(), id, scope).await;
    let row = match deleted {
        Ok(row) => row.ok_or_else(|| id.unknown())?,
        Err(problem) => {
            // A caller that may not read the file must not learn from the error whether it exists.
            if problem.code() == ErrorCode::RoleForbids {
                find_readable(app, caller, id, &caller.readable_files()).await?;
            }
            return Err(problem);
        }
    };
    let mut response = respond::payload(format!("{{\"id\":{id}}}").as_bytes());
    cache_purge::announce(&mut response, headers, &[row], None);
    Ok(response)
}

async fn find(app: &ServiceState, caller: &Caller, id: MediaId) -> Result<MediaRow, Problem> {
    find_readable(app, caller, id, &caller.check_media_read()?).await
}

async fn find_readable(
    app: &ServiceState,
    caller: &Caller,
    id: MediaId,
    readable: &ReadableFiles,
) -> Result<MediaRow, Problem> {
    let found = app.library.get(caller.project(), id).await?;
    found.filter(|row| readable.has(row)).ok_or_else(|| id.unknown())
}
