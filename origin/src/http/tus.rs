//! `/api/v1/media/tus`: resumable uploads (tus 1.0). The body is received in a separate task: if the client
//! disconnects, the received bytes stay and publishing continues.

mod arrive;

use super::links::links;
use super::media::{cache_purge, payload};
use crate::database::media::{ChangeableFiles, MediaRow, UploadRow, WriteError};
use crate::media::resumable::{LockedUpload, OnLocked};
use crate::media::rights::UploadRights;
use crate::media::url::Links;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use arrive::{Arrival, ReceivedUpload};
use axum::body::{Body, HttpBody as _};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use shared::error::Problem;
use shared::media::FilePath;
use shared::operation::tus::{self, FirstBytes, TusCall, TusFile, TusId, TusNew};
use shared::upload::{Existing, Visibility};
use std::sync::Arc;

const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
const MEDIA_ID: HeaderName = HeaderName::from_static("selkie-media-id");
const MEDIA_URL: HeaderName = HeaderName::from_static("selkie-media-url");
const MEDIA_THUMBNAIL_URL: HeaderName = HeaderName::from_static("selkie-media-thumbnail-url");

pub(super) fn add_headers(path: &str, response: &mut Response) {
    let status = response.status().as_u16();
    for (name, value) in tus::answer_headers(path, status) {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

pub(super) async fn run(
    app: &Arc<ServiceState>,
    caller: &Caller,
    call: TusCall,
    parts: &Parts,
    content: &mut Body,
) -> Result<Response, Problem> {
    let request = UploadRequest { caller, links: links(app, parts), headers: &parts.headers };
    match call {
        TusCall::Describe => Ok(describe(app)),
        TusCall::Create(new) => create(app, &request, *new, content).await,
        TusCall::Status(id) => status(app, &request, id).await,
        TusCall::Append { id, offset } => append(app, &request, (id, offset), content).await,
        TusCall::Terminate(id) => terminate(app, caller, id).await,
    }
}

struct UploadRequest<'a> {
    caller: &'a Caller,
    links: Links,
    headers: &'a HeaderMap,
}

fn describe(app: &ServiceState) -> Response {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(TUS_VERSION, HeaderValue::from_static(tus::VERSION));
    headers.insert(TUS_EXTENSION, HeaderValue::from_static(tus::EXTENSIONS));
    headers.insert(TUS_MAX_SIZE, app.resumable.max_bytes().into());
    response
}

async fn create(
    app: &Arc<ServiceState>,
    request: &UploadRequest<'_>,
    mut new: TusNew,
    content: &mut Body,
) -> Result<Response, Problem> {
    let caller = request.caller;
    let rights = caller.upload_rights()?;
    new.set_folder(rights.folder(new.file.folder.clone())?)?;
    check(&rights, &new.file, new.length)?;
    check_replaced(app, request, &rights, &new.file).await?;
    let row = app.resumable.begin(caller.project(), &new, rights.uploader()).await?;
    let id = TusId::from(row.id);
    let mut response = empty(StatusCode::CREATED);
    if new.first_bytes == FirstBytes::Here {
        let begun = async {
            let upload = lock(app, caller, id, OnLocked::Fail).await?;
            upload.expect(0, content.size_hint().exact())?;
            arrive(app, caller, &rights, upload, content).await
        };
        match begun.await {
            Ok(outcome) => add_outcome(&mut response, &outcome, request),
            Err(problem) => {
                // The client never learns the upload's URL and can't resume the upload, so it is deleted.
                if let Err(error) = terminate(app, caller, id).await {
                    tracing::debug!(%error, "an upload that failed at its beginning is left to expire");
                }
                return Err(problem);
            }
        }
    } else {
        response.headers_mut().insert(UPLOAD_OFFSET, 0.into());
        expires(response.headers_mut(), &row);
    }
    if let Ok(location) = HeaderValue::try_from(id.to_url_path()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn status(app: &Arc<ServiceState>, request: &UploadRequest<'_>, id: TusId) -> Result<Response, Problem> {
    let upload = lock(app, request.caller, id, OnLocked::TakeOver).await?;
    let rights = request.caller.upload_rights()?;
    // A complete upload lacks its media file if publishing failed or was interrupted, for example by a crash.
    let outcome = if upload.is_complete() {
        arrive(app, request.caller, &rights, upload, &mut Body::empty()).await?
    } else {
        reached(app, &upload).await?
    };
    let mut response = empty(StatusCode::OK);
    add_outcome(&mut response, &outcome, request);
    let headers = response.headers_mut();
    headers.insert(UPLOAD_LENGTH, outcome.row.length.into());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(metadata) = HeaderValue::try_from(&outcome.row.metadata) {
        headers.insert(UPLOAD_METADATA, metadata);
    }
    Ok(response)
}

async fn append(
    app: &Arc<ServiceState>,
    request: &UploadRequest<'_>,
    (id, offset): (TusId, u64),
    content: &mut Body,
) -> Result<Response, Problem> {
    let upload = lock(app, request.caller, id, OnLocked::Fail).await?;
    let rights = request.caller.upload_rights()?;
    upload.expect(offset, content.size_hint().exact())?;
    let outcome = match upload.file() {
        Some(_) => reached(app, &upload).await?,
        None => arrive(app, request.caller, &rights, upload, content).await?,
    };
    let mut response = empty(StatusCode::NO_CONTENT);
    add_outcome(&mut response, &outcome, request);
    Ok(response)
}

async fn terminate(app: &ServiceState, caller: &Caller, id: TusId) -> Result<Response, Problem> {
    let upload = lock(app, caller, id, OnLocked::TakeOver).await?;
    upload.give_up().await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn lock(app: &ServiceState, caller: &Caller, id: TusId, on_locked: OnLocked) -> Result<LockedUpload, Problem> {
    let scope = caller.uploader().map_or(ChangeableFiles::All, ChangeableFiles::Own);
    app.resumable.lock(caller.project(), scope, id, on_locked).await
}

/// Checks folder, visibility and size. The media type is checked once the upload is complete.
fn check(rights: &UploadRights, file: &TusFile, length: u64) -> Result<(), Problem> {
    rights.folder(file.folder.clone())?;
    rights.check_visibility(file.visibility)?;
    rights.check_size(length)
}

/// Refuses to replace a file outside of the caller's rights, before any bytes are sent. Publishing checks again.
async fn check_replaced(
    app: &ServiceState,
    request: &UploadRequest<'_>,
    rights: &UploadRights,
    file: &TusFile,
) -> Result<(), Problem> {
    if file.existing == Existing::Stays || rights.scope() == ChangeableFiles::All {
        return Ok(());
    }
    let project = request.caller.project().clone();
    let path = FilePath { project, folder: file.folder.clone(), name: file.name.clone() };
    match app.library.find(&path).await? {
        Some(row) if !rights.scope().has(row.uploader) => Err(WriteError::Forbidden.into()),
        _ => Ok(()),
    }
}

async fn reached(app: &ServiceState, upload: &LockedUpload) -> Result<ReceivedUpload, Problem> {
    let row = upload.row();
    let file = match upload.file() {
        Some(file) => app.library.get(&row.project, file).await?,
        None => None,
    };
    Ok(ReceivedUpload { row: row.clone(), offset: upload.offset(), file })
}

async fn arrive(
    app: &Arc<ServiceState>,
    caller: &Caller,
    rights: &UploadRights,
    upload: LockedUpload,
    content: &mut Body,
) -> Result<ReceivedUpload, Problem> {
    let body = std::mem::take(content);
    let task = tokio::spawn(arrive::run(Arc::clone(app), caller.clone(), rights.clone(), upload, body));
    let Arrival { outcome, body } = task.await.map_err(|error| {
        Problem::internal(
            "Something went wrong in the service itself.",
            format!("the task of an upload failed: {error}"),
        )
    })?;
    *content = body;
    outcome
}

fn add_outcome(response: &mut Response, outcome: &ReceivedUpload, request: &UploadRequest<'_>) {
    let headers = response.headers_mut();
    headers.insert(UPLOAD_OFFSET, outcome.offset.into());
    expires(headers, &outcome.row);
    if let Some(file) = &outcome.file {
        add_file(headers, file, &request.links);
        // The upload may have replaced another file and made its folder private.
        let made = TusFile::from_metadata(&outcome.row.metadata).ok();
        let private_in = made.is_some_and(|made| made.visibility == Visibility::PrivateFolder);
        let private_in = private_in.then_some(request.caller.project());
        cache_purge::announce(response, request.headers, std::slice::from_ref(file), private_in);
    }
}

fn add_file(headers: &mut HeaderMap, file: &MediaRow, links: &Links) {
    headers.insert(MEDIA_ID, file.id.get().into());
    let urls =
        [(MEDIA_URL, Some(payload::url(file, links))), (MEDIA_THUMBNAIL_URL, payload::thumbnail_url(file, links))];
    headers.extend(urls.into_iter().filter_map(|(name, url)| Some((name, HeaderValue::try_from(url?).ok()?))));
}

fn expires(headers: &mut HeaderMap, row: &UploadRow) {
    let time = i64::try_from(row.expires_at)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .and_then(|time| DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok())
        .and_then(|text| HeaderValue::try_from(text).ok());
    headers.extend(time.map(|time| (UPLOAD_EXPIRES, time)));
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
