//! Decides which responses are cached, with which headers, and which response a request gets from a cache entry.

use super::{ASKED_AT, Lookup, Subject};
use crate::core::answer::Answer;
use crate::core::headers::{HeaderChange, Headers};
use crate::core::incoming_request::IncomingRequest;
use httpdate::HttpDate;
use shared::conditional::{self, Conditions, Validators, Verdict};
use shared::error::Problem;
use shared::range::{self, Extent};
use shared::request::{LIMITED_HEADER, MORE_HEADER};
use std::borrow::Cow;
use std::ops::Range;
use std::time::SystemTime;

/// Maximum bytes of a response that is held in memory to be cached. All requests of an isolate share 128 MB.
pub(super) const HELD_MAX_BYTES: u64 = 1024 * 1024;

/// Maximum bytes of a cached file, which is the limit of Cloudflare's Cache API.
pub(super) const STREAMED_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// Lists which headers of the origin's response are kept in a cache entry, and which of them a response from the entry
/// gets. All other headers of the origin are left out.
struct HeaderNames {
    /// Names of the headers that the entry keeps, and that a 200 or 206 from the entry gets.
    stored: &'static [&'static str],
    /// Names of the headers that a 304 from the entry gets.
    not_modified: &'static [&'static str],
}

/// Headers of cached files. The request id, timing and CORS headers are left out, since they belong to one request.
const FILE_HEADERS: HeaderNames = HeaderNames {
    stored: &[
        "content-length",
        "content-type",
        "content-disposition",
        "content-security-policy",
        "x-content-type-options",
        "accept-ranges",
        "cross-origin-resource-policy",
        "etag",
        "last-modified",
        "cache-control",
    ],
    not_modified: &["etag", "last-modified", "cache-control"],
};

const READ_HEADERS: HeaderNames = HeaderNames {
    stored: &["content-length", "content-type", "etag", LIMITED_HEADER, MORE_HEADER],
    not_modified: &["etag"],
};

/// Request headers that change the response for a file, so that the response can't be shared with other requests.
pub(super) const FILE_REQUEST_HEADERS: [&str; 6] =
    ["authorization", "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// The effect of an origin's response on a cache entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// Store the response, which is small enough to be held in memory.
    Held,
    /// Don't store this response, which goes to a client; fetch the whole file in the background and store that
    /// response. For a long response, which would pile up in memory between a fast and a slow reader, and for a partial
    /// response.
    Streamed,
    Confirmed,
    /// Don't store the response, and remove a file's entry, since the file may have been deleted or made private. The
    /// response has a status that no other outcome covers (such as a 4xx other than 429), or is too long, of unknown
    /// length, compressed, or a file that is not public.
    NotStored,
    /// Don't store the response, since the file has another version than the requested one. Remove the file's entry
    /// only if the entry has the requested version: anyone can request a version that never existed.
    OtherVersion,
    /// The origin answered 429 or 5xx, so an expired file may be served.
    Unanswered,
}

#[derive(Debug)]
pub struct Served {
    pub head: Answer,
    pub body: ServedBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedBody {
    None,
    Whole,
    /// A part of the cached body: a non-empty range of byte offsets.
    Part(Range<u64>),
}

impl Lookup {
    /// Returns whether the origin's response to this request is also valid for all other requests for the entry.
    pub fn is_shared(&self, incoming: &IncomingRequest) -> bool {
        match self.subject {
            Subject::File(_) => {
                incoming.method() == "GET" && FILE_REQUEST_HEADERS.iter().all(|name| incoming.header(name).is_none())
            }
            Subject::Read { .. } => true,
        }
    }

    /// Returns the request to send to an origin for the entry: `incoming` without the headers that would make the
    /// response invalid for other requests. With `known_tag`, the request is a revalidation.
    pub fn request(
        &self,
        incoming: &IncomingRequest,
        client_address: Option<&str>,
        known_tag: Option<&str>,
    ) -> IncomingRequest {
        let mut asking = incoming.clone();
        let is_file = self.file().is_some();
        let headers = incoming.head.headers.iter().filter(|(name, _)| match is_file {
            true => *name == "traceparent" || Some(*name) == client_address,
            // Cached reads are stored without content coding (compression).
            false => !matches!(*name, "if-none-match" | "accept-encoding"),
        });
        asking.head.headers = headers.chain(known_tag.map(|tag| ("if-none-match", tag))).collect();
        if is_file {
            "GET".clone_into(&mut asking.head.method);
        }
        asking
    }

    /// Decides, by the status and headers of an origin's response, whether to store the response and whether to keep the
    /// present cache entry.
    pub fn outcome(&self, status: u16, headers: &Headers) -> FetchOutcome {
        let number = |text: &str| text.parse::<u64>().ok();
        let size = match status {
            200 => headers.get("content-length").and_then(number),
            206 => headers.get("content-range").and_then(|range| number(range.rsplit_once('/')?.1)),
            304 => return FetchOutcome::Confirmed,
            429 | 500.. => return FetchOutcome::Unanswered,
            _ => None,
        };
        let (is_cacheable, max_bytes) = match &self.subject {
            Subject::File(file) => {
                let is_dated = headers.get("last-modified").is_some_and(|date| date.parse::<HttpDate>().is_ok());
                let is_version = headers.get("etag") == Some(&file.tag);
                let cache_control = headers.get("cache-control").unwrap_or_default();
                if is_public(cache_control) && !is_version && matches!(status, 200 | 206) {
                    return FetchOutcome::OtherVersion;
                }
                (is_version && is_dated && is_immutable(cache_control), STREAMED_MAX_BYTES)
            }
            Subject::Read { .. } => (status == 200, HELD_MAX_BYTES),
        };
        match size.filter(|bytes| is_cacheable && *bytes <= max_bytes && headers.get("content-encoding").is_none()) {
            Some(0..=HELD_MAX_BYTES) if status == 200 => FetchOutcome::Held,
            Some(_) => FetchOutcome::Streamed,
            None => FetchOutcome::NotStored,
        }
    }

