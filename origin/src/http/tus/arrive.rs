//! Appends a request's body to a resumable upload, and publishes a complete upload, even if the client disconnects.

use crate::database::media::{MediaRow, UploadRow};
use crate::http::body::BodyReader;
use crate::media::intake::ClaimedFile;
use crate::media::library::Publication;
use crate::media::resumable::LockedUpload;
use crate::media::rights::UploadRights;
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::body::Body;
use shared::error::{ErrorCode, Problem};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

pub(super) struct ReceivedUpload {
    pub(super) row: UploadRow,
    pub(super) offset: u64,
    /// The published file; `None` if the upload is incomplete or the file was deleted meanwhile.
    pub(super) file: Option<MediaRow>,
}

pub(super) struct Arrival {
    pub(super) outcome: Result<ReceivedUpload, Problem>,
    pub(super) body: Body,
}

pub(super) async fn run(
    app: Arc<ServiceState>,
    caller: Caller,
    rights: UploadRights,
    mut upload: LockedUpload,
    mut body: Body,
) -> Arrival {
    let outcome = async {
        let slot = app.uploads.try_take_as(caller.project(), caller.key_id(), 1);
        let _slot = slot.map_err(|refused| refused.into_problem("uploads"))?;
        receive(&mut upload, &mut body, app.bounds.body_timeout).await?;
        if upload.is_complete() {
            return finish(&app, caller.key_id(), &rights, upload).await;
        }
        Ok(ReceivedUpload { offset: upload.offset(), row: upload.row().clone(), file: None })
    };
    let outcome = outcome.await;
    Arrival { outcome, body }
}

async fn receive(upload: &mut LockedUpload, body: &mut Body, pause_max: Duration) -> Result<(), Problem> {
    let began = upload.offset();
    upload.prolong().await?;
    let received = write_body(upload, body, pause_max).await;
    match received {
        Ok(()) if upload.is_complete() => return Ok(()),
        Err(ref problem) if problem.code() == ErrorCode::BodyTooLarge => {
            upload.take_back(began).await?;
            return received;
        }
        _ => {}
    }
    let flushed = upload.flush().await;
    let prolonged = upload.prolong().await;
    received.and(flushed).and(prolonged)
}

async fn write_body(upload: &mut LockedUpload, body: &mut Body, pause_max: Duration) -> Result<(), Problem> {
    let interruption = upload.interruption();
    let mut reader = BodyReader::new(body, pause_max);
    loop {
        let piece = tokio::select! {
            biased;
            () = interruption.cancelled() => return Err(taken_over()),
            piece = reader.next() => piece?,
        };
        match piece {
            Some(bytes) => upload.write(&bytes).await?,
            None => return Ok(()),
        }
    }
}

/// Publishes a complete upload. It stays after a server error or retryable error: a later `HEAD` request tries again.
async fn finish(
    app: &ServiceState,
    caller: Uuid,
    rights: &UploadRights,
    mut upload: LockedUpload,
) -> Result<ReceivedUpload, Problem> {
    let offset = upload.offset();
    match publish(app, caller, rights, &mut upload).await {
        Ok(file) => Ok(ReceivedUpload { row: upload.end(file.id).await, offset, file: Some(file) }),
        Err(problem) if problem.status() >= 500 || problem.code().retryable() => Err(problem),
        Err(problem) => {
            // If a response of MariaDB was lost, this upload may be published already and itself occupy the name.
            if let Some(id) = upload.refresh().await? {
                let file = app.library.get(&upload.row().project, id).await?;
                return Ok(ReceivedUpload { row: upload.end(id).await, offset, file });
            }
            upload.give_up().await?;
            Err(Problem::new(problem.code(), format!("{} The upload is gone.", problem.message()))
                .with_hint_if(problem.hint().map(str::to_owned)))
        }
    }
}

async fn publish(
    app: &ServiceState,
    caller: Uuid,
    rights: &UploadRights,
    upload: &mut LockedUpload,
) -> Result<MediaRow, Problem> {
    let (staged, file) = upload.staged().await?;
    // The role's rights may have changed since the upload began.
    super::check(rights, &file, upload.row().length)?;
    let claim = ClaimedFile { name: file.name, label: file.label, kind: file.kind, visibility: file.visibility };
    let project = upload.row().project.clone();
    let examined = app.intake.examine_all((&project, caller), rights, [(claim, staged)]);
    let publication = Publication {
        files: examined.await?,
        project,
        folder: file.folder,
        existing: file.existing,
        replaceable: rights.scope(),
        uploader: upload.row().uploader,
        upload: Some(upload.finished()),
    };
    let rows = app.library.publish(publication).await?;
    rows.into_iter().next().ok_or_else(|| {
        Problem::internal("Something went wrong in the service itself.", "a published upload has no row")
    })
}

fn taken_over() -> Problem {
    Problem::new(ErrorCode::UploadLocked, "Another request has taken the upload over.")
        .with_hint("What had arrived is kept.")
}
