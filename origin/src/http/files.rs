//! `GET /media/{project}/{folder…}/{name}`: streams media from the store. A request without access to a private file
//! gets the same 404 as one for a missing file, after the same work, so that timing reveals nothing.

mod access;
mod answer;
mod disposition;
mod query;

use super::header;
use super::request_metrics::RequestMetrics;
use super::respond::ETag;
use super::{body, stream};
use crate::database::media::{MediaRow, StoredObject};
use crate::media::store::{ObjectBytes, StoreError};
use crate::service_state::ServiceState;
use access::{Access, Credentials};
use answer::Served;
use async_stream::try_stream;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_RANGE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Version};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use query::Query;
use shared::conditional::{self, Conditions, Verdict};
use shared::error::{ErrorCode, Problem};
use shared::limits::UNCOUNTED_HTTP2_ANSWER_MAX_BYTES;
use shared::media::FilePath;
use shared::operation::route;
use shared::range::{self, Extent};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

pub(super) async fn answer(
    app: &ServiceState,
    metrics: &RequestMetrics,
    request: Request,
) -> Result<Response, Problem> {
    metrics.log().route("/media/{project}/{path}");
    let (parts, content) = request.into_parts();
    let outcome = find(app, &parts, metrics).await;
    if outcome.is_err() {
        body::drain(content, &parts);
    }
    outcome
}

async fn find(app: &ServiceState, parts: &Parts, metrics: &RequestMetrics) -> Result<Response, Problem> {
    let path = route::file(parts.method.as_str(), parts.uri.path())?;
    let call = Call { query: Query::parse(parts.uri.query()), path, parts };
    for _ in 0..LOOKUPS_MAX_COUNT {
        if let Some(response) = call.attempt(app, metrics).await? {
            return Ok(response);
        }
        // The file may have been replaced or deleted, so the next attempt reads the row again.
        app.library.forget_cached(&call.path);
    }
    // Not a 404, which caches and clients take for a deletion: the directory or bucket may just be unavailable.
    tracing::error!("the store lacks an object that a row names");
    Err(Problem::new(ErrorCode::StorageUnavailable, "The file is known, but the store does not have its bytes now."))
}

/// Maximum number of lookups per request: the file may be replaced repeatedly, so one retry may not suffice.
const LOOKUPS_MAX_COUNT: usize = 5;

struct Call<'a> {
    path: FilePath,
    query: Query,
    parts: &'a Parts,
}

impl Call<'_> {
    async fn attempt(&self, app: &ServiceState, metrics: &RequestMetrics) -> Result<Option<Response>, Problem> {
        let found = app.library.find(&self.path).await?;
        let (file, access) = self.admit(app, found, metrics).await?;
        let object = file.rendition(self.query.rendition).ok_or_else(FilePath::not_found)?;
        let served = Served {
            path: &self.path,
            query: &self.query,
            object,
            access,
            tag: ETag::of_sha256(&object.sha256),
            modified: answer::date(file.updated_at),
        };
        let conditions = self.conditions();
        match conditions.judge(&served.validators()) {
            Verdict::Send => {}
            Verdict::NotModified => return Ok(Some(served.not_modified())),
            Verdict::Failed => return Err(conditional::failed()),
        }
        if self.parts.method == Method::HEAD {
            return Ok(Some(served.whole(Body::empty())));
        }
        let extent = match header(&self.parts.headers, "range") {
            Some(range) if conditions.range_holds(&served.validators()) => range::extent(range, object.size),
            _ => Extent::Whole,
        };
        let (part, is_part) = match extent {
            Extent::Whole => (0..object.size, false),
            Extent::Part(part) => (part, true),
            Extent::Beyond => return Ok(Some(not_satisfiable(object.size, metrics))),
        };
        let Some(body) = open(app, object, part.clone(), self.parts.version, metrics).await? else {
            return Ok(None);
        };
        Ok(Some(if is_part { served.part(&part, body) } else { served.whole(body) }))
    }

    async fn admit(
        &self,
        app: &ServiceState,
        file: Option<Arc<MediaRow>>,
        metrics: &RequestMetrics,
    ) -> Result<(Arc<MediaRow>, Access), Problem> {
        if let Some(file) = &file
            && !file.private
        {
            return Ok((Arc::clone(file), Access::Public));
        }
        let credentials =
            Credentials { query: &self.query, authorization: header(&self.parts.headers, "authorization") };
        let admitted = access::to_private(app, metrics, (file.as_deref(), &self.path), &credentials).await?;
        match (file, admitted) {
            (Some(file), Some((access, caller))) => {
                if let Some(caller) = caller {
                    metrics.log().caller(Arc::clone(caller.principal()));
                }
                Ok((file, access))
            }
            _ => Err(FilePath::not_found()),
        }
    }

    fn conditions(&self) -> Conditions<'_> {
        let header = |name| header(&self.parts.headers, name).map(Cow::Borrowed);
        Conditions {
            if_match: header("if-match"),
            if_unmodified_since: header("if-unmodified-since"),
            if_none_match: header("if-none-match"),
            if_modified_since: header("if-modified-since"),
            if_range: header("if-range"),
        }
    }
}

fn not_satisfiable(size: u64, metrics: &RequestMetrics) -> Response {
    let mut response = metrics.refuse(&range::beyond(size));
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    response
}

async fn open(
    app: &ServiceState,
    object: &StoredObject,
    part: Range<u64>,
    version: Version,
    metrics: &RequestMetrics,
) -> Result<Option<Body>, Problem> {
    let length = part.end - part.start;
    if length == 0 {
        return Ok(Some(Body::empty()));
    }
    let mut pieces = match app.library.store().read(object.key, Some(part)).await {
        Ok(pieces) => pieces,
        Err(StoreError::NotFound) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let first = match pieces.next().await {
        Some(first) => first?,
        None => Bytes::new(),
    };
    let may_wait = version == Version::HTTP_2 && length > UNCOUNTED_HTTP2_ANSWER_MAX_BYTES;
    if first.len() as u64 == length && !may_wait {
        return Ok(Some(Body::from(first)));
    }
    let left = length.saturating_sub(first.len() as u64);
    let (limits, guard) = metrics.stream_file();
    Ok(Some(stream::body([first], with_length(pieces, left), "", limits, guard)))
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("an object is shorter than its row says")]
    Short,
}

/// Returns `pieces`, and then an error if they have fewer than `length` bytes, so that the client notices a truncation.
fn with_length(mut pieces: ObjectBytes, length: u64) -> impl Stream<Item = Result<Bytes, Broken>> {
    try_stream! {
        let mut left = length;
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            left = left.saturating_sub(piece.len() as u64);
            yield piece;
        }
        if left > 0 {
            Err(Broken::Short)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[tokio::test]
    async fn an_object_that_lacks_bytes_does_not_end_as_if_it_were_whole() {
        let pieces = |pieces: Vec<&'static [u8]>| -> ObjectBytes {
            Box::pin(stream::iter(pieces).map(|piece| Ok(Bytes::from_static(piece))))
        };
        let ends = async |given: Vec<&'static [u8]>| {
            let given = with_length(pieces(given), 4);
            let last = given.collect::<Vec<_>>().await.pop();
            last.is_some_and(|last| last.is_ok())
        };
        assert!(ends(vec![b"ab", b"cd"]).await);
        assert!(!ends(vec![b"ab", b"c"]).await);
        assert!(!ends(vec![]).await);
    }
}