    /// Returns the head of the cache entry for an origin's response. The origin was asked at `asked_ms`, in ms since
    /// 1970.
    pub fn entry(&self, answer: &Headers, asked_ms: u64) -> Answer {
        let entry = Answer::bare(200).with_those(answer, self.header_names().stored);
        let entry = entry.with(ASKED_AT, asked_ms.to_string());
        match self.subject {
            Subject::File(_) => entry,
            // The entry is stored for longer than this client accepts, since other clients may accept an older entry.
            Subject::Read { max_seconds, .. } => entry.with("cache-control", format!("max-age={max_seconds}")),
        }
    }

    /// Returns the response that a request gets from an entry. `age_ms` is the entry's age, or `None` if the entry is
    /// just being stored. Returns `None` if the entry's headers are malformed, and `precondition_failed` if the file
    /// does not satisfy `If-Match` or `If-Unmodified-Since`.
    pub fn serve(
        &self,
        entry: &Headers,
        incoming: &IncomingRequest,
        age_ms: Option<u64>,
    ) -> Option<Result<Served, Problem>> {
        let is_file = self.file().is_some();
        let answer = |status, names| {
            let (answer, age_ms, more) = match is_file {
                true => (Answer::bare(status), age_ms, None),
                false => (Answer::new(status), age_ms.or(Some(0)), Some(self.accepted_age.headers())),
            };
            let age = age_ms.map(|age_ms| ("age", (age_ms / 1_000).to_string().into()));
            let more = age.into_iter().chain(more.into_iter().flatten());
            more.fold(answer.with_those(entry, names), |answer, (name, value)| answer.with(name, value))
        };
        let names = self.header_names();
        let size = entry.get("content-length")?.parse().ok()?;
        // Cached reads have no `Last-Modified`, and lists have no entity tag.
        let modified =
            entry.get("last-modified").map_or(Some(SystemTime::UNIX_EPOCH.into()), |date| date.parse().ok())?;
        let validators = Validators { tag: entry.get("etag").unwrap_or_default(), modified };
        let asked = |name| incoming.header(name).filter(|_| is_file).map(Into::into);
        let conditions = Conditions {
            if_match: asked("if-match"),
            if_unmodified_since: asked("if-unmodified-since"),
            if_none_match: incoming.header("if-none-match").filter(|_| !validators.tag.is_empty()).map(Into::into),
            if_modified_since: asked("if-modified-since"),
            if_range: asked("if-range"),
        };
        let is_head = incoming.method() == "HEAD";
        let range = asked("range").filter(|_| !is_head && conditions.range_holds(&validators));
        let extent = match conditions.judge(&validators) {
            Verdict::Failed => return Some(Err(conditional::failed())),
            Verdict::NotModified => {
                return Some(Ok(Served { head: answer(304, names.not_modified), body: ServedBody::None }));
            }
            Verdict::Send => range.map_or(Extent::Whole, |range: Cow<'_, str>| range::extent(&range, size)),
        };
        Some(Ok(match extent {
            Extent::Whole if is_head => Served { head: answer(200, names.stored), body: ServedBody::None },
            Extent::Whole => Served { head: answer(200, names.stored), body: ServedBody::Whole },
            Extent::Part(part) => {
                let length = part.end.saturating_sub(part.start).to_string();
                let mut head = answer(206, names.stored).with("content-range", content_range(&part, size));
                head.apply(vec![HeaderChange::Set("content-length", length.into())]);
                Served { head, body: ServedBody::Part(part) }
            }
            Extent::Beyond => {
                let head = Answer::problem(&range::beyond(size), &incoming.request_id);
                Served { head: head.with("content-range", format!("bytes */{size}")), body: ServedBody::None }
            }
        }))
    }

    fn header_names(&self) -> &'static HeaderNames {
        match self.subject {
            Subject::File(_) => &FILE_HEADERS,
            Subject::Read { .. } => &READ_HEADERS,
        }
    }
}

fn says(cache_control: &str, word: &str) -> bool {
    cache_control.split(',').any(|part| part.trim() == word)
}

fn is_public(cache_control: &str) -> bool {
    says(cache_control, "public") && !says(cache_control, "private") && !says(cache_control, "no-store")
}

/// Returns whether `Cache-Control` is that of a public file's current version, which the origin marks as immutable.
fn is_immutable(cache_control: &str) -> bool {
    is_public(cache_control) && says(cache_control, "immutable")
}

pub fn range_header(part: &Range<u64>) -> String {
    format!("bytes={}-{}", part.start, part.end.saturating_sub(1))
}

fn content_range(part: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1))
}
