//! Reads request bodies: JSON (or an insert's CSV or NDJSON) as a whole and within memory limits, uploads in
//! chunks. A body must arrive at a minimum rate. The body of a refused request is discarded.

use crate::project_quota::{ProjectQuota, QuotaGuard, Refused};
use crate::service_state::{Bounds, ServiceState};
use axum::body::{Body, HttpBody};
use axum::http::header::EXPECT;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Version};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use shared::admission::body_too_large;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::limits::{BODY_MIN_BYTES_PER_SECOND, JSON_BODY_BYTES_PER_SECOND};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// The number of bytes of each body that don't count against the memory limit, so that small requests always fit.
const FREE_BYTES: usize = 64 * 1024;

pub(super) struct ReceivedBody {
    pub(super) body: Incoming,
    pub(super) app: Arc<ServiceState>,
    /// Set to false at the body's end.
    pub(super) is_unread: Option<Arc<AtomicBool>>,
}

impl HttpBody for ReceivedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.app.metrics.received(frame.data_ref().map_or(0, Bytes::len));
        }
        if let Some(is_unread) = &self.is_unread
            && (matches!(polled, Poll::Ready(None)) || self.body.is_end_stream())
        {
            is_unread.store(false, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request body in memory. Its bytes beyond [`FREE_BYTES`] count against the memory limit until it is dropped.
#[derive(Default)]
pub(super) struct CountedBody {
    guard: Option<QuotaGuard>,
    counted: usize,
    bytes: Bytes,
}

impl CountedBody {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes, which count against the memory limit only until the `CountedBody` is dropped.
    pub(super) fn share(&self) -> Bytes {
        self.bytes.clone()
    }

    fn grow(&mut self, length: usize, holder: &Holder<'_>) -> Result<(), Problem> {
        let more = length.saturating_sub(FREE_BYTES) - self.counted;
        if more == 0 {
            return Ok(());
        }
        let counted = match &mut self.guard {
            Some(guard) => guard.grow(more as u64),
            None => holder.take(more as u64).map(|guard| self.guard = Some(guard)),
        };
        counted.map_err(|refused| refused.into_problem("bytes of large JSON bodies"))?;
        self.counted += more;
        Ok(())
    }
}

/// The project and the caller for which the memory of a body counts.
pub(super) struct Holder<'a> {
    pub(super) shares: &'a ProjectQuota,
    pub(super) project: &'a ProjectName,
    pub(super) caller: Uuid,
}

impl Holder<'_> {
    fn take(&self, bytes: u64) -> Result<QuotaGuard, Refused> {
        self.shares.try_take_as(self.project, self.caller, bytes)
    }
}

pub(super) async fn read(
    body: &mut Body,
    headers: &HeaderMap,
    bounds: Bounds,
    holder: Holder<'_>,
) -> Result<CountedBody, Problem> {
    let seconds = (bounds.body_max_bytes as u64).div_ceil(JSON_BODY_BYTES_PER_SECOND);
    let total = Duration::from_secs(seconds).max(2 * bounds.body_timeout);
    let read = tokio::time::timeout(total, read_whole(body, headers, bounds, holder));
    read.await.unwrap_or_else(|_| {
        let total = humantime::format_duration(total);
        Err(Problem::new(ErrorCode::InvalidBody, format!("The body did not arrive within {total}.")))
    })
}

async fn read_whole(
    body: &mut Body,
    headers: &HeaderMap,
    bounds: Bounds,
    holder: Holder<'_>,
) -> Result<CountedBody, Problem> {
    let announced = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let announced = usize::try_from(announced.unwrap_or_default()).unwrap_or(usize::MAX);
    if announced > bounds.body_max_bytes {
        return Err(body_too_large(bounds.body_max_bytes));
    }
    let mut reader = BodyReader::new(body, bounds.body_timeout);
    let mut buffered = CountedBody::default();
    let mut whole = BytesMut::new();
    while let Some(data) = reader.next().await? {
        let length = whole.len() + data.len();
        if length > bounds.body_max_bytes {
            return Err(body_too_large(bounds.body_max_bytes));
        }
        buffered.grow(length, &holder)?;
        // Most bodies arrive in one chunk, which is not copied.
        if whole.is_empty() && reader.is_at_end() {
            buffered.bytes = data;
            return Ok(buffered);
        }
        if whole.is_empty() {
            // Memory that is reserved but never written takes no pages, so a false length costs nothing.
            whole.reserve(announced);
        }
        whole.extend_from_slice(&data);
    }
    buffered.bytes = whole.freeze();
    Ok(buffered)
}

pub(super) struct BodyReader<'a> {
    body: &'a mut Body,
    pace: Pace,
}

impl<'a> BodyReader<'a> {
    pub(super) fn new(body: &'a mut Body, pause_max: Duration) -> Self {
        Self { body, pace: Pace::new(pause_max) }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let mut began = Instant::now();
        loop {
            let frame = tokio::time::timeout_at(began + self.pace.pause_max, self.body.frame())
                .await
                .map_err(|_| self.pace.paused())?;
            let frame = match frame {
                None => return Ok(None),
                Some(Err(_)) => {
                    return Err(Problem::new(ErrorCode::InvalidBody, "The body ended before its announced length."));
                }
                Some(Ok(frame)) => frame,
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if !self.is_at_end() {
                let now = Instant::now();
                self.pace.count(now - began, data.len())?;
                began = now;
            }
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }

    fn is_at_end(&self) -> bool {
        self.body.is_end_stream()
    }
}

struct Pace {
    pause_max: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    fn new(pause_max: Duration) -> Self {
        Self { pause_max, waited: Duration::ZERO, bytes: 0 }
    }

    fn count(&mut self, waited: Duration, bytes: usize) -> Result<(), Problem> {
        self.waited += waited;
        self.bytes += bytes as u64;
        if self.waited < self.pause_max {
            return Ok(());
        }
        if self.bytes < BODY_MIN_BYTES_PER_SECOND * self.waited.as_secs() {
            return Err(Problem::new(
                ErrorCode::InvalidBody,
                format!(
                    "The body arrived at less than {BODY_MIN_BYTES_PER_SECOND} bytes a second for {}.",
                    humantime::format_duration(self.pause_max)
                ),
            ));
        }
        *self = Self::new(self.pause_max);
        Ok(())
    }

    fn paused(&self) -> Problem {
        Problem::new(
            ErrorCode::InvalidBody,
            format!("Nothing of the body arrived for {}.", humantime::format_duration(self.pause_max)),
        )
    }
}

/// Whether the client need not send its body after a refusal, as it sent `Expect: 100-continue` over HTTP/1.1.
/// False over HTTP/2: there, clients such as curl take the reset of an unread body for the end of an empty response.
pub(super) fn is_expecting(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_11 && headers.contains_key(EXPECT)
}

/// Maximum bytes of an unused body that are read and discarded: many clients read the response only after they have sent
/// the body.
pub(super) const DRAIN_MAX_BYTES: usize = 64 * 1024 * 1024;
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads and discards the rest of a body that nobody reads, such as that of a refused request, in a background task: a
/// client that sends its body slowly, such as an edge, gets the response at once.
pub(super) fn drain(mut body: Body, request: &Parts) {
    if body.is_end_stream() || is_expecting(request.version, &request.headers) {
        return;
    }
    let mut left = DRAIN_MAX_BYTES;
    tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_state::{BODIES_MAX_BYTES, body_memory};
    use shared::upload::UploadLimits;
    use std::convert::Infallible;

    #[test]
    fn a_project_holds_half_of_the_bytes_of_large_bodies_and_small_ones_always() {
        let shares = &body_memory(16 * 1024 * 1024);
        let names = ["one", "other"].map(|name| ProjectName::parse(name).unwrap());
        let [one, other] = names.each_ref().map(|project| Holder { shares, project, caller: Uuid::from_u128(1) });
        let beside = Holder { shares, project: &names[0], caller: Uuid::from_u128(2) };
        let share = BODIES_MAX_BYTES / 2;
        let mut large = CountedBody::default();
        large.grow(FREE_BYTES + 1, &one).unwrap();
        large.grow(FREE_BYTES + share, &one).unwrap();
        let mut another = CountedBody::default();
        another.grow(FREE_BYTES, &one).unwrap();
        let refused = another.grow(FREE_BYTES + 1, &one).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::RateLimited);
        let mut of_another_caller = CountedBody::default();
        of_another_caller.grow(FREE_BYTES + share / 4, &beside).unwrap();
        let mut others = CountedBody::default();
        others.grow(FREE_BYTES + share / 2, &other).unwrap();
        drop((large, of_another_caller));
        another.grow(FREE_BYTES + share, &one).unwrap();
    }

    #[test]
    fn the_largest_body_fits_into_a_share() {
        let largest = 1 << 30;
        let shares = body_memory(largest);
        let project = ProjectName::parse("one").unwrap();
        let holder = Holder { shares: &shares, project: &project, caller: Uuid::nil() };
        assert!(CountedBody::default().grow(largest, &holder).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_refused() {
        let body_max_bytes = 16 * 1024 * 1024;
        let bounds = Bounds {
            body_max_bytes,
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::ZERO,
            batch_max_rows: 0,
            read_max_rows: None,
            upload: UploadLimits { body_bytes: 0, items: 0 },
            packet_max_bytes: 0,
            sign_in_clients: crate::config::SignInClients::OfOperator,
        };
        let second = async |()| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(&[b' '; 2 * 1024])), ()))
        };
        let mut body = Body::from_stream(futures_util::stream::unfold((), second));
        let (shares, project) = (body_memory(body_max_bytes), ProjectName::parse("one").unwrap());
        let holder = Holder { shares: &shares, project: &project, caller: Uuid::nil() };
        let refused = read(&mut body, &HeaderMap::new(), bounds, holder).await.err().unwrap();
        assert_eq!(refused.message(), "The body did not arrive within 8m 32s.");
    }

    #[test]
    fn a_body_may_take_long_if_it_neither_pauses_nor_drips() {
        let (pause_max, second) = (Duration::from_secs(30), Duration::from_secs(1));
        let least = usize::try_from(BODY_MIN_BYTES_PER_SECOND).unwrap();
        let mut steady = Pace::new(pause_max);
        for _ in 0..9_000 {
            steady.count(second, least).unwrap();
        }
        // A fast start does not make up for a slow rest.
        steady.count(Duration::ZERO, 1 << 30).unwrap();
        let dripped = (1..100).find(|_| steady.count(second, 1).is_err());
        assert_eq!(dripped, Some(2 * 30));
        let mut short = Pace::new(pause_max);
        assert!((1..30).all(|_| short.count(second, 1).is_ok()));
        assert!(short.count(second, 1).is_err());
    }
}
